"""The Delta source: its identity, its commits, and whether its columns still fit the spec."""

import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql import types as T

from windowing.aggregates.algebra import INTEGERS
from windowing.doctor.rule import advice
from windowing.errors import SourceMissing, SpecError, StateRefused, UsageError
from windowing.expressions.compile import compile_condition
from windowing.grid.zone import moment
from windowing.ledger.rule import LedgerEntry, LedgerExcerpt
from windowing.location import Location
from windowing.panes.frame import part_names
from windowing.source.commits import Commit, read_commit
from windowing.source.frame import shape_rows
from windowing.source.managed import check_features, managed_refused
from windowing.source.names import clash_of_columns, clash_of_parts
from windowing.source.rewrites import Rewrite, find_rewrites
from windowing.source.rule import CLOCK_SKEW_US
from windowing.source.upstream import describe_missing
from windowing.source.widening import schemas_over_time
from windowing.spec.aggregate_description import Takes, describe_aggregate
from windowing.spec.description import describe_window
from windowing.spec.kinds import Aggregate, Expression, Window
from windowing.spec.pipeline import Pipeline, Source
from windowing.spec.references import advise_name
from windowing.storage import delta, delta_log
from windowing.storage.files import read_commit_text
from windowing.storage.logged_commit import may_delete_files
from windowing.storage.table_figures import list_file_figures
from windowing.storage.table_properties import CHANGE_FEED, STORED_NAME, is_true

KEY_TYPES = (T.StringType, *INTEGERS, T.BooleanType, T.DateType, T.TimestampType, T.DecimalType)
"""The types of the values that rows are told apart by: those of keys, and those to erase."""
_TIMES = (T.TimestampType, T.TimestampNTZType, T.StringType, T.DateType)
_NUMBERS = (*INTEGERS, T.FloatType, T.DoubleType, T.DecimalType)
_SUMMED = (*_NUMBERS, T.StringType)
_ORDERED = (*_SUMMED, T.BooleanType, T.DateType, T.TimestampType)
_TAKEN = {
    Takes.ORDERED: _ORDERED,
    Takes.NUMBERS: _SUMMED,
    Takes.CONDITION: (T.BooleanType,),
}
"""The types that an aggregate accepts."""
_READ_TYPES = {
    "boolean": (T.BooleanType,),
    "timestamp": (T.TimestampType,),
    "number": _NUMBERS,
}
"""The types of a column that bounds windows, by the name that its description gives them."""


@dataclass(frozen=True)
class _Written:
    """How all of a value is written, and an example."""

    pattern: re.Pattern[str]
    example: str


_DATE = r"[+-]?\d+-\d+-\d+"
_CLOCK = r"\d+:\d+(:\d+(\.\d{1,6}0*)?)?"
_OFFSET = r"Z|UTC|[+-][\d:]+"
_IN_FULL: Mapping[type[T.DataType], _Written] = {
    T.DateType: _Written(re.compile(_DATE), "2013-03-10"),
    T.TimestampType: _Written(
        re.compile(f"{_DATE}([T ]{_CLOCK} ?({_OFFSET})?)?"), "2013-03-10T05:00:00Z"
    ),
}
"""By type whose values Spark also reads from texts that name only a part, or more than a value.

The clock of a named zone may show one time twice, so a zone is an offset.
"""

_Problem = tuple[str, str]
"""A field and what is wrong with it."""


class _Types(dict[str, T.DataType]):
    """The types of all columns by name; `stored` are those columns that are not computed."""

    def __init__(self, found: T.StructType, computed: Collection[str]) -> None:
        super().__init__((field.name, field.dataType) for field in found.fields)
        self.stored = sorted(name for name in self if name not in computed)


def schema(spark: SparkSession, pipeline: Pipeline) -> T.StructType:
    """The columns of the source; raises SourceMissing where there is no such table.

    Raises SpecError where Delta does not read it because a catalog manages it.
    """
    with managed_refused(pipeline):
        if not delta.exists(spark, pipeline.source.table):
            raise SourceMissing(describe_missing(pipeline))
    return read(spark, pipeline).schema


