"""Points readers at validated versions: one ledger row is the truth, `_published.json` its copy."""

import os
from collections.abc import Container, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from json import dumps

from pyspark.sql import Row, SparkSession

from expectations.table import read_outcomes
from jobs.preflight import lock
from jobs.preflight.exact_session import in_exact_session
from windowing import delta
from windowing.crash import crashpoint
from windowing.delta import local_path
from windowing.errors import ExpectationsFailed, UsageError
from windowing.grid.zone import micros
from windowing.ledger.rule import BACKFILL_DONE, CLOSE, FINISHED, PUBLISH, Entry, Story
from windowing.ledger.table import record, story
from windowing.source.rule import pending
from windowing.spec.pipeline import Pipeline

POINTER = "_published.json"


@dataclass(frozen=True)
class Publication:
    """What readers see now: by output its version and how many rows that holds."""

    run: int
    outputs: dict[str, dict[str, int]]
    accepted: str | None = None

    def as_json(self) -> dict[str, object]:
        """The publication as plain JSON values."""
        return {"run": self.run, "outputs": self.outputs, "accepted": self.accepted}


@in_exact_session
def publish(spark: SparkSession, pipeline: Pipeline, accept: str | None = None) -> Publication:
    """Publishes every output at the version that the newest finished run wrote, if its expectations passed.

    Where a run or backfill came after the one that was validated, that one is published, unless it was already. `accept` publishes
    failed ones and is recorded; before the first finished run there is nothing to publish. Raises ExpectationsFailed, with nothing
    published, when they failed or were not checked.
    """
    with lock.writer(spark, pipeline):
        past = story(spark, pipeline)
        subject = past.newest
        if subject is None:
            return Publication(0, {})
        if accept is None:
            outcomes = read_outcomes(spark, pipeline, past)
            subject = due(past, {row["seq"] for row in outcomes}) or subject
            _must_have_passed(
                pipeline, subject, [row for row in outcomes if row["seq"] == subject.seq]
            )
            _must_be_settled(pipeline, subject, past)
        if past.open_erasure is not None and subject.seq < past.open_erasure.seq:
            raise UsageError(
                f"{pipeline.name}: a key was not erased to the end, so nothing is published; ask for the erasure again"
            )
        named = [w.name for w in pipeline.windows if w.name in subject.versions]
        rows = {
            name: delta.read(spark, pipeline.table(name), subject.versions[name]).count()
            for name in named
        }
        result = Publication(
            subject.run or 0,
            {n: {"version": subject.versions[n], "rows": rows[n]} for n in rows},
            accept,
        )
        if accept is not None or _shown(past.published) != _shown(subject):
            past = _note(spark, pipeline, past, subject, accept)
            crashpoint("publish.noted")
        _point(pipeline, result, past.published)
        return result


def follow(
    spark: SparkSession, pipeline: Pipeline, past: Story, versions: Mapping[str, int]
) -> Story:
    """Points readers at `versions`, which hold what they are pointed at but for what was erased."""
    before = past.published
    if before is None:
        return past
    named = [w.name for w in pipeline.windows if w.name in before.versions]
    rows = {name: delta.read(spark, pipeline.table(name), versions[name]).count() for name in named}
    entry = replace(before, at=micros(datetime.now(UTC)), versions=versions)
    past = record(spark, pipeline, past, [entry])
    crashpoint("publish.noted")
    _point(
        pipeline,
        Publication(before.run or 0, {n: {"version": versions[n], "rows": rows[n]} for n in rows}),
        past.published,
    )
    return past


def unseen(past: Story) -> tuple[Entry, ...]:
    """The finished steps, oldest first, that came after what readers are pointed at."""
    seen, finished = past.published, [e for e in past.entries if e.step in FINISHED]
    until = (
        -1
        if seen is None
        else max((e.seq for e in finished if e.versions == seen.versions), default=seen.seq)
    )
    return tuple(e for e in finished if e.seq > until)


def awaited(spark: SparkSession, pipeline: Pipeline, past: Story) -> Entry | None:
    """The step that `publish` would publish although others came after it."""
    return due(past, {row["seq"] for row in read_outcomes(spark, pipeline, past)})


def due(past: Story, validated: Container[int]) -> Entry | None:
    """The newest step that was validated and is not published yet, when nothing but runs and backfills came after it."""
    for entry in reversed([e for e in past.entries if e.step in (*FINISHED, PUBLISH)]):
        if entry.step == PUBLISH:
            return None
        if entry.seq in validated:
            return entry
        if entry.step not in (CLOSE, BACKFILL_DONE):
            return None
    return None


def _must_have_passed(pipeline: Pipeline, subject: Entry, rows: list[Row]) -> None:
    latest = max((r["checked_at"] for r in rows), default=None)
    failed = [
        f"{r['window']}: {r['expectation']}"
        for r in rows
        if _blocks(r["severity"], r["success"]) and r["checked_at"] == latest
    ]
    if not rows:
        raise ExpectationsFailed(
            f"{pipeline.name}: run {subject.run} has not been validated; `tidemark validate` first"
        )
    if failed:
        raise ExpectationsFailed(
            f"{pipeline.name}: nothing published, run {subject.run} breaks {len(failed)} critical expectations ({'; '.join(failed[:3])}); "
            "repair the data, or publish with --accept REASON"
        )


def _must_be_settled(pipeline: Pipeline, subject: Entry, past: Story) -> None:
    if any(pending(Story(tuple(e for e in past.entries if e.seq <= subject.seq)))):
        raise UsageError(
            f"{pipeline.name}: run {subject.run} was ended before it had counted again what the source has changed; "
            "`tidemark run` and `validate` first"
        )


def _shown(entry: Entry | None) -> tuple[Mapping[str, int], int | None] | None:
    """What readers see by an entry: rows by versions, what is closed by the run."""
    return None if entry is None else (entry.versions, entry.run)


def _blocks(severity: str, success: bool) -> bool:  # noqa: FBT001 (a column's value)
    return severity == "critical" and not success


def _note(
    spark: SparkSession, pipeline: Pipeline, past: Story, subject: Entry, accept: str | None
) -> Story:
    note = None if accept is None else dumps({"accepted": accept})
    entry = Entry(
        PUBLISH, run=subject.run, at=micros(datetime.now(UTC)), versions=subject.versions, note=note
    )
    return record(spark, pipeline, past, [entry])


def _point(pipeline: Pipeline, result: Publication, entry: Entry | None) -> None:
    """Replaces the pointer file in one step; readers see the old or the new one, never a part."""
    path = local_path(pipeline.table(POINTER))
    draft = path.with_suffix(".draft")
    text = dumps(
        {"pipeline": pipeline.name, "seq": entry.seq if entry else None, **result.as_json()},
        indent=2,
    )
    with draft.open("w", encoding="utf-8") as file:
        file.write(text + "\n")
        file.flush()
        os.fsync(file.fileno())
    crashpoint("publish.drafted")
    os.replace(draft, path)
    directory = os.open(path.parent, os.O_RDONLY)
    os.fsync(directory)
    os.close(directory)
    crashpoint("publish.pointed")
