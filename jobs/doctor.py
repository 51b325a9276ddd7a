"""Whether checkpoint, ledger and tables tell one story; every run asks before it writes, and `recover` repairs what the ledger can."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from delta.tables import DeltaTable
from pyspark.sql import SparkSession

from jobs import checkpoint, lock
from jobs.exact_session import in_exact_session
from jobs.show import state_names
from windowing import delta
from windowing.admit.table import REFUSED
from windowing.doctor.rule import RECOVER, Finding, advice, of_stream, of_tables
from windowing.errors import StateRefused
from windowing.ledger.rule import Story
from windowing.ledger.table import story
from windowing.spec.pipeline import Pipeline
from windowing.spec.words import listed

HARMLESS = ("OPTIMIZE", "VACUUM START", "VACUUM END", "SET TBLPROPERTIES", "UNSET TBLPROPERTIES", "UPGRADE PROTOCOL", "COMPUTE STATS")
"""Operations from outside that leave every row of a table as it is."""
_FOLLOWED = "CHANGE COLUMN"
"""Refused rows follow the types of the source before a run begins; a run that is killed then has recorded nothing yet."""


@dataclass(frozen=True)
class Repaired:
    """What `recover` found, and where it put the old checkpoint."""

    findings: tuple[Finding, ...]
    kept: str | None

    def as_json(self) -> dict[str, object]:
        """The repair as plain JSON values."""
        return {"repaired": [{"code": f.code, "found": f.found} for f in self.findings], "kept": self.kept}


def examine(spark: SparkSession, pipeline: Pipeline, past: Story) -> tuple[Finding, ...]:
    """Everything that does not fit; nothing is written."""
    if not past.entries:
        return _left_behind(spark, pipeline) or of_stream(checkpoint.stream(pipeline), past)
    recorded = past.versions
    there = {name: _version(spark, pipeline, name) for name in recorded}
    foreign = {} if past.is_open else _foreign(spark, pipeline, recorded, there)
    strange = () if past.is_open else _strangers(spark, pipeline, past)
    return (*of_stream(checkpoint.stream(pipeline), past), *of_tables(recorded, there, foreign), *strange)


def _left_behind(spark: SparkSession, pipeline: Pipeline) -> tuple[Finding, ...]:
    """Tables that hold something although no ledger knows of them; without state among them nothing shows that they are the pipeline's."""
    state = [name for name in (*state_names(pipeline), *REFUSED) if delta.exists(spark, pipeline.table(name))]
    others = [name for name in _homes(pipeline) if not name.startswith("_") and delta.size(spark, pipeline.table(name))[0]]
    if state:
        return (Finding("LEDGER_LOST", f"there is none, and {listed(sorted([*state, *others]))} hold rows"),)
    return (_strange(others),) if others else ()


def _strangers(spark: SparkSession, pipeline: Pipeline, past: Story) -> tuple[Finding, ...]:
    """Tables with the names of windows that no step of the ledger has ever seen, and that hold something."""
    new = [w.name for w in pipeline.windows if not any(w.name in e.versions for e in past.entries)]
    found = [n for n in new if delta.exists(spark, pipeline.table(n)) and delta.size(spark, pipeline.table(n))[0]]
    return (_strange(found),) if found else ()


def _strange(names: list[str]) -> Finding:
    return Finding("TABLE_FOREIGN", f"{listed(names)} hold rows, and no run of this pipeline wrote them")


def _homes(pipeline: Pipeline) -> list[str]:
    """The names of all tables in the pipeline's directory."""
    return sorted(log.parent.name for log in delta.local_path(pipeline.root).glob("*/_delta_log"))


@in_exact_session
def recover(spark: SparkSession, pipeline: Pipeline) -> Repaired:
    """Makes the checkpoint anew where the ledger can tell what was in it; StateRefused for anything else."""
    with lock.writer(spark, pipeline):
        past = story(spark, pipeline)
        found = examine(spark, pipeline, past)
        if not found:
            return Repaired((), None)
        if _worst(found).repair != RECOVER:
            raise refused(pipeline, _worst(found))
        kept = checkpoint.rebuild(pipeline, past)
        return Repaired(found, None if kept is None else str(kept))


def refused(pipeline: Pipeline, finding: Finding) -> StateRefused:
    """A finding as the error that a run ends with."""
    where = checkpoint.directory(pipeline) if finding.code.startswith("CHECKPOINT") else pipeline.root
    return StateRefused(finding.code, f"{where}: {finding.found}; {advice(pipeline, finding.repair)}")


def _worst(found: tuple[Finding, ...]) -> Finding:
    """The finding whose repair includes the others'."""
    return max(found, key=lambda f: f.repair != RECOVER)


def _version(spark: SparkSession, pipeline: Pipeline, name: str) -> int | None:
    path = pipeline.table(name)
    return delta.version(spark, path) if delta.exists(spark, path) else None


def _foreign(spark: SparkSession, pipeline: Pipeline, recorded: Mapping[str, int], there: Mapping[str, int | None]) -> dict[str, str]:
    """Operations newer than the ledger's last word, by table."""
    newer = {name: now - recorded[name] for name, now in there.items() if now is not None and now > recorded[name]}
    harmless = {name: (*HARMLESS, _FOLLOWED) if name in REFUSED else HARMLESS for name in newer}
    found = {name: _operations(spark, pipeline.table(name), many, harmless[name]) for name, many in newer.items()}
    return {name: ", ".join(ops) for name, ops in found.items() if ops}


def _operations(spark: SparkSession, path: str, many: int, harmless: Sequence[str]) -> list[str]:
    rows = DeltaTable.forPath(spark, path).history(many).select("version", "operation").collect()
    return [f"{row['operation']} made version {row['version']}" for row in rows if row["operation"] not in harmless]
