"""How much a run has to read, as far as logs tell before any JVM starts.

Only settings are chosen by it, never results: with all of them a run computes the same.

    ledger + log of the source + logs of the tables -> new rows, stored bytes
"""

from dataclasses import dataclass

from jobs.diagnosis.spec_changes import spec_difference
from windowing.ledger.rule import LedgerExcerpt
from windowing.ledger.table import read_excerpt
from windowing.location import Location
from windowing.source.commits import read_commit, total
from windowing.spec.pipeline import Pipeline
from windowing.storage import control, table_figures
from windowing.storage.kept_open import newest_version, read_commit_text

FEW_ROWS, MANY_ROWS = 20_000, 500_000
TINY_BYTES, SMALL_BYTES, MANY_BYTES = 4_000_000, 64_000_000, 256_000_000
"""Of all tables of a pipeline together, as they are compressed."""


@dataclass(frozen=True)
class RunSize:
    """The rows that the source has gained since the last run, and the bytes that are stored."""

    new_rows: int
    stored_bytes: int

    @property
    def is_short(self) -> bool:
        """Whether the run ends before optimized code would have repaid its compiler."""
        return self.new_rows <= MANY_ROWS and self.stored_bytes <= MANY_BYTES

    @property
    def is_small(self) -> bool:
        """Whether one task can read the new rows and all that is stored."""
        return self.new_rows <= FEW_ROWS and self.stored_bytes <= SMALL_BYTES

    @property
    def is_tiny(self) -> bool:
        """Whether so little is read that no query is worth compiling."""
        return self.new_rows <= FEW_ROWS and self.stored_bytes <= TINY_BYTES


def estimate_next_run(pipeline: Pipeline) -> RunSize | None:
    """The size of the next run; None where that isn't known.

    It is not known where a step was left open, where the spec has changed, and where a commit of
    the source has no statistics or rewrites rows.
    """
    try:
        return estimate_run_size(pipeline, read_excerpt(pipeline))
    except (control.TableError, OSError):
        # The run itself says what is wrong.
        return None


def estimate_run_size(pipeline: Pipeline, past: LedgerExcerpt) -> RunSize | None:
    """The size of the run that follows `past`; None where that isn't known.

    Nothing is refused here, because only settings depend on it.
    """
    if past.is_open or (past.entries and spec_difference(pipeline, past)):
        return None
    try:
        new_rows = _count_new_rows(pipeline, past)
        stored_bytes = _count_stored_bytes(pipeline, past)
    except (OSError, ValueError):
        # A commit that can't be read, or is no JSON.
        return None
    if new_rows is None or stored_bytes is None:
        return None
    return RunSize(new_rows, stored_bytes)


def stores_little(pipeline: Pipeline) -> bool:
    """Whether a command that reads the tables is short, too; not where their size isn't known."""
    try:
        stored_bytes = _count_stored_bytes(pipeline, read_excerpt(pipeline))
    except (control.TableError, OSError, ValueError):
        # The command itself says what is wrong.
        return False
    return stored_bytes is not None and RunSize(0, stored_bytes).is_short


def _count_new_rows(pipeline: Pipeline, past: LedgerExcerpt) -> int | None:
    """The rows of the commits that the stream has not read to their end."""
    if pipeline.source.table.is_in_catalog:
        # The table is a name of Spark's catalog, which only Spark can look up.
        return None
    table = pipeline.source.table
    newest = newest_version(table)
    if newest < 0:
        return None
    rows = 0
    for version in range(past.next_version or 0, newest + 1):
        added = _count_rows_of_commit(table, version)
        if added is None:
            return None
        rows += added
        if rows > MANY_ROWS:
            # A long log is not read further than it matters.
            break
    return rows


def _count_rows_of_commit(table: Location, version: int) -> int | None:
    text = read_commit_text(table, version)
    if text is None:
        return None
    commit = read_commit(version, text, event_time="")
    # Rows that a commit removed have to be read, too, and are counted nowhere.
    return None if commit.rewrites else commit.rows


def _count_stored_bytes(pipeline: Pipeline, past: LedgerExcerpt) -> int | None:
    """The bytes of all tables; None where the log of one is for Spark alone."""
    return total(table_figures.count_bytes(pipeline.table(name), {}) for name in past.versions)
