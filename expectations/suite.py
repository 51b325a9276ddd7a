"""A pipeline's own expectations, read from YAML: for each window a list of types and arguments.

hourly:
  - type: expect_column_values_to_be_between
    kwargs: {column: flights, min_value: 1, max_value: 60}
    severity: warning            # critical unless it says otherwise
    description: An airport has at most one departure a minute
"""

from collections.abc import Iterable, Iterator, Mapping
from difflib import get_close_matches
from math import isfinite
from pathlib import Path
from typing import Any

from great_expectations.compatibility.pydantic import ValidationError
from great_expectations.expectations import core
from great_expectations.expectations.expectation import Expectation

from expectations.law import law_of
from expectations.outcome import CRITICAL, WARNING
from expectations.pairs import PairsInOrder  # noqa: F401 - takes the place of another by its name
from expectations.places import find_missing_suite
from windowing.errors import SpecError
from windowing.spec.pipeline import Pipeline
from windowing.spec.words import quote_value
from windowing.spec.yaml.file import document as read

_FIELDS = ("type", "kwargs", "severity", "description")
_OURS = (
    "severity",
    "description",
    "result_format",
    "catch_exceptions",
    "id",
    "meta",
    "notes",
    "rendered_content",
    "windows",
    "batch_id",
)
_CODE = ("row_condition", "condition_parser")
_OUTSIDE = (
    "unexpected_rows_expectation",
    "expect_query_results_to_match_comparison",
    "expect_table_row_count_to_equal_other_table",
)
"""Types that run SQL or look at other tables: a suite is data about one output."""
_NOT_ON_SPARK = (
    "expect_column_values_to_be_dateutil_parseable",
    "expect_column_values_to_match_like_pattern",
    "expect_column_values_to_match_like_pattern_list",
    "expect_column_values_to_not_match_like_pattern",
    "expect_column_values_to_not_match_like_pattern_list",
)
_OF_ORDER = (
    "expect_column_values_to_be_decreasing",
    "expect_column_values_to_be_increasing",
)
_NO_NULLS = "expect_column_values_to_not_be_null"
_COMPARED_WITH = (("min_value", "max_value"), ("type_list",), ("column_set",), ("column_list",))
"""Arguments of which one has to be given; without them Great Expectations passes every value."""
_MAPPINGS = ("json_schema", "partition_object", "quantile_ranges")
_OF_DIVERGENCE = (("partition_object",), ("threshold",))
"""The same for the type whose limits it does not look at."""


def expectation_types() -> dict[str, type[Expectation]]:
    """Every expectation type a suite may name, by its name."""
    found = {}
    for member in vars(core).values():
        if not isinstance(member, type) or not issubclass(member, Expectation):
            continue
        name = member.expectation_type
        if name not in ("", *_OUTSIDE, *_NOT_ON_SPARK, *_OF_ORDER):
            found[name] = member
    return found


def load_suite(pipeline: Pipeline, suites: Path) -> dict[str, list[Expectation]]:
    """Window name -> its expectations, in the order of `{suites}/{pipeline.suite}.yaml`.

    It is empty if the pipeline names no suite. SpecError for an unknown window, type, field,
    argument or column, and for a repeated key; it names the place.
    """
    if pipeline.suite is None:
        return {}
    path = suites / f"{pipeline.suite}.yaml"
    document = _read_document(path, pipeline)
    windows = [window.name for window in pipeline.windows]
    for name in document:
        if name not in windows:
            hint = _suggest_nearest(_show_name(name), windows)
            raise SpecError(str(name), f"is not a window of {pipeline.name}; {hint}", str(path))
    found = {}
    for name, entries in document.items():
        found[name] = _load_expectations(pipeline, name, entries, path)
    return found


def _read_document(path: Path, pipeline: Pipeline) -> dict[Any, Any]:
    if not path.is_file():
        raise find_missing_suite(pipeline, [path.parent])
    document = read(str(path))
    if not isinstance(document, dict):
        message = "has to be a mapping from window names to lists of expectations"
        raise SpecError("", message, str(path))
    return document


def _load_expectations(
    pipeline: Pipeline, window: str, entries: Any, path: Path
) -> list[Expectation]:
    """The expectations of one window, from its list in the document."""
    if not isinstance(entries, list):
        message = f"has to be a list of expectations, not {quote_value(entries)}"
        raise SpecError(window, message, str(path))
    found = []
    for n, entry in enumerate(entries):
        found.append(_load_expectation(pipeline, window, f"{window}[{n}]", entry, path))
    return found


