"""Transcripts of tests: files, steps, values, and the tables they expect."""
