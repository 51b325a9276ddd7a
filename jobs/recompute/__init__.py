"""A range of event time counted again: chunks of a backfill, changes of the source, changes of the spec."""
