"""Plans the next run from the ledger and the log of the source; writes nothing and reads no rows.

ledger -> where the last run stopped -> commits of the source since then -> event times -> windows
they touch
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

from pyspark.sql import SparkSession

from jobs.diagnosis.diagnose import source_problems
from jobs.diagnosis.spec_changes import check_spec_change, spec_difference
from jobs.sessions.exact_session import in_exact_session
from windowing.admit.rule import lateness_cuts
from windowing.errors import StateRefused
from windowing.grid.zone import moment
from windowing.ledger.history import LedgerHistory
from windowing.ledger.table import read_history
from windowing.location import Location
from windowing.panes.rule import state_names, state_of
from windowing.report.text import left_open, plain, plain_fields
from windowing.source import table as source
from windowing.source.commits import Commit, total
from windowing.source.table import commits
from windowing.spec.description import describe_window
from windowing.spec.fingerprint import Evolution
from windowing.spec.kinds import Window
from windowing.spec.pipeline import Pipeline
from windowing.storage import delta, delta_log
from windowing.storage.stream_offsets import is_inside_version
from windowing.windows.reach import windows_touched


@dataclass(frozen=True)
class News:
    """What of the source was not read yet: the commits from version `since` to `version`.

    `files`, `rows` and `event_times` (first and last) are None where a commit doesn't record them,
    and where a run that was interrupted has read a part of one.
    `rewrites` names the commits that change rows already in the source, as (version, operation).
    """

    table: Location
    version: int
    since: int
    commits: int
    files: int | None
    rows: int | None
    event_times: tuple[datetime, datetime] | None = None
    rewrites: tuple[tuple[int, str], ...] = ()


@dataclass(frozen=True)
class Touched:
    """One output: its newest and published versions, and the windows that new events belong to.

    These windows overlap `span` [from, to), `state` is the table they are computed from. Windows
    that end until `closed_until` accept no more events. None: not known.
    """

    name: str
    kind: str
    state: str
    version: int | None
    published: int | None
    closed_until: datetime | None
    span: tuple[datetime, datetime] | None


@dataclass(frozen=True)
class Plan:
    """The next run: `run` is its number, and `watermark` decides which of its rows are late.

    `tables` has the windows that each state table serves, `left_open` the steps that were
    interrupted. `refused` is why the run would be refused for how its spec has changed; None where
    it would not.
    """

    pipeline: str
    run: int
    watermark: datetime | None
    news: News
    outputs: tuple[Touched, ...]
    tables: Mapping[str, tuple[str, ...]]
    left_open: tuple[str, ...]
    spec: Evolution
    refused: str | None

    def as_json(self) -> dict[str, object]:
        """The plan as plain JSON values."""
        rewrites = [
            {"version": version, "operation": operation}
            for version, operation in self.news.rewrites
        ]
        return {
            "pipeline": self.pipeline,
            "run": self.run,
            "watermark": plain(self.watermark),
            "source": {**plain_fields(self.news), "rewrites": rewrites},
            "windows": {output.name: plain_fields(output, "name") for output in self.outputs},
            "state": plain(self.tables),
            "left_open": list(self.left_open),
            "spec": {**plain_fields(self.spec), "refused": self.refused},
        }


@in_exact_session
def explain(spark: SparkSession, pipeline: Pipeline) -> Plan:
    """What `run` would do now; writes nothing.

    Raises SourceMissing and SpecError as `run` does, and StateRefused where the source is the
    reason.
    """
    past = read_history(pipeline)
    for refused in source_problems(spark, pipeline, source.checked_schema(spark, pipeline), past):
        raise refused
    unread = news(spark, pipeline, past, delta_log.version(spark, pipeline.source.table))
    # An interrupted run is finished under its own number.
    interrupted_run = past.open_run.run if past.open_run else None
    return Plan(
        pipeline=pipeline.name,
        run=interrupted_run or past.last_run + 1,
        watermark=None if past.watermark is None else moment(past.watermark),
        news=unread,
        outputs=tuple(_explain_output(pipeline, w, past, unread) for w in pipeline.windows),
        tables=state_names(pipeline),
        left_open=left_open(past),
        spec=spec_difference(pipeline, past),
        refused=_explain_refusal(pipeline, past),
    )


def _explain_refusal(pipeline: Pipeline, past: LedgerHistory) -> str | None:
    """Why the run would be refused for how its spec has changed; None where it would not."""
    try:
        check_spec_change(pipeline, past)
    except StateRefused as refused:
        return refused.message
    return None


def news(spark: SparkSession, pipeline: Pipeline, past: LedgerHistory, version: int) -> News:
    """What of the source up to `version` no finished batch has read.

    Before the first batch that is the whole source.
    """
    since = past.next_version
    if since is None:
        return _whole_source(spark, pipeline.source.table, version)
    # A commit is None where the log has been cleaned up since it was written.
    unread = commits(spark, pipeline, since, version)
    known = [c for c in unread if c is not None]
    offsets = past.offsets(past.last_batch)
    is_begun = offsets is not None and is_inside_version(offsets)
    complete = len(known) == len(unread) and not is_begun
    return News(
        table=pipeline.source.table,
        version=version,
        since=since,
        commits=max(0, version - since + 1),
        files=sum(c.files for c in known) if complete else None,
        rows=total(c.rows for c in known) if complete else None,
        event_times=_event_times(known) if complete else None,
        rewrites=tuple((c.version, c.operation) for c in known if c.rewrites),
    )


def _whole_source(spark: SparkSession, table: Location, version: int) -> News:
    files, _ = delta_log.size(spark, table)
    rows = delta.read(spark, table).count()
    return News(table, version, since=0, commits=version + 1, files=files, rows=rows)


def _event_times(commits: list[Commit]) -> tuple[datetime, datetime] | None:
    """The first and the last event time, if every commit that added files records its own."""
    adding = [c for c in commits if c.files]
    lows = [c.low_us for c in adding if c.low_us is not None]
    highs = [c.high_us for c in adding if c.high_us is not None]
    if not adding or len(lows) < len(adding) or len(highs) < len(adding):
        return None
    return moment(min(lows)), moment(max(highs))


def _explain_output(
    pipeline: Pipeline, window: Window, past: LedgerHistory, unread: News
) -> Touched:
    newest, published = past.newest, past.published
    closed_until = {c.window: moment(c.some_us) for c in lateness_cuts(pipeline, past.watermark)}
    return Touched(
        name=window.name,
        kind=describe_window(window).text,
        state=state_of(pipeline, window),
        version=newest.versions.get(window.name) if newest else None,
        published=published.versions.get(window.name) if published else None,
        closed_until=closed_until.get(window.name),
        span=windows_touched(window, *unread.event_times) if unread.event_times else None,
    )
