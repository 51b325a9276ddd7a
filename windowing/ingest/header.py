"""The first record of a CSV file: the names of its columns, or how many there are."""

import csv
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from windowing.ingest.names import tell_apart
from windowing.spec.pipeline import CsvForm

BEGINNING = 256 * 1024
"""How many bytes of a file are looked at; a longer first line is none that this reads."""
BOM = "\ufeff"
"""What some write before a text, in bytes of UTF-8, and is none of it."""
_LINE_END = re.compile(r"\r\n|\r|\n")


@dataclass(frozen=True)
class Header:
    """The names of the columns of a file, and the line they stand in; None where there is none."""

    names: tuple[str, ...]
    line: str | None


def read_header(beginning: bytes, form: CsvForm) -> Header:
    """The columns of a file that begins so; without a header they are column_1, column_2 and so on.

    A file without any record has no columns. csv.Error where a value is longer than a reader takes.
    """
    text = beginning.decode(form.encoding, errors="replace").removeprefix(BOM)
    lines = list(split_lines(text))
    reader = csv.reader(
        lines,
        delimiter=form.delimiter,
        quotechar=form.quote,
        doublequote=form.escape is None,
        escapechar=form.escape,
    )
    begin = 0
    for row in reader:
        if any(value.strip() for value in row):
            return _name_columns(row, lines[begin], form)
        begin = reader.line_num
    return Header((), None)


def _name_columns(first: Sequence[str], line: str, form: CsvForm) -> Header:
    """The columns of a file by its first record, which begins with the line."""
    if not form.header:
        return Header(tuple(f"column_{place}" for place in range(1, len(first) + 1)), None)
    return Header(tell_apart(first), line.rstrip("\n"))


def split_lines(text: str) -> Iterator[str]:
    """The lines with a line feed behind each, whatever stands there in the file."""
    begin = 0
    for end in _LINE_END.finditer(text):
        yield text[begin : end.start()] + "\n"
        begin = end.end()
    if begin < len(text):
        yield text[begin:]
