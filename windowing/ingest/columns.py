"""The file that pins columns: names in the table, names in files, types and forms of times.

It is YAML, belongs beside the spec into version control, and is written once. Afterwards only
people change it, except that `on_new_column: add` adds columns.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from windowing.columns import FILE, RESCUED
from windowing.errors import SpecError
from windowing.ingest.names import name_columns
from windowing.ingest.type_names import find_unknown_type
from windowing.spec.expressions.forms import (
    TIME_LETTERS,
    find_problem_of_time_pattern,
    leave_quoted,
    list_letters,
)
from windowing.spec.words import in_quotes, join_names, quote_value, suggest_name
from windowing.spec.yaml.file import document, parse_content

_FIELDS = ("type", "from", "format")
_TIMES = ("date", "timestamp", "timestamp_ntz")
_ZONES = (
    *(letter * times for letter in "XxZ" for times in range(1, 6)),
    *("O", "OOOO", "VV"),
    *("z" * times for times in range(1, 5)),
)
"""What Spark reads a zone by."""
_LETTERS = {
    **TIME_LETTERS,
    "yy": "year",
    **dict.fromkeys(("S" * places for places in range(7, 10)), "fraction"),
    **dict.fromkeys(_ZONES, "offset"),
}
"""Letters of a pattern, and the part of the time that they read: files come as they are."""
_OPTIONAL = re.compile(r"\[[^\[\]]*\]")
_BRACKET = re.compile(r"[\[\]]")
_COMMENTS = re.compile(r"(?:[ \t\r]*(?:#.*)?\n)*")
"""The lines before the first one that is neither a comment nor blank."""


@dataclass(frozen=True)
class PinnedColumn:
    """A column of the source table, and the one of files that its values come from.

    `format` is the pattern by which times are read; None for ISO 8601.
    """

    name: str
    type: str
    source: str
    format: str | None = None


def read_columns(path: str) -> tuple[PinnedColumn, ...]:
    """The columns that the file at `path` pins; SpecError, with the file, for a wrong one."""
    return _parse_file(path, document(path))


def check_content(path: str, content: bytes) -> None:
    """Raises SpecError where the file at `path` could not be read with this content."""
    _parse_file(path, parse_content(path, content))


def _parse_file(path: str, given: Any) -> tuple[PinnedColumn, ...]:
    try:
        return parse_columns(given)
    except SpecError as error:
        raise SpecError(error.field, error.message, path) from None


def parse_columns(given: Any) -> tuple[PinnedColumn, ...]:
    """The columns of a document; SpecError with its field for what is none."""
    if not isinstance(given, dict) or set(given) != {"columns"}:
        raise SpecError("columns", "is what such a file has, and nothing else")
    columns = given["columns"]
    if not isinstance(columns, dict) or not columns:
        raise SpecError("columns", "is empty; write names and types, such as price: double")
    found = tuple(_parse_column(str(name), value) for name, value in columns.items())
    _check_names(found)
    return found


def _parse_column(name: str, given: Any) -> PinnedColumn:
    field = f"columns.{name}"
    if isinstance(given, str):
        _check_type(field, given)
        return PinnedColumn(name, given, name)
    if not isinstance(given, dict):
        raise SpecError(
            field, f"{quote_value(given)} is neither a type such as double nor {{type: double}}"
        )
    for key in given:
        if key not in _FIELDS:
            known = f"{suggest_name(str(key), _FIELDS)}; {join_names(_FIELDS)} are"
            raise SpecError(f"{field}.{key}", f"is not a field here{known}")
    for key, value in given.items():
        if not isinstance(value, str):
            raise SpecError(f"{field}.{key}", f"{quote_value(value)} is no text; put it in quotes")
    if "type" not in given:
        raise SpecError(f"{field}.type", "is missing; write a type of Spark such as double")
    _check_type(field, given["type"])
    if "format" in given:
        _check_format(f"{field}.format", given["format"], given["type"])
    return PinnedColumn(name, given["type"], given.get("from", name), given.get("format"))


def _check_type(field: str, text: str) -> None:
    """Raises where a word in the text of a type is none of Spark's."""
    if find_unknown_type(text) is not None:
        raise no_type(field, text)


def no_type(field: str, text: str) -> SpecError:
    """What is said of a text that is no type."""
    return SpecError(
        field,
        f"{text!r} is no type of Spark; use string, boolean, bigint, double, decimal(10,2), date, "
        "timestamp, timestamp_ntz or such",
    )


