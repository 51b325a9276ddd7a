"""From windows to output tables: what changed, in one commit."""
