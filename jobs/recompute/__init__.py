"""Reprocesses ranges of event time: chunks of a backfill, changes of source and spec."""
