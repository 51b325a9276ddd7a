"""Errors of Spark, Delta and delta-rs as one sentence each."""
