"""Whether a run has little to do: few rows are new, and all tables of the pipeline are small.

Only logs are read, before any JVM starts. A run then takes a session that starts faster and
interprets its queries; it computes the same.
"""

from collections.abc import Iterator

from jobs.preflight.spec_changes import spec_difference
from windowing import control
from windowing.files import local_path, newest_version
from windowing.ledger.rule import LedgerHistory
from windowing.ledger.table import read_history
from windowing.source.commits import Commit, read_commit
from windowing.spec.pipeline import Pipeline

_FEW_ROWS = 20_000
_SMALL_BYTES = 32_000_000
"""Of all tables together, as they are compressed."""


def has_little_to_do(pipeline: Pipeline) -> bool:
    """Whether a run would read few rows and change small tables; False where that isn't known.

    It is not known before the first run, where a step was left open, where the spec has changed,
    and where a commit of the source has no statistics or rewrites rows.
    """
    try:
        past = read_history(pipeline)
        return _reads_little(pipeline, past) and _is_small(pipeline, past)
    except (control.TableError, OSError):
        return False


def _reads_little(pipeline: Pipeline, past: LedgerHistory) -> bool:
    if past.next_version is None or past.is_open or spec_difference(pipeline, past):
        return False
    rows = 0
    for commit in _unread_commits(pipeline, past.next_version):
        if commit is None or commit.rows is None or commit.rewrites:
            return False
        rows += commit.rows
    return rows <= _FEW_ROWS


def _unread_commits(pipeline: Pipeline, since: int) -> Iterator[Commit | None]:
    """The commits of the source from version `since` on; None for one that is not known."""
    table = local_path(pipeline.source.table)
    newest = newest_version(table)
    if newest is None:
        yield None
        return
    for version in range(since, newest + 1):
        file = table / "_delta_log" / f"{version:020}.json"
        if not file.exists():
            yield None
            return
        column = pipeline.source.event_time.column or ""
        yield read_commit(version, file.read_text(encoding="utf-8"), column)


def _is_small(pipeline: Pipeline, past: LedgerHistory) -> bool:
    total = 0
    for name in past.versions:
        size = control.measure_table(str(local_path(pipeline.table(name))))
        if size is None:
            return False
        total += size.bytes
    return total <= _SMALL_BYTES