def checked_schema(spark: SparkSession, pipeline: Pipeline) -> T.StructType:
    """`schema`, for the first look of a command: SpecError where a catalog manages the source."""
    found = schema(spark, pipeline)
    check_features(pipeline, delta_log.known_features(spark, pipeline.source.table))
    return found


def read(spark: SparkSession, pipeline: Pipeline, version: int | None = None) -> DataFrame:
    """The events of the source with their computed columns, newest or at a version.

    Rows that `source.where` leaves out are not among them. Raises SpecError where a computed column
    has the name of a stored one, or an expression does not fit the types.
    """
    with managed_refused(pipeline):
        stored = delta.read(spark, pipeline.source.table, version)
    stored_names = {field.name.lower() for field in stored.schema.fields}
    for name, expression in pipeline.source.computed.items():
        if name.lower() in stored_names:
            field = pipeline.source.field_of(name)
            raise SpecError(field, _describe_taken(field, name, expression), pipeline.file)
    try:
        return shape_rows(stored, pipeline)
    except SpecError as error:
        raise SpecError(error.field, error.message, pipeline.file) from None


def _describe_taken(field: str, name: str, expression: Expression) -> str:
    """What to do about a computed column that has the name of a stored one."""
    if field == f"source.columns.{name}":
        return "is a column of the source already; name the computed one otherwise"
    wrong = f"{expression.sql!r} would be called {name!r}, which is a column of the source already"
    return f"{wrong}; {advise_name(expression)}"


def earlier_types(spark: SparkSession, pipeline: Pipeline) -> Mapping[str, tuple[T.DataType, ...]]:
    """By column whose type was widened the types it had before, oldest first.

    Computed columns are among them, because their types follow those of stored columns.
    """
    schemas = schemas_over_time(delta_log.known_schema(spark, pipeline.source.table))
    if len(schemas) == 1:
        return {}
    with_computed = []
    for stored in schemas:
        no_rows = delta.no_rows(spark, stored)
        with_computed.append(shape_rows(no_rows, pipeline).schema)
    earlier = {}
    newest = with_computed[-1]
    for field in newest.fields:
        types = dict.fromkeys(each[field.name].dataType for each in with_computed)
        types_before = tuple(kind for kind in types if kind != field.dataType)
        if types_before:
            earlier[field.name] = types_before
    return earlier


def check(pipeline: Pipeline, found: T.StructType, past: LedgerExcerpt) -> None:
    """Checks that the source has the columns that the spec names, of types that fit.

    Raises SpecError where it has not, or StateRefused where batches were read before, because then
    the source has changed.
    """
    problems = _find_problems(pipeline, found)
    problem = next((each for each in problems if each is not None), None)
    if problem is None:
        # The names of parts are known only where every column is there and has a type that fits.
        problem = clash_of_parts(pipeline.source.key, part_names(pipeline, found))
    if problem is None:
        return
    field, message = problem
    if past.any_done:
        wrong = f"{pipeline.source.table}: {field}: {message}"
        how = f"restore the column, or {advice(pipeline)}"
        raise StateRefused("SOURCE_CHANGED", f"{wrong}; {how}")
    raise SpecError(field, message, pipeline.file)


def check_feed(spark: SparkSession, pipeline: Pipeline) -> None:
    """Raises SpecError where `changes: feed` is set and the source records no change feed."""
    if pipeline.source.changes != "feed":
        return
    if is_true(delta_log.setting(spark, pipeline.source.table, CHANGE_FEED)):
        return
    wrong = f"feed: {pipeline.source.table} records no change feed"
    how = f"set its property {CHANGE_FEED} to true, or use refuse"
    raise SpecError("source.changes", f"{wrong}; {how}", pipeline.file)


