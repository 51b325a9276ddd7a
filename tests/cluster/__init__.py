"""Pipelines on a standalone cluster of two workers, which loses executors."""
