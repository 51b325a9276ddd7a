"""What keeps a pipeline small and clean: compaction, expiry, erasure."""
