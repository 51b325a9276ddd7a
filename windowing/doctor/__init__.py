"""Whether checkpoint, ledger and tables tell one story, before anything is written."""
