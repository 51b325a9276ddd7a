"""How late the events of a source arrive, and which watermark settings follow from that."""
