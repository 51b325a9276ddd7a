"""What every command checks before it writes: lock, session, checkpoint, tables, spec, source."""
