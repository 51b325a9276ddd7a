"""Whether checkpoint, ledger and tables are consistent, before anything is written."""
