"""Whether a run would find nothing to do, from logs and files alone, before any JVM starts.

Whatever is in doubt is left to a run: it looks again with Spark, and refuses or repairs.

    ledger + log of the source + logs of the tables -> the report of a run, or None
"""

from dataclasses import replace

from jobs.diagnosis.pointer import read_pointer
from jobs.diagnosis.spec_changes import spec_difference
from windowing.admit.rule import Quiet, advance_idle_watermark
from windowing.doctor.rule import of_pointer
from windowing.ledger.rule import LedgerExcerpt
from windowing.ledger.table import read_excerpt
from windowing.panes.rule import state_names
from windowing.report.rule import RunReport, run_report
from windowing.source.rule import CLOCK_SKEW_US, pending_changes
from windowing.spec.pipeline import Pipeline
from windowing.storage import control
from windowing.storage.files import find_time
from windowing.storage.kept_open import has_commit, newest_version, read_commit_text
from windowing.storage.table_properties import CHANGE_FEED, is_true


def find_nothing_new(pipeline: Pipeline, clock_us: int) -> RunReport | None:
    """The report of a run at `clock_us` that would read, change and record nothing.

    None where a run would do anything, or where that can't be known without Spark.
    """
    if pipeline.source.table.is_in_catalog:
        # The table is a name of Spark's catalog, which only Spark can look up.
        return None
    try:
        past = read_excerpt(pipeline)
    except control.TableError:
        return None
    if not _is_at_rest(pipeline, past):
        return None
    if not _is_source_read(pipeline, past) or not _are_tables_as_recorded(pipeline, past):
        return None
    if _moves_watermark(pipeline, past, clock_us):
        return None
    names = [window.name for window in pipeline.windows]
    report = run_report(None, 0, {}, past.watermark, names)
    return replace(report, published=past.is_published)


def _is_at_rest(pipeline: Pipeline, past: LedgerExcerpt) -> bool:
    """Whether no step is left open, the spec is the one that made the state, and nothing waits."""
    if past.made_by is None or past.is_open or past.open_batch is not None:
        return False
    if spec_difference(pipeline, past):
        return False
    return next(pending_changes(past), None) is None


def _is_source_read(pipeline: Pipeline, past: LedgerExcerpt) -> bool:
    """Whether the source is the table that was read so far, at the version that was read last."""
    table = pipeline.source.table
    version = newest_version(table)
    before = past.source
    if before is None or before.at is None:
        return False
    # The stream stands at the beginning of the next version once it has read one to its end.
    if past.read_version != version or past.next_version != version + 1:
        return False
    if before.source_version != version or not _is_same_table(pipeline, version, before.source_id):
        return False
    written_us = find_time(read_commit_text(table, version))
    return written_us is not None and written_us <= before.at + CLOCK_SKEW_US


def _is_same_table(pipeline: Pipeline, version: int, source_id: str | None) -> bool:
    try:
        metadata = control.read_metadata(pipeline.source.table, version)
    except control.TableError:
        return False
    is_recorded = is_true(metadata.settings.get(CHANGE_FEED))
    if pipeline.source.changes == "feed" and not is_recorded:
        return False
    return metadata.table_id == source_id


def _are_tables_as_recorded(pipeline: Pipeline, past: LedgerExcerpt) -> bool:
    """Whether tables and pointer are as the last step has left them."""
    for name, version in past.versions.items():
        if newest_version(pipeline.table(name)) != version:
            return False
    pointed = read_pointer(pipeline)
    if any(of_pointer(pointed.step, pointed.versions, past)):
        return False
    # A table that the ledger does not name may be somebody else's, or newer than the ledger.
    names = {window.name for window in pipeline.windows} | {*state_names(pipeline)}
    unknown = names - past.recorded_tables
    return not any(has_commit(pipeline.table(name)) for name in unknown)


def _moves_watermark(pipeline: Pipeline, past: LedgerExcerpt, clock_us: int) -> bool:
    """Whether the watermark of a quiet source advances by the clock."""
    arrival_us = max(clock_us, past.last_arrival or clock_us)
    quiet = None if past.quiet_since is None else Quiet(*past.quiet_since)
    after_us = advance_idle_watermark(past.watermark, quiet, arrival_us, pipeline.watermark)
    return after_us != past.watermark