def check_identity(spark: SparkSession, pipeline: Pipeline, past: LedgerExcerpt) -> None:
    """Checks that the source is the table that was read so far.

    It looks at the version at which this JVM has read the source's columns. Raises StateRefused
    where it is another one, or has lost versions that were read.
    """
    table = pipeline.source.table
    table_id = delta_log.known_table_id(spark, table)
    version = delta_log.known_version(spark, table)
    before = past.source
    if before is None:
        return
    if before.source_id != table_id:
        wrong = f"{table}: the source was dropped and created again since run {before.run}"
        how = f"restore the old one, or {advice(pipeline)}"
        raise StateRefused("SOURCE_RECREATED", f"{wrong}; {how}")
    lost = _lost_versions(spark, pipeline, before, version)
    if lost is not None:
        raise StateRefused("SOURCE_OLDER", f"{table}: {lost}; restore it, or {advice(pipeline)}")


def _lost_versions(
    spark: SparkSession, pipeline: Pipeline, before: LedgerEntry, version: int
) -> str | None:
    """How it shows that the source, now at `version`, lost versions that were read.

    Either its newest version is older, or the version that was read has been written since.
    """
    version_read = before.source_version
    if version_read is None or before.at is None:
        return None
    if version < version_read:
        return f"the source is at version {version}, but version {version_read} was read"
    written_us = delta_log.committed(spark, pipeline.source.table, version_read)
    if written_us is None or written_us <= before.at + CLOCK_SKEW_US:
        return None
    was_read = f"version {version_read} of the source was read at {moment(before.at)}"
    return f"{was_read}, but written at {moment(written_us)}"


def _find_problems(pipeline: Pipeline, found: T.StructType) -> Iterator[_Problem | None]:
    source = pipeline.source
    types = _Types(found, source.computed)
    yield clash_of_columns(source, list(types))
    if source.event_time.column:
        yield _check_type_of_time(source, types)
        yield _check_zone(source, types)
    for name in source.key:
        yield _check_type("source.key", name, types, KEY_TYPES)
    if source.event_id:
        yield _check_type("source.event_id", source.event_id, types, _ORDERED)
    for name in source.order_by:
        yield _check_type("source.order_by", name, types, _ORDERED)
    for aggregate in pipeline.aggregates:
        yield _check_aggregate(aggregate, types)
    for aggregate in pipeline.aggregates:
        yield _check_condition(aggregate, found)
    for window in pipeline.windows:
        yield _check_window(window, types)


def _check_type_of_time(source: Source, types: _Types) -> _Problem | None:
    name = source.event_time.column or ""
    allowed = _SUMMED if source.event_time.unit else _TIMES
    return _check_type("source.event_time", name, types, allowed)


def _check_zone(source: Source, types: _Types) -> _Problem | None:
    """What is wrong where event times have no zone and the spec names none."""
    name = source.event_time.column or ""
    is_naive = isinstance(types.get(name), (T.TimestampNTZType, T.StringType, T.DateType))
    if source.event_time.unit or source.zone or not is_naive:
        return None
    how = "name it, for example 'zone: Europe/Berlin' or 'zone: UTC'"
    return "source.zone", f"{name!r} contains times without a zone; {how}"


def _check_window(window: Window, types: _Types) -> _Problem | None:
    """What is wrong with the columns that end windows."""
    for column in describe_window(window).read_columns:
        field = f"windows.{window.name}.{column.field}"
        problem = _check_type(field, column.name, types, _READ_TYPES[column.type])
        if problem is not None:
            return problem
    return None


def _check_condition(aggregate: Aggregate, found: T.StructType) -> _Problem | None:
    if aggregate.where is None:
        return None
    try:
        compile_condition(aggregate.where, found, f"aggregates.{aggregate.name}.where")
    except SpecError as error:
        return error.field, error.message
    return None


def _check_aggregate(aggregate: Aggregate, types: _Types) -> _Problem | None:
    if aggregate.column is None:
        return None
    field = f"aggregates.{aggregate.name}"
    allowed = _TAKEN[describe_aggregate(aggregate.function).takes]
    problem = _check_type(field, aggregate.column, types, allowed)
    if problem is None and aggregate.by is not None:
        problem = _check_type(field, aggregate.by, types, _ORDERED)
    return problem


