"""What must be true before anything is written: the source is there and unchanged, and checkpoint, ledger and tables tell one story."""

from collections.abc import Callable, Iterator, Mapping, Sequence

from delta.tables import DeltaTable
from pyspark.sql import SparkSession
from pyspark.sql import types as T

from jobs.preflight import checkpoint, tables
from jobs.preflight.spec_changes import difference, same_spec, same_types
from windowing import delta
from windowing.admit.table import REFUSED
from windowing.doctor.rule import Finding, advice, of_stream, of_tables
from windowing.errors import StateRefused
from windowing.ledger.rule import Story
from windowing.ledger.table import story
from windowing.panes.rule import state_names
from windowing.source import table as source
from windowing.spec.pipeline import Pipeline
from windowing.spec.words import listed

HARMLESS = (
    "OPTIMIZE",
    "VACUUM START",
    "VACUUM END",
    "SET TBLPROPERTIES",
    "UNSET TBLPROPERTIES",
    "UPGRADE PROTOCOL",
    "COMPUTE STATS",
)
"""Operations from outside that leave every row of a table as it is."""
_FOLLOWED = "CHANGE COLUMN"
"""Refused rows follow the types of the source before a run begins; a run that is killed then has recorded nothing yet."""


def prepared(spark: SparkSession, pipeline: Pipeline) -> Story:
    """The ledger's story, once source and spec agree with it; makes ledger and outputs until something was read."""
    past = story(spark, pipeline)
    for refused in problems(spark, pipeline, past):
        raise refused
    if past.made_by is None:
        tables.make(spark, pipeline)
    else:
        tables.follow_source_types(spark, pipeline)
    return past


def problems(spark: SparkSession, pipeline: Pipeline, past: Story) -> Iterator[StateRefused]:
    """Whatever doesn't fit the ledger's story, looked for as far as it is asked for. SourceMissing and SpecError are raised."""
    found = source.schema(spark, pipeline)
    yield from source_problems(spark, pipeline, found, past)
    yield from (refused(pipeline, finding) for finding in examine(spark, pipeline, past))
    yield from _raised(lambda: same_types(pipeline, found, past))
    yield from _raised(lambda: same_spec(pipeline, past))


def source_problems(
    spark: SparkSession, pipeline: Pipeline, found: T.StructType, past: Story
) -> Iterator[StateRefused]:
    """Whatever of the source, whose columns are `found`, doesn't fit spec and story. SpecError is raised."""
    read_by = Story() if difference(pipeline, past) else past
    yield from _raised(lambda: source.check(pipeline, found, read_by))
    source.check_feed(spark, pipeline)
    yield from _raised(lambda: source.check_identity(spark, pipeline, past))


def _raised(check: Callable[[], None]) -> Iterator[StateRefused]:
    try:
        check()
    except StateRefused as refused:
        yield refused


def examine(spark: SparkSession, pipeline: Pipeline, past: Story) -> tuple[Finding, ...]:
    """Everything that does not fit; nothing is written."""
    if not past.entries:
        return _left_behind(spark, pipeline) or of_stream(checkpoint.stream(pipeline), past)
    recorded = past.versions
    there = {name: _version(spark, pipeline, name) for name in recorded}
    foreign = {} if past.is_open else _foreign(spark, pipeline, recorded, there)
    strange = () if past.is_open else _strangers(spark, pipeline, past)
    return (
        *of_stream(checkpoint.stream(pipeline), past),
        *of_tables(recorded, there, foreign),
        *strange,
    )


def _left_behind(spark: SparkSession, pipeline: Pipeline) -> tuple[Finding, ...]:
    """Tables that hold something although no ledger knows of them; without state among them nothing shows that they are the pipeline's."""
    state = [
        name
        for name in (*state_names(pipeline), *REFUSED)
        if delta.exists(spark, pipeline.table(name))
    ]
    others = [
        name
        for name in _homes(pipeline)
        if not name.startswith("_") and delta.size(spark, pipeline.table(name))[0]
    ]
    if state:
        return (
            Finding(
                "LEDGER_LOST", f"there is none, and {listed(sorted([*state, *others]))} hold rows"
            ),
        )
    return (_strange(others),) if others else ()


def _strangers(spark: SparkSession, pipeline: Pipeline, past: Story) -> tuple[Finding, ...]:
    """Tables with the names of windows that no step of the ledger has ever seen, and that hold something."""
    new = [w.name for w in pipeline.windows if not any(w.name in e.versions for e in past.entries)]
    found = [
        n
        for n in new
        if delta.exists(spark, pipeline.table(n)) and delta.size(spark, pipeline.table(n))[0]
    ]
    return (_strange(found),) if found else ()


def _strange(names: list[str]) -> Finding:
    return Finding(
        "TABLE_FOREIGN", f"{listed(names)} hold rows, and no run of this pipeline wrote them"
    )


def _homes(pipeline: Pipeline) -> list[str]:
    """The names of all tables in the pipeline's directory."""
    return sorted(log.parent.name for log in delta.local_path(pipeline.root).glob("*/_delta_log"))


def refused(pipeline: Pipeline, finding: Finding) -> StateRefused:
    """A finding as the error that a run ends with."""
    where = (
        checkpoint.directory(pipeline) if finding.code.startswith("CHECKPOINT") else pipeline.root
    )
    return StateRefused(
        finding.code, f"{where}: {finding.found}; {advice(pipeline, finding.repair)}"
    )


def _version(spark: SparkSession, pipeline: Pipeline, name: str) -> int | None:
    path = pipeline.table(name)
    return delta.version(spark, path) if delta.exists(spark, path) else None


def _foreign(
    spark: SparkSession,
    pipeline: Pipeline,
    recorded: Mapping[str, int],
    there: Mapping[str, int | None],
) -> dict[str, str]:
    """Operations newer than the ledger's last word, by table."""
    newer = {
        name: now - recorded[name]
        for name, now in there.items()
        if now is not None and now > recorded[name]
    }
    harmless = {name: (*HARMLESS, _FOLLOWED) if name in REFUSED else HARMLESS for name in newer}
    found = {
        name: _operations(spark, pipeline.table(name), many, harmless[name])
        for name, many in newer.items()
    }
    return {name: ", ".join(ops) for name, ops in found.items() if ops}


def _operations(spark: SparkSession, path: str, many: int, harmless: Sequence[str]) -> list[str]:
    rows = DeltaTable.forPath(spark, path).history(many).select("version", "operation").collect()
    return [
        f"{row['operation']} made version {row['version']}"
        for row in rows
        if row["operation"] not in harmless
    ]
