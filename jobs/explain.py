"""The plan of the next run, read off the ledger and the source's log; nothing is written, no row is read.

ledger -> where the last run stopped -> commits of the source since then -> event times -> windows they touch
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from delta.tables import DeltaTable
from pyspark.sql import SparkSession

from jobs.preflight.diagnose import source_problems
from jobs.preflight.exact_session import in_exact_session
from jobs.preflight.spec_changes import difference
from windowing import delta
from windowing.admit.rule import cuts
from windowing.grid.zone import moment
from windowing.ledger.rule import Story
from windowing.ledger.table import story
from windowing.panes.rule import state_names, state_of
from windowing.report.text import kind, left_open, plain
from windowing.source import table as source
from windowing.source.commits import Commit, total
from windowing.source.table import commits
from windowing.spec.fingerprint import Evolution
from windowing.spec.kinds import Window
from windowing.spec.pipeline import Pipeline
from windowing.windows.reach import touched


@dataclass(frozen=True)
class News:
    """What of the source was not read yet: commits from version `since` to `version`; None: the number is not known."""

    table: str
    version: int
    since: int
    commits: int
    files: int | None
    rows: int | None
    event_times: tuple[datetime, datetime] | None = None
    rewrites: tuple[tuple[int, str], ...] = ()


@dataclass(frozen=True)
class Touched:
    """One output: its versions, and the span [from, to) of the windows that new events fall into, as far as it is known."""

    name: str
    kind: str
    state: str
    version: int | None
    published: int | None
    closed_until: datetime | None
    span: tuple[datetime, datetime] | None


@dataclass(frozen=True)
class Plan:
    """The next run: `run` is its number, `watermark` what its rows are judged by; `left_open` names what was begun and not finished."""

    pipeline: str
    run: int
    watermark: datetime | None
    news: News
    outputs: tuple[Touched, ...]
    tables: Mapping[str, tuple[str, ...]]
    left_open: tuple[str, ...]
    spec: Evolution

    def as_json(self) -> dict[str, object]:
        """The plan as plain JSON values."""
        news = {k: v for k, v in vars(self.news).items() if k != "rewrites"}
        rewrites = [
            {"version": version, "operation": operation}
            for version, operation in self.news.rewrites
        ]
        return {
            "pipeline": self.pipeline,
            "run": self.run,
            "watermark": plain(self.watermark),
            "source": {**plain(news), "rewrites": rewrites},
            "windows": {
                o.name: plain({k: v for k, v in vars(o).items() if k != "name"})
                for o in self.outputs
            },
            "state": {table: list(windows) for table, windows in self.tables.items()},
            "left_open": list(self.left_open),
            "spec": plain(vars(self.spec)),
        }


@in_exact_session
def explain(spark: SparkSession, pipeline: Pipeline) -> Plan:
    """What `run` would do now. Raises SourceMissing, SpecError and, where the source is why, StateRefused as `run` would."""
    past = story(spark, pipeline)
    for refused in source_problems(spark, pipeline, source.schema(spark, pipeline), past):
        raise refused
    fresh = news(spark, pipeline, past, delta.version(spark, pipeline.source.table))
    return Plan(
        pipeline=pipeline.name,
        run=past.open_run.run if past.open_run and past.open_run.run else past.last_run + 1,
        watermark=None if past.watermark is None else moment(past.watermark),
        news=fresh,
        outputs=tuple(_output(pipeline, w, past, fresh) for w in pipeline.windows),
        tables=state_names(pipeline),
        left_open=left_open(past),
        spec=difference(pipeline, past),
    )


def news(spark: SparkSession, pipeline: Pipeline, past: Story, version: int) -> News:
    """What the source got since the last finished batch; before the first one, all it holds."""
    since = past.next_version
    if since is None:
        table = _delta_table(spark, pipeline.source.table)
        files = int(_detail(table, "numFiles"))
        return News(pipeline.source.table, version, 0, version + 1, files, table.toDF().count())
    new = commits(spark, pipeline, since, version)
    known = [c for c in new if c is not None]
    complete = len(known) == len(new)
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


def _delta_table(spark: SparkSession, table: str) -> DeltaTable:
    return DeltaTable.forPath(spark, table) if "/" in table else DeltaTable.forName(spark, table)


def _detail(table: DeltaTable, column: str) -> Any:
    return table.detail().select(column).collect()[0][0]


def _event_times(commits: list[Commit]) -> tuple[datetime, datetime] | None:
    """The least and the greatest event time, if every commit with rows tells."""
    told = [c for c in commits if c.files]
    low, high = [c.low for c in told if c.low], [c.high for c in told if c.high]
    return (min(low), max(high)) if told and len(low) == len(high) == len(told) else None


def _output(pipeline: Pipeline, window: Window, past: Story, fresh: News) -> Touched:
    newest, seen = past.newest, past.published
    closed = {c.window: moment(c.some_us) for c in cuts(pipeline, past.watermark)}
    return Touched(
        name=window.name,
        kind=kind(window),
        state=state_of(pipeline, window),
        version=newest.versions.get(window.name) if newest else None,
        published=seen.versions.get(window.name) if seen else None,
        closed_until=closed.get(window.name),
        span=None if fresh.event_times is None else touched(window, *fresh.event_times),
    )