def _check_type(
    field: str, column: str, types: _Types, allowed: tuple[type[T.DataType], ...]
) -> _Problem | None:
    if column not in types:
        return field, f"the source has no column {column!r}; it has {', '.join(types.stored)}"
    if isinstance(types[column], allowed):
        return None
    names = ", ".join(sorted({t.typeName() for t in allowed}))
    return field, f"{column!r} is of type {types[column].simpleString()}; allowed are {names}"


def commits(
    spark: SparkSession, pipeline: Pipeline, since: int, version: int
) -> list[Commit | None]:
    """The commits `since` to `version`, both included; None for one whose file was deleted."""
    if since > version:
        return []
    table = delta_log.home(spark, pipeline.source.table)
    event_time = find_bounded_time(spark, pipeline)
    found: list[Commit | None] = []
    for number, text in _read_texts(table, since, version):
        found.append(None if text is None else read_commit(number, text, event_time))
    return found


def _read_texts(table: Location, since: int, version: int) -> Iterator[tuple[int, str | None]]:
    """The commits `since` to `version`, both included, as their files say; None for one deleted."""
    for number in range(since, version + 1):
        yield number, read_commit_text(table, number)


def list_rewrites(
    spark: SparkSession, pipeline: Pipeline, since: int, version: int
) -> tuple[Rewrite, ...]:
    """Those of the commits `since` to `version`, both included, that removed rows."""
    table = delta_log.home(spark, pipeline.source.table)
    texts = [(n, text) for n, text in _read_texts(table, since, version) if text is not None]
    if not any(may_delete_files(text) for _, text in texts):
        return ()
    event_time = find_bounded_time(spark, pipeline)
    return find_rewrites(texts, list_file_figures(table, since - 1, event_time), event_time)


def find_bounded_time(spark: SparkSession, pipeline: Pipeline) -> str:
    """The column of event times, if statistics show when its values lie; else an empty text."""
    column = pipeline.source.event_time.column or ""
    table = delta_log.home(spark, pipeline.source.table)
    stored = {field.name: field for field in delta_log.known_schema(spark, table).fields}
    return column if column in stored and _has_bounds(stored[column]) else ""


def _has_bounds(field: T.StructField) -> bool:
    """Whether statistics show between which instants the values of a column lie.

    The least and the greatest text need not be the first and the last time. A column that is stored
    under another name has its statistics under that one.
    """
    stored_name = field.metadata.get(STORED_NAME, field.name)
    return isinstance(field.dataType, T.TimestampType) and stored_name == field.name


def literal(spark: SparkSession, option: str, column: str, kind: T.DataType, value: str) -> Column:
    """The text `value`, given by `option`, as a value of a column of type `kind`.

    Raises UsageError where it can't be one, and where it names one only in part or rounded.
    """
    if isinstance(kind, T.StringType):
        return F.lit(value)
    typed = F.lit(value).try_cast(kind)
    row = spark.range(1).select(typed.cast("string").alias("found")).first()
    found = None if row is None else row["found"]
    if found is not None and _names_exactly(value, kind, found):
        return typed
    wrong = (
        f"{option}: {value!r} is not a value of {column!r}, which is of type {kind.simpleString()}"
    )
    if type(kind) in _IN_FULL:
        wrong += f"; write it in full, as in {_IN_FULL[type(kind)].example}"
    raise UsageError(wrong)


def _names_exactly(value: str, kind: T.DataType, found: str) -> bool:
    """Whether the text `value` names the value that a cast has `found`, and nothing was dropped."""
    if isinstance(kind, T.DecimalType):
        try:
            return Decimal(value.strip()) == Decimal(found)
        except InvalidOperation:
            return False
    if type(kind) in _IN_FULL:
        return _IN_FULL[type(kind)].pattern.fullmatch(value.strip()) is not None
    return True
