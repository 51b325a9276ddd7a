"""Whether ledger, tables, pointer and spec are consistent, and tables that fit the spec."""
