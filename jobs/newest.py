"""What is validated and published: the newest finished run or backfill, as the ledger has it."""

from windowing.errors import UsageError
from windowing.ledger.rule import Entry, Story
from windowing.spec.pipeline import Pipeline

QUALITY = "_quality"
"""The table of outcomes: one row for each expectation and validation."""


def newest(pipeline: Pipeline, past: Story) -> Entry:
    """The newest finished run or backfill; UsageError when there is none."""
    if past.newest is None:
        raise UsageError(f"{pipeline.name}: no run has finished yet; `tidemark run` first")
    return past.newest