def _load_expectation(
    pipeline: Pipeline, window: str, where: str, entry: Any, path: Path
) -> Expectation:
    """One expectation from its entry; `where` is the entry's place in the file."""
    if not isinstance(entry, dict) or "type" not in entry:
        message = f"has to be a mapping with a type, not {quote_value(entry)}"
        raise SpecError(where, message, str(path))
    for name in entry:
        if name not in _FIELDS:
            hint = _suggest_nearest(_show_name(name), _FIELDS)
            raise SpecError(f"{where}.{name}", f"is not a field; {hint}", str(path))
    kwargs = _check_kwargs(entry.get("kwargs", {}), f"{where}.kwargs", path)
    _check_columns(kwargs, pipeline, window, f"{where}.kwargs", path)
    kind = _find_type(entry["type"], f"{where}.type", path)
    arguments = {
        **kwargs,
        "severity": _read_severity(entry, where, path),
        "description": _read_description(entry, where, path),
    }
    return _make_expectation(kind, arguments, f"{where}.kwargs", path)


def _find_type(name: Any, where: str, path: Path) -> type[Expectation]:
    """The expectation type of that name, if a suite may name it."""
    known = expectation_types()
    if name in _OUTSIDE:
        message = f"{name} runs SQL or looks at other tables, which a suite can't; use another one"
        raise SpecError(where, message, str(path))
    if name in _NOT_ON_SPARK:
        message = f"{name} doesn't exist on Spark; use the regex expectations"
        raise SpecError(where, message, str(path))
    if name in _OF_ORDER:
        message = f"{name} judges the order of rows, and rows of an output have none"
        raise SpecError(where, f"{message}; use another one", str(path))
    if not isinstance(name, str) or name not in known:
        hint = _suggest_nearest(_show_name(name), known)
        raise SpecError(where, f"{quote_value(name)} is not an expectation; {hint}", str(path))
    return known[name]


def _check_kwargs(kwargs: Any, where: str, path: Path) -> dict[str, Any]:
    """`kwargs`, if they are a mapping of names that may be arguments."""
    if not isinstance(kwargs, dict) or not all(isinstance(name, str) for name in kwargs):
        message = f"has to be a mapping of arguments, not {quote_value(kwargs)}"
        raise SpecError(where, message, str(path))
    for name in kwargs:
        if name in _CODE:
            message = "is code, which a suite can't hold; leave it out"
            raise SpecError(f"{where}.{name}", message, str(path))
        if name in _OURS:
            message = f"is not an argument here; beside kwargs stand {', '.join(_FIELDS)}"
            raise SpecError(f"{where}.{name}", message, str(path))
    for name, value in kwargs.items():
        _check_argument(name, value, f"{where}.{name}", path)
    return kwargs


def _check_argument(name: str, value: Any, where: str, path: Path) -> None:
    """Raises SpecError for a value with which no value of a row can be compared."""
    if value in ("", [], {}):
        raise SpecError(where, "is empty; write a value, or leave it out", str(path))
    if isinstance(value, dict) and "$PARAMETER" in value:
        message = "is a parameter, which nothing gives a value here; write the value itself"
        raise SpecError(where, message, str(path))
    if name == "quantile_ranges" and not _has_ranges(value):
        message = "has to be such as {quantiles: [0.5], value_ranges: [[1, 60]]}"
        raise SpecError(where, f"{message}, with a range for each quantile", str(path))
    for place, part in _list_parts(value, where):
        if isinstance(part, float) and not isfinite(part):
            message = f"{part} is not a finite number; write one, or leave it out"
            raise SpecError(place, message, str(path))
        if name == "value_set" and part is None and part is not value:
            message = "is null, but a NULL in a row passes anyway; leave it out"
            raise SpecError(place, f"{message}, or forbid NULLs by {_NO_NULLS}", str(path))


def _has_ranges(value: Any) -> bool:
    """Whether a mapping has a lower or an upper limit, or both, for each of its quantiles."""
    if not isinstance(value, dict) or set(value) != {"quantiles", "value_ranges"}:
        return False
    quantiles, ranges = value["quantiles"], value["value_ranges"]
    if not isinstance(quantiles, list) or not isinstance(ranges, list):
        return False
    limits = [isinstance(each, list) and len(each) == 2 and each != [None, None] for each in ranges]
    return 0 < len(quantiles) == len(limits) and all(limits)


