"""Whether checkpoint, ledger, tables and spec are consistent, and tables that fit the spec."""
