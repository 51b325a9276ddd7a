"""What logs and the ledger decide before any JVM starts."""