def _list_parts(value: Any, where: str) -> Iterator[tuple[str, Any]]:
    """All that an argument is made of, with the place of each."""
    parts: list[tuple[str, Any]] = []
    if isinstance(value, dict):
        parts = [(f"{where}.{name}", part) for name, part in value.items()]
    elif isinstance(value, list):
        parts = [(f"{where}[{n}]", part) for n, part in enumerate(value)]
    yield where, value
    for place, part in parts:
        yield from _list_parts(part, place)


def _read_severity(entry: Mapping[Any, Any], where: str, path: Path) -> str:
    severity = entry.get("severity", CRITICAL)
    if severity not in (CRITICAL, WARNING):
        message = f"{quote_value(severity)} is not a severity; use {CRITICAL} or {WARNING}"
        raise SpecError(f"{where}.severity", message, str(path))
    return str(severity)


def _read_description(entry: Mapping[Any, Any], where: str, path: Path) -> str | None:
    text = entry.get("description")
    if text is not None and not isinstance(text, str):
        message = f"{quote_value(text)} is not text; put it in quotes"
        raise SpecError(f"{where}.description", message, str(path))
    return text


def _check_columns(
    kwargs: Mapping[str, Any], pipeline: Pipeline, window: str, where: str, path: Path
) -> None:
    """Raises SpecError for an argument that names a column which the output doesn't have."""
    columns = law_of(pipeline.window(window), pipeline.source.key).columns
    for argument, column in named_columns(kwargs).items():
        if column not in columns:
            hint = _suggest_nearest(_show_name(column), columns)
            message = f"{quote_value(column)} is not a column of {window}; {hint}"
            raise SpecError(f"{where}.{argument}", message, str(path))


def named_columns(kwargs: Mapping[str, Any]) -> dict[str, Any]:
    """The columns that the arguments name, by the place of each."""
    named = {}
    for argument in ("column", "column_A", "column_B"):
        if argument in kwargs:
            named[argument] = kwargs[argument]
    listed = kwargs.get("column_list")
    if isinstance(listed, list):
        for n, column in enumerate(listed):
            named[f"column_list[{n}]"] = column
    return named


def _make_expectation(
    kind: type[Expectation], kwargs: dict[str, Any], where: str, path: Path
) -> Expectation:
    try:
        made = kind(**kwargs)
    except ValidationError as error:
        first = error.errors()[0]
        field = ".".join(str(part) for part in first["loc"] if part != "__root__")
        reason = " ".join(first["msg"].split())
        arguments = [name for name in kind.__fields__ if name not in (*_OURS, *_CODE)]
        message = f"{reason}; {kind.expectation_type} takes {', '.join(arguments)}"
        raise SpecError(f"{where}.{field}" if field else where, message, str(path)) from None
    except (OverflowError, ValueError) as error:
        message = f"holds a value that {kind.expectation_type} can't take: {error}"
        raise SpecError(where, message, str(path)) from None
    _check_compared(made, kwargs, where, path)
    return made


def _check_compared(made: Expectation, kwargs: Mapping[str, Any], where: str, path: Path) -> None:
    """Raises SpecError where an expectation has nothing that it can compare values with."""
    fields = made.__fields__
    for name in kwargs:
        # Great Expectations takes a mapping anywhere, for a parameter.
        if isinstance(getattr(made, name), dict) and name not in _MAPPINGS:
            message = f"can't be {quote_value(kwargs[name])}; write a value that it takes"
            raise SpecError(f"{where}.{name}", message, str(path))
    for names in _OF_DIVERGENCE if "partition_object" in fields else _COMPARED_WITH:
        if all(name in fields and getattr(made, name) is None for name in names):
            without = f"without which {made.expectation_type} judges nothing"
            give = "give it" if len(names) == 1 else "give one of them"
            message = f"lacks {' or '.join(names)}, {without}; {give}"
            raise SpecError(where, message, str(path))


def _show_name(name: object) -> str:
    """A name as it is, anything else as a sentence shows it."""
    return name if isinstance(name, str) else quote_value(name)


def _suggest_nearest(given: str, allowed: Iterable[str]) -> str:
    names = list(allowed)
    near = get_close_matches(given, names, n=3, cutoff=0.5)
    if near:
        return f"did you mean {' or '.join(near)}?"
    return f"allowed are {', '.join(names)}"
