"""Diagnosis before anything is written: source, ledger, tables and pointer are consistent.

The ledger is what the others are compared with.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial

from pyspark.sql import SparkSession
from pyspark.sql import functions as F
from pyspark.sql import types as T

from jobs.diagnosis import tables
from jobs.diagnosis.pointer import POINTER, read_pointer
from jobs.diagnosis.spec_changes import (
    check_erased_columns,
    check_source_types,
    check_spec_change,
    spec_difference,
)
from jobs.foreign_errors.control_errors import control_errors_explained
from windowing.admit.outcomes import REFUSED
from windowing.columns import RUN
from windowing.doctor.rule import (
    Finding,
    advise_on,
    of_batches,
    of_pointer,
    of_runs,
    of_tables,
)
from windowing.errors import StateRefused
from windowing.ledger.rule import LedgerExcerpt
from windowing.location import Location
from windowing.panes.rule import state_names
from windowing.panes.table import name_application
from windowing.source import table as source
from windowing.source.upstream import check_upstream
from windowing.spec.pipeline import Pipeline
from windowing.spec.words import join_names
from windowing.storage import control, own_tables, upkeep
from windowing.storage.fence import OPERATION
from windowing.storage.files import list_tables
from windowing.storage.kept_open import has_commit, newest_version

HARMLESS = (
    "OPTIMIZE",
    "VACUUM START",
    "VACUUM END",
    "SET TBLPROPERTIES",
    "UNSET TBLPROPERTIES",
    "UPGRADE PROTOCOL",
    "COMPUTE STATS",
    OPERATION,
)
"""Operations by other programs, and of a lock taken over, that leave every row as it is."""
_WIDENED = "CHANGE COLUMN"
"""Harmless for refused rows, whose types follow those of the source before a run records anything.

A run that is killed at that time leaves a newer version than the ledger has recorded.
"""


def prepare_run(spark: SparkSession, pipeline: Pipeline, past: LedgerExcerpt) -> T.StructType:
    """The source's schema, once source, spec and ledger are found consistent.

    Raises the error of a run where they are not. Before the first run that reads rows, ledger and
    outputs are created or follow the spec.
    """
    found = source.checked_schema(spark, pipeline)
    # The first problem ends the run, so the checks after it are not made.
    for problem in find_problems(spark, pipeline, found, past):
        raise problem
    if past.made_by is None:
        tables.ensure_tables(spark, pipeline)
    else:
        tables.follow_source_types(spark, pipeline)
    return found


def find_problems(
    spark: SparkSession, pipeline: Pipeline, found: T.StructType, past: LedgerExcerpt
) -> Iterator[StateRefused]:
    """Whatever is not consistent with the ledger, each as the error of a run.

    `found` is the source's schema. Each check runs when its problem is asked for, so a run that
    stops at the first one does not wait for the others. SpecError is raised.
    """
    yield from source_problems(spark, pipeline, found, past)
    damaged = tuple(find_damaged_tables(pipeline, past))
    yield from damaged
    # The history of a damaged table can't be read, so tables are compared when all can be read.
    if not damaged:
        for finding in examine_tables(spark, pipeline, past):
            yield refusal_of(pipeline, finding)
    yield from _yield_refusal(lambda: check_source_types(pipeline, found, past))
    yield from _yield_refusal(lambda: check_spec_change(pipeline, past))


def source_problems(
    spark: SparkSession, pipeline: Pipeline, found: T.StructType, past: LedgerExcerpt
) -> Iterator[StateRefused]:
    """Whatever of the source is not consistent with spec and ledger. SpecError is raised.

    `found` is the source's schema.
    """
    check_upstream(pipeline, past)
    # A spec that differs may read other columns, so the columns are checked as for a first run.
    read_by = LedgerExcerpt() if spec_difference(pipeline, past) else past
    yield from _yield_refusal(lambda: source.check(pipeline, found, read_by))
    source.check_feed(spark, pipeline)
    yield from _yield_refusal(lambda: source.check_identity(spark, pipeline, past))
    yield from _yield_refusal(lambda: check_erased_columns(pipeline, found, past))


def _yield_refusal(check: Callable[[], None]) -> Iterator[StateRefused]:
    try:
        check()
    except StateRefused as refusal:
        yield refusal


def find_damaged_tables(pipeline: Pipeline, past: LedgerExcerpt) -> Iterator[StateRefused]:
    """Tables of the ledger whose log can't be read, each as the error of a run."""
    for name in past.versions:
        yield from _yield_refusal(partial(_read_log, pipeline, name))


def _read_log(pipeline: Pipeline, name: str) -> None:
    with control_errors_explained(pipeline):
        control.read_version(pipeline.table(name))


