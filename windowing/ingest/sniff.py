"""How a file is written, guessed from its beginning: the fields of `source.files`."""

import csv
import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress

from windowing.ingest.header import BOM, split_lines
from windowing.ingest.rule import GZIP, has_format

_LINES = 100
"""How many lines are looked at."""
_LONGEST = 100_000
"""Longer lines say nothing more, and may have values that no reader takes."""
_GEOJSON = re.compile(rb'\A[^\[]*"type"\s*:\s*"FeatureCollection"')
"""What a document says of itself before the list of its features, if it does."""
_NUMBER = re.compile(r"[+-]?\d+([.,]\d+)?")
_COMMA = re.compile(r"[+-]?\d+,\d+")
_GROUPS = re.compile(r"[+-]?[1-9]\d{0,2},\d{3}")
_GROUPS_BEFORE_COMMA = re.compile(r"[+-]?\d{1,3}(\.\d{3})+(,\d+)?")
_GROUPS_BEFORE_POINT = re.compile(r"[+-]?\d{1,3}(,\d{3})+(\.\d+)?")
_POINT = re.compile(r"[+-]?\d+\.\d{1,2}")


def guess_form(name: str, beginning: bytes) -> dict[str, object] | None:
    """The fields of `source.files` by which the file called `name` is read, but for the folder.

    Those at their default are left out. None where its name has no ending that is known.
    """
    if has_format(name, "parquet"):
        return {"format": "parquet"}
    if has_format(name, "json"):
        return {"format": "json", **_guess_document(name, beginning)}
    return _guess_csv(beginning) if has_format(name, "csv") else None


def _guess_document(name: str, beginning: bytes) -> dict[str, object]:
    """Whether a file is one document of JSON, a list or GeoJSON; else each line is an object."""
    if beginning.lstrip(BOM.encode() + b" \r\n\t")[:1] == b"[":
        return {"multiline": True}
    is_named_so = name.lower().removesuffix(GZIP).endswith(".geojson")
    return {"records": "features"} if is_named_so or _GEOJSON.search(beginning) else {}


def _guess_csv(beginning: bytes) -> dict[str, object]:
    encoding = _guess_encoding(beginning)
    text = beginning.decode(encoding, errors="replace").removeprefix(BOM)
    lines = [line for line in split_lines(text) if line.strip() and len(line) <= _LONGEST][:_LINES]
    delimiter = _guess_delimiter(lines)
    rows = list(_read_rows(lines, delimiter))
    found: dict[str, object] = {}
    if encoding != "utf-8":
        found["encoding"] = encoding
    if delimiter != ",":
        found["delimiter"] = delimiter
    if rows and any(_NUMBER.fullmatch(value.strip()) for value in rows[0]):
        found["header"] = False
    return found | _guess_numbers([value.strip() for row in rows[1:] for value in row])


def _guess_encoding(beginning: bytes) -> str:
    # The last character may be cut in two.
    for cut in range(4):
        try:
            beginning[: len(beginning) - cut].decode()
        except UnicodeDecodeError:
            continue
        return "utf-8"
    return "windows-1252"


def _read_rows(lines: Iterable[str], delimiter: str) -> Iterator[list[str]]:
    """The values of lines, up to a quote that is not closed for more than a reader takes."""
    with suppress(csv.Error):
        yield from csv.reader(lines, delimiter=delimiter)


def _guess_delimiter(lines: Sequence[str]) -> str:
    """What gives most lines the same number of values, and more than one; a comma otherwise."""
    best, score = ",", (0, 0)
    for delimiter in ",;\t|":
        widths = [len(row) for row in _read_rows(lines, delimiter)]
        width = max(widths[:1], default=0)
        found = (widths.count(width), width)
        if width > 1 and found > score:
            best, score = delimiter, found
    return best


def _guess_numbers(values: Sequence[str]) -> dict[str, object]:
    """What stands before decimals and between thousands, where some value shows it."""
    with_groups = any(_GROUPS_BEFORE_COMMA.fullmatch(value) and "," in value for value in values)
    # A value such as 12,345 may be of either form, so it shows none.
    with_comma = any(_COMMA.fullmatch(v) and not _GROUPS.fullmatch(v) for v in values)
    with_point = any(_POINT.fullmatch(value) for value in values)
    if (with_comma or with_groups) and not with_point:
        return {"decimal": ",", **({"thousands": "."} if with_groups else {})}
    grouped = any(_GROUPS_BEFORE_POINT.fullmatch(v) and "." in v for v in values)
    return {"thousands": ","} if grouped else {}