def _check_format(field: str, pattern: str, kind: str) -> None:
    """Raises unless times of the type can be read by the pattern."""
    if kind not in _TIMES:
        raise SpecError(field, f"is for {join_names(_TIMES)}, not {kind}")
    required = _leave_optional(pattern)
    if _BRACKET.search(required):
        raise SpecError(
            field,
            f"{quote_value(pattern)} has a bracket without the other one; what may be missing "
            "stands between two, as in d/M/yyyy H:mm[:ss]",
        )
    whole = _BRACKET.sub(" ", leave_quoted(pattern))
    problem = find_problem_of_time_pattern(whole, _LETTERS)
    if problem is not None:
        raise SpecError(field, f"is {quote_value(pattern)}, {problem}")
    lacking = find_problem_of_time_pattern(required, _LETTERS)
    if lacking is not None:
        raise SpecError(
            field,
            f"{quote_value(pattern)} has too much in brackets: without that it is one {lacking}",
        )
    if kind == "timestamp" and not _has_zone(required):
        raise SpecError(
            field,
            "has no zone, which an instant needs; the type of local times is timestamp_ntz, and "
            "source.zone of the spec says where they are local",
        )
    if kind == "timestamp_ntz" and _has_zone(whole):
        raise SpecError(field, "has a zone, so the times are instants; their type is timestamp")


def _leave_optional(pattern: str) -> str:
    """A pattern without what stands in brackets, so that times may lack it, or in quotes.

    >>> _leave_optional("d/M/yyyy H:mm[:ss[.SSS]]")
    'd/M/yyyy H:mm '
    """
    left, before = leave_quoted(pattern), ""
    while left != before:
        left, before = _OPTIONAL.sub(" ", left), left
    return left


def _has_zone(pattern: str) -> bool:
    return any(letters in _ZONES for letters in list_letters(pattern))


def _check_names(columns: Sequence[PinnedColumn]) -> None:
    """Raises where a table can't have the names, or two columns come from one of the files."""
    names = [column.name for column in columns]
    for name, possible in zip(names, name_columns(names), strict=True):
        if name != possible:
            raise SpecError(
                f"columns.{name}",
                f"{quote_value(name)} can't be a column here: a name has letters, digits and _, "
                "does not begin with a digit or __, differs from others by more than case, and is "
                f"not {FILE} or {RESCUED}; call it {possible}, with from: {in_quotes(name)}",
            )
    sources: dict[str, str] = {}
    for column in columns:
        other = sources.setdefault(column.source, column.name)
        if other != column.name:
            raise SpecError(
                f"columns.{column.name}.from",
                f"{quote_value(column.source)} is the column {other} already",
            )


def render_columns(columns: Sequence[PinnedColumn], comments: Sequence[str]) -> str:
    """The text of a file that pins these columns, below these lines of comment."""
    head = "".join(f"# {line}\n" for line in comments)
    return f"{head}columns:\n{_render_lines(columns)}"


def add_columns(text: str, pinned: Sequence[PinnedColumn], added: Sequence[PinnedColumn]) -> str:
    """The text of a file that pins these columns with more of them, in lines behind its own.

    Where these are no lines of its mapping, as behind braces or another indentation, the file is
    written anew, below the comments that it begins with.
    """
    columns = (*pinned, *added)
    longer = text.rstrip("\n") + "\n" + _render_lines(added)
    if _reads_as(longer, columns):
        return longer
    head = _COMMENTS.match(text)
    return ("" if head is None else head[0]) + render_columns(columns, ())


def _reads_as(text: str, columns: Sequence[PinnedColumn]) -> bool:
    try:
        return parse_columns(parse_content("", text.encode())) == columns
    except SpecError:
        return False


def _render_lines(columns: Sequence[PinnedColumn]) -> str:
    return "".join(f"  {_render_text(c.name)}: {_render_column(c)}\n" for c in columns)


def _render_column(column: PinnedColumn) -> str:
    fields: Mapping[str, str | None] = {
        "type": column.type,
        "from": None if column.source == column.name else column.source,
        "format": column.format,
    }
    given = {name: text for name, text in fields.items() if text is not None}
    if set(given) == {"type"}:
        return _render_text(column.type)
    inside = ", ".join(f"{name}: {in_quotes(text)}" for name, text in given.items())
    return f"{{{inside}}}"


def _render_text(text: str) -> str:
    """A text without quotes where YAML takes it for a text then."""
    is_plain = text.isascii() and text.replace("_", "").isalnum() and not text[0].isdigit()
    is_word = text.lower() in ("true", "false", "null", "yes", "no", "on", "off", "y", "n")
    return text if is_plain and not is_word else in_quotes(text)
