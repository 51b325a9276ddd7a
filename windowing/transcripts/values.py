"""Rows of a transcript -> values of Spark's types.

The type of a column is the one under `columns`, or else the one that the spec requires, or else
that of the values.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import date, datetime
from decimal import Decimal, InvalidOperation
from typing import Any

from windowing.errors import SpecError
from windowing.spec.aggregate_description import Takes, describe_aggregate
from windowing.spec.description import describe_window
from windowing.spec.expressions.parse import inputs_of
from windowing.spec.pipeline import Pipeline, Source
from windowing.spec.times import INSTANT_FORM, instant
from windowing.spec.words import join_names, quote_value, suggest_name
from windowing.transcripts.document import Transcript

_BITS = {"tinyint": 8, "smallint": 16, "int": 32, "bigint": 64}
_FORMS = {
    "string": "text; quote it if it is meant as text",
    "boolean": "true or false",
    **{name: f"a whole number of {bits} bits" for name, bits in _BITS.items()},
    "double": "a number",
    "float": "a number",
    "timestamp": INSTANT_FORM,
    "timestamp_ntz": "a time without an offset such as 2013-03-10 05:00",
    "date": "a date such as 2013-03-10",
}
TYPES = (*_FORMS, "decimal(p, s)")
_DECIMAL = re.compile(r"decimal\((\d{1,2}), ?(\d{1,2})\)", re.ASCII)
_NAME = re.compile(r"[^ ,;{}()\n\t=`]+")
_BY_VALUE: Mapping[frozenset[type], str] = {
    frozenset({bool}): "boolean",
    frozenset({int}): "bigint",
    frozenset({float}): "double",
    frozenset({int, float}): "double",
    frozenset({str}): "string",
}
_SAID = {
    bool: "true and false",
    int: "whole numbers",
    float: "numbers",
    str: "text",
    list: "lists",
    dict: "mappings",
}


def column_types(transcript: Transcript, pipeline: Pipeline) -> dict[str, str]:
    """The type of each column of the source that the spec uses or that `columns` names.

    SpecError for a column of a row that is neither, and for a column without a known type.
    """
    _refuse_parts(pipeline)
    said: dict[str, str] = {}
    for name, written in transcript.columns.items():
        said[name] = _check_type(f"columns.{name}", written)
    needed = {**used_columns(pipeline), **said}
    _check_names(needed)
    given = _collect_values(transcript, needed)
    types: dict[str, str] = {}
    unknown: list[str] = []
    for name, required in needed.items():
        kind = required
        if kind is None:
            kind = _infer_type(name, given.get(name, []))
        if kind is None:
            unknown.append(name)
        else:
            types[name] = kind
    if unknown:
        example = ", ".join(f"{name}: bigint" for name in unknown)
        raise SpecError(
            "columns",
            f"the spec uses {join_names(unknown)}, but no row gives a value; "
            f"say the type, as in columns: {{{example}}}",
        )
    return types


def _refuse_parts(pipeline: Pipeline) -> None:
    """SpecError where the spec reads structs, arrays or maps, which no row of a transcript has."""
    source = pipeline.source
    for expression in [*source.computed.values(), *([source.where] if source.where else [])]:
        if any(len(path) > 1 for path in inputs_of(expression)):
            raise SpecError(
                "spec",
                f"{quote_value(expression.sql)} reads a part of a column, but rows of a transcript "
                "have no structs, arrays and maps; play a spec that names plain columns",
            )


def type_rows(transcript: Transcript, columns: Mapping[str, str]) -> list[list[dict[str, Any]]]:
    """The rows of each step, with a value or None for every column.

    SpecError for a value that its column can't contain.
    """
    steps: list[list[dict[str, Any]]] = []
    for i, step in enumerate(transcript.steps):
        rows = []
        for n, row in enumerate(step.rows):
            rows.append(_type_row(f"steps[{i}].input[{n}]", row, columns))
        steps.append(rows)
    return steps


def _type_row(field: str, row: Mapping[str, Any], columns: Mapping[str, str]) -> dict[str, Any]:
    typed = {}
    for name, kind in columns.items():
        typed[name] = _type_value(f"{field}.{name}", kind, row.get(name))
    return typed


def used_columns(pipeline: Pipeline) -> dict[str, str | None]:
    """The columns of the source that the spec uses -> the type it requires; None if it has none."""
    computed = pipeline.source.computed
    found: dict[str, str | None] = {}
    for name, kind in _list_required(pipeline):
        if name is None or name in computed:
            continue
        # The first place that requires a type decides.
        if found.get(name) is None:
            found[name] = kind
    return found


def _list_required(pipeline: Pipeline) -> Iterator[tuple[str | None, str | None]]:
    """(column, required type) of each place where the spec names one, in a fixed order."""
    source = pipeline.source
    for name in (*source.key, source.event_id, *source.order_by):
        yield name, None
    yield source.event_time.column, _event_time_type(source)
    conditions = [aggregate.where for aggregate in pipeline.aggregates]
    for expression in (*source.computed.values(), source.where, *conditions):
        if expression is not None:
            for name in expression.columns:
                yield name, None
    for aggregate in pipeline.aggregates:
        takes = describe_aggregate(aggregate.function).takes
        yield aggregate.column, "boolean" if takes is Takes.CONDITION else None
        yield aggregate.by, None
    for window in pipeline.windows:
        for column in describe_window(window).read_columns:
            # Any type of number will do, so that one isn't required.
            yield column.name, None if column.type == "number" else column.type


def _event_time_type(source: Source) -> str | None:
    if source.event_time.unit:
        # Times as numbers since 1970 can have any numeric type.
        return None
    return "string" if source.zone else "timestamp"


def _check_type(field: str, written: str) -> str:
    kind = written.strip().lower()
    if kind in _FORMS or _is_decimal_type(kind):
        return kind
    raise SpecError(
        field,
        f"{quote_value(written)} is not a type{suggest_name(kind, _FORMS)}; "
        f"allowed: {join_names(TYPES)}",
    )


def _is_decimal_type(kind: str) -> bool:
    match = _DECIMAL.fullmatch(kind)
    if match is None:
        return False
    precision, scale = int(match[1]), int(match[2])
    return 1 <= precision <= 38 and scale <= precision


def _check_names(names: Iterable[str]) -> None:
    taken: dict[str, str] = {}
    for name in names:
        if not _NAME.fullmatch(name):
            raise SpecError(
                f"columns.{name}",
                "can't be a column of a Delta table; it has no space and none of , ; { } ( ) = `",
            )
        if name.lower() in taken:
            raise SpecError(
                f"columns.{name}",
                f"differs from {taken[name.lower()]!r} by case only; name a column in one way",
            )
        taken[name.lower()] = name


def _collect_values(transcript: Transcript, known: Mapping[str, object]) -> dict[str, list[Any]]:
    """The values that rows give to each column, without nulls; SpecError for an unknown column."""
    found: dict[str, list[Any]] = {}
    for i, step in enumerate(transcript.steps):
        for n, row in enumerate(step.rows):
            _check_known(f"steps[{i}].input[{n}]", row, known)
            for name, value in row.items():
                values = found.setdefault(name, [])
                if value is not None:
                    values.append(value)
    return found


def _check_known(field: str, row: Mapping[str, Any], known: Mapping[str, object]) -> None:
    for name in row:
        if name not in known:
            hint = f"{suggest_name(name, known)}; if it is meant, say its type under columns"
            raise SpecError(f"{field}.{name}", f"the spec does not use this column{hint}")


def _infer_type(name: str, values: list[Any]) -> str | None:
    """The type of all `values`; None if there are none."""
    kinds = frozenset(map(type, values))
    if not kinds:
        return None
    if kinds not in _BY_VALUE:
        said = " and ".join(sorted(_SAID[kind] for kind in kinds))
        raise SpecError(
            f"columns.{name}",
            f"is missing, and the rows give {said}; say its type, one of {join_names(TYPES)}",
        )
    return _BY_VALUE[kinds]


def _type_value(field: str, kind: str, value: Any) -> Any:
    if value is None:
        return None
    convert: Callable[[str, Any], Any]
    if kind.startswith("decimal"):
        convert = _convert_decimal
        form = f"a number that {kind} holds without rounding"
    else:
        convert = _convert_value
        form = _FORMS[kind]
    try:
        found = convert(kind, value)
    except (ValueError, OverflowError, InvalidOperation):
        found = None
    if found is None:
        raise SpecError(field, f"{quote_value(value)} is not {form}")
    return found


def _convert_value(kind: str, value: Any) -> Any:
    """The value in Python's type for `kind`; None or ValueError if it can't be one."""
    match value:
        case bool():
            return value if kind == "boolean" else None
        case int() if kind in _BITS:
            limit = 2 ** (_BITS[kind] - 1)
            return value if -limit <= value < limit else None
        case int() | float() if kind in ("double", "float"):
            return float(value)
        case str() if kind == "string":
            return value
        case str() if kind == "timestamp":
            return instant(value)
        case str() if kind == "timestamp_ntz":
            at = datetime.fromisoformat(value)
            if at.tzinfo is not None:
                return None
            return at
        case str() if kind == "date":
            return date.fromisoformat(value)
    return None


def _convert_decimal(kind: str, value: Any) -> Decimal | None:
    precision, scale = (int(n) for n in re.findall(r"\d+", kind))
    # bool is a subclass of int, but true is no number.
    if isinstance(value, bool) or not isinstance(value, (int, float, str)):
        return None
    number = Decimal(str(value))
    if not number.is_finite() or abs(number) >= Decimal(10) ** (precision - scale):
        return None
    rounded = number.quantize(Decimal(1).scaleb(-scale))
    if rounded != number:
        return None
    return rounded
