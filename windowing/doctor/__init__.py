"""Whether ledger, tables and pointer are consistent, before anything is written."""
