"""A pipeline's own expectations, read from YAML: for each window a list of types and arguments.

hourly:
  - type: expect_column_values_to_be_between
    kwargs: {column: flights, min_value: 1, max_value: 60}
    severity: warning            # critical unless it says otherwise
    description: An airport has at most one departure a minute
"""

from collections.abc import Iterable, Mapping
from difflib import get_close_matches
from pathlib import Path
from typing import Any

from great_expectations.compatibility.pydantic import ValidationError
from great_expectations.expectations import core
from great_expectations.expectations.expectation import Expectation

from expectations.law import law_of
from expectations.outcome import CRITICAL, WARNING
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


def expectation_types() -> dict[str, type[Expectation]]:
    """Every expectation type a suite may name, by its name."""
    classes = [c for c in vars(core).values() if isinstance(c, type) and issubclass(c, Expectation)]
    return {
        c.expectation_type: c
        for c in classes
        if c.expectation_type not in ("", *_OUTSIDE, *_NOT_ON_SPARK)
    }


def load_suite(pipeline: Pipeline, suites: Path) -> dict[str, list[Expectation]]:
    """Window name -> its expectations, in the order of `{suites}/{pipeline.suite}.yaml`.

    It is empty if the pipeline names no suite. SpecError for an unknown window, type, field,
    argument or column, and for a repeated key; it names the place.
    """
    if pipeline.suite is None:
        return {}
    path = suites / f"{pipeline.suite}.yaml"
    document = _read(path, pipeline)
    names = [w.name for w in pipeline.windows]
    for name in document:
        if name not in names:
            raise SpecError(
                str(name),
                f"is not a window of {pipeline.name}; {_nearest(_plain(name), names)}",
                str(path),
            )
    return {
        name: [
            _entry(pipeline, name, n, entry, path)
            for n, entry in enumerate(_list(document[name], name, path))
        ]
        for name in document
    }


def _read(path: Path, pipeline: Pipeline) -> dict[Any, Any]:
    if not path.is_file():
        raise find_missing_suite(pipeline, [path.parent])
    document = read(str(path))
    if not isinstance(document, dict):
        raise SpecError(
            "", "has to be a mapping from window names to lists of expectations", str(path)
        )
    return document


def _list(entries: Any, name: str, path: Path) -> list[Any]:
    if not isinstance(entries, list):
        raise SpecError(
            name, f"has to be a list of expectations, not {quote_value(entries)}", str(path)
        )
    return entries


def _entry(pipeline: Pipeline, window: str, n: int, entry: Any, path: Path) -> Expectation:
    where = f"{window}[{n}]"
    if not isinstance(entry, dict) or "type" not in entry:
        raise SpecError(
            where, f"has to be a mapping with a type, not {quote_value(entry)}", str(path)
        )
    for name in entry:
        if name not in _FIELDS:
            raise SpecError(
                f"{where}.{name}", f"is not a field; {_nearest(_plain(name), _FIELDS)}", str(path)
            )
    kwargs = _kwargs(entry.get("kwargs", {}), f"{where}.kwargs", path)
    _check_columns(kwargs, pipeline, window, f"{where}.kwargs", path)
    kind = _kind(entry["type"], f"{where}.type", path)
    more = {
        "severity": _severity(entry, where, path),
        "description": _description(entry, where, path),
    }
    return _made(kind, kwargs | more, f"{where}.kwargs", path)


def _kind(name: Any, where: str, path: Path) -> type[Expectation]:
    known = expectation_types()
    if name in _OUTSIDE:
        raise SpecError(
            where,
            f"{name} runs SQL or looks at other tables, which a suite can't; use another one",
            str(path),
        )
    if name in _NOT_ON_SPARK:
        raise SpecError(
            where, f"{name} doesn't exist on Spark; use the regex expectations", str(path)
        )
    if not isinstance(name, str) or name not in known:
        raise SpecError(
            where,
            f"{quote_value(name)} is not an expectation; {_nearest(_plain(name), known)}",
            str(path),
        )
    return known[name]


def _kwargs(kwargs: Any, where: str, path: Path) -> dict[str, Any]:
    if not isinstance(kwargs, dict) or not all(isinstance(name, str) for name in kwargs):
        raise SpecError(
            where, f"has to be a mapping of arguments, not {quote_value(kwargs)}", str(path)
        )
    for name in kwargs:
        if name in _CODE:
            raise SpecError(
                f"{where}.{name}", "is code, which a suite can't hold; leave it out", str(path)
            )
        if name in _OURS:
            raise SpecError(
                f"{where}.{name}",
                f"is not an argument here; beside kwargs stand {', '.join(_FIELDS)}",
                str(path),
            )
    return kwargs


def _severity(entry: Mapping[Any, Any], where: str, path: Path) -> str:
    severity = entry.get("severity", CRITICAL)
    if severity not in (CRITICAL, WARNING):
        raise SpecError(
            f"{where}.severity",
            f"{quote_value(severity)} is not a severity; use {CRITICAL} or {WARNING}",
            str(path),
        )
    return str(severity)


def _description(entry: Mapping[Any, Any], where: str, path: Path) -> str | None:
    text = entry.get("description")
    if text is not None and not isinstance(text, str):
        raise SpecError(
            f"{where}.description", f"{quote_value(text)} is not text; put it in quotes", str(path)
        )
    return text


def _check_columns(
    kwargs: Mapping[str, Any], pipeline: Pipeline, window: str, where: str, path: Path
) -> None:
    there = law_of(pipeline.window(window), pipeline.source.key).columns
    listed = kwargs.get("column_list")
    named = {name: kwargs[name] for name in ("column", "column_A", "column_B") if name in kwargs}
    named |= (
        {f"column_list[{n}]": c for n, c in enumerate(listed)} if isinstance(listed, list) else {}
    )
    for name, column in named.items():
        if column not in there:
            raise SpecError(
                f"{where}.{name}",
                f"{quote_value(column)} is not a column of {window}; "
                f"{_nearest(_plain(column), there)}",
                str(path),
            )


def _made(kind: type[Expectation], kwargs: dict[str, Any], where: str, path: Path) -> Expectation:
    try:
        return kind(**kwargs)
    except ValidationError as error:
        first = error.errors()[0]
        field = ".".join(str(part) for part in first["loc"] if part != "__root__")
        taken = [name for name in kind.__fields__ if name not in (*_OURS, *_CODE)]
        message = (
            f"{' '.join(first['msg'].split())}; {kind.expectation_type} takes {', '.join(taken)}"
        )
        raise SpecError(f"{where}.{field}" if field else where, message, str(path)) from None
    except (OverflowError, ValueError) as error:
        raise SpecError(
            where, f"holds a value that {kind.expectation_type} can't take: {error}", str(path)
        ) from None


def _plain(name: object) -> str:
    """A name as it is, anything else as a sentence shows it."""
    return name if isinstance(name, str) else quote_value(name)


def _nearest(given: str, allowed: Iterable[str]) -> str:
    names = list(allowed)
    near = get_close_matches(given, names, n=3, cutoff=0.5)
    return f"did you mean {' or '.join(near)}?" if near else f"allowed are {', '.join(names)}"
