"""Quotes of CSV that nothing closes. Each would take what is behind it into its value."""

import re
from collections.abc import Iterable

from windowing.ingest.header import BOM
from windowing.spec.pipeline import CsvForm

NOT_CLOSED = "has a quote that is not closed"


def open_quote_pattern(form: CsvForm) -> str:
    """A line whose last value begins with a quote that nothing closes, up to the end of the line.

    Java and Python read the pattern alike.
    """
    quote, separator = re.escape(form.quote), re.escape(form.delimiter)
    # Java would run out of stack on a long line if these loops could go back.
    if form.escape is None:
        inside = f"[^{quote}]*+(?:{quote}{quote}[^{quote}]*+)*+"
    else:
        escape = re.escape(form.escape)
        inside = f"[^{quote}{escape}]*+(?:{escape}.?[^{quote}{escape}]*+)*+"
    begun = f" *{quote}{inside}"
    # What follows a closed quote belongs to its value, up to the next delimiter.
    value = f"(?:{begun}{quote}|(?! *{quote}))[^{separator}]*+"
    return f"(?s)^(?:{value}{separator})*+{begun}$"


def is_left_open(lines: Iterable[str], form: CsvForm) -> bool:
    """Whether the lines of a file, whose records may span some, end inside of quotes.

    Each line has its end.
    """
    pattern = re.compile(open_quote_pattern(form))
    is_open = False
    for line in lines:
        if form.quote in line:
            text = f"{form.quote}{line}" if is_open else line.removeprefix(BOM)
            is_open = pattern.match(text) is not None
    return is_open
