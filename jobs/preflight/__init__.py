"""What every command asks before it writes: lock, session, checkpoint, tables, spec, source."""