def examine_tables(
    spark: SparkSession, pipeline: Pipeline, past: LedgerExcerpt
) -> tuple[Finding, ...]:
    """Everything of tables and pointer that is not consistent with the ledger; only reads.

    The first finding is one whose repair includes the repair of the others.
    No table is damaged.
    """
    if not past.entries:
        return _find_left_behind(spark, pipeline)
    recorded = past.versions
    present = {name: _read_version(pipeline.table(name)) for name in recorded}
    foreign: dict[str, str] = {}
    unknown: tuple[Finding, ...] = ()
    # While a run is open, tables may be newer than the last versions that the ledger recorded.
    if not past.is_open:
        foreign = _find_foreign_operations(spark, pipeline, recorded, present)
        unknown = _find_unknown_tables(spark, pipeline, past)
    pointed = read_pointer(pipeline)
    return (
        *of_batches(_read_batches(pipeline), past),
        *of_tables(recorded, present, foreign),
        *_find_newer_outputs(spark, pipeline, past),
        *unknown,
        # A pointer that is rebuilt does not help where the tables are wrong, too.
        *of_pointer(pointed.step, pointed.versions, past),
    )


def _find_newer_outputs(
    spark: SparkSession, pipeline: Pipeline, past: LedgerExcerpt
) -> Iterable[Finding]:
    """Outputs with rows of runs that the ledger has not begun.

    While nothing is open, an output is newer by its version already.
    """
    if not past.is_open:
        return ()
    newest = {}
    for name in tables.output_names(pipeline):
        path = pipeline.table(name)
        if name in past.versions and has_commit(path):
            ((run,),) = own_tables.read(spark, path).agg(F.max(RUN)).collect()
            newest[name] = run or 0
    return of_runs(newest, past)


def _read_batches(pipeline: Pipeline) -> dict[str, int]:
    """The newest batch that each table of state or refused rows contains, by table."""
    found = {}
    for name in (*state_names(pipeline), *REFUSED):
        with control_errors_explained(pipeline):
            batch = control.read_committed(pipeline.table(name), name_application(pipeline, name))
        if batch is not None:
            found[name] = batch
    return found


def _find_left_behind(spark: SparkSession, pipeline: Pipeline) -> tuple[Finding, ...]:
    """Tables that contain rows although there is no ledger.

    Only state tables show that the tables are the pipeline's. Without them they count as foreign.
    """
    state = []
    for name in (*state_names(pipeline), *REFUSED):
        if has_commit(pipeline.table(name)):
            state.append(name)
    others = []
    for name in list_tables(pipeline.root):
        if not name.startswith("_") and own_tables.size(spark, pipeline.table(name))[0]:
            others.append(name)
    if state:
        names = join_names(sorted([*state, *others]))
        return (Finding("LEDGER_LOST", f"there is no ledger, but {names} contain rows"),)
    if others:
        return (_foreign_tables(others),)
    return ()


def _find_unknown_tables(
    spark: SparkSession, pipeline: Pipeline, past: LedgerExcerpt
) -> tuple[Finding, ...]:
    """Tables that have the name of a window and contain rows, but are in no entry of the ledger."""
    recorded = past.recorded_tables
    found = []
    for window in pipeline.windows:
        path = pipeline.table(window.name)
        if window.name in recorded or not has_commit(path):
            continue
        if own_tables.size(spark, path)[0]:
            found.append(window.name)
    if not found:
        return ()
    return (_foreign_tables(found),)


def _foreign_tables(names: list[str]) -> Finding:
    return Finding(
        "TABLE_FOREIGN", f"{join_names(names)} hold rows, and no run of this pipeline wrote them"
    )


def refusal_of(pipeline: Pipeline, finding: Finding) -> StateRefused:
    """A finding as the error that a run ends with."""
    where = pipeline.root
    if finding.code.startswith("POINTER"):
        where = pipeline.table(POINTER)
    repair = advise_on(pipeline, finding)
    return StateRefused(finding.code, f"{where}: {finding.found}; {repair}")


def _read_version(path: Location) -> int | None:
    return newest_version(path) if has_commit(path) else None


def _find_foreign_operations(
    spark: SparkSession,
    pipeline: Pipeline,
    recorded: Mapping[str, int],
    present: Mapping[str, int | None],
) -> dict[str, str]:
    """Operations newer than the versions that the ledger recorded, unless harmless, by table."""
    found = {}
    for name, version in present.items():
        if version is None or version <= recorded[name]:
            continue
        harmless = (*HARMLESS, _WIDENED) if name in REFUSED else HARMLESS
        newer = version - recorded[name]
        operations = _read_operations(spark, pipeline.table(name), newer, harmless)
        if operations:
            found[name] = ", ".join(operations)
    return found


def _read_operations(
    spark: SparkSession, path: Location, newest: int, harmless: Sequence[str]
) -> list[str]:
    """The operations of the `newest` versions, without those that are harmless."""
    return [
        f"{operation} made version {version}"
        for version, operation in upkeep.list_history(spark, path, newest)
        if operation not in harmless
    ]
