"""What a terminal shows: tables and sentences for people, one JSON object for programs, nothing of what the JVM says."""

import json
import os
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from decimal import Decimal
from typing import IO, Any

from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from windowing.report.text import cell, datum

_WIDE = 200
"""Columns of an output that is no terminal."""


class Printer:
    """Prints for people on stdout, or on stderr when stdout is kept for JSON."""

    def __init__(self, *, as_json: bool) -> None:
        self._as_json = as_json
        self.console = console(sys.stderr if as_json else sys.stdout)

    def line(self, text: str) -> None:
        """One sentence."""
        self.console.print(Text(text), soft_wrap=True)

    def data(
        self, columns: Sequence[str], rows: Iterable[Sequence[Any]], title: str | None = None
    ) -> None:
        """Rows of a pipeline's table: numbers as they are."""
        self.table(columns, rows, title, datum)

    def table(
        self,
        columns: Sequence[str],
        rows: Iterable[Sequence[Any]],
        title: str | None = None,
        text: Callable[[Any], str] = cell,
    ) -> None:
        """A table of what `text` makes of each value; columns that hold numbers only are aligned to the right."""
        body = [list(row) for row in rows]
        table = Table(
            title=title and Text(title),
            box=box.SIMPLE_HEAD,
            title_justify="left",
            title_style="bold",
            pad_edge=False,
        )
        for i, name in enumerate(columns):
            numeric = _numeric([row[i] for row in body])
            table.add_column(Text(name), justify="right" if numeric else "left", overflow="fold")
        for row in body:
            table.add_row(*(Text(text(value)) for value in row))
        self.console.print(table)

    def facts(self, facts: Mapping[str, Any]) -> None:
        """Names and values, one below the other."""
        table = Table(box=None, show_header=False, pad_edge=False)
        table.add_column(style="dim", no_wrap=True)
        table.add_column(overflow="fold")
        for name, value in facts.items():
            table.add_row(Text(name), Text(cell(value)))
        self.console.print(table)

    def finish(self, result: Mapping[str, object]) -> None:
        """The JSON object, if it was asked for, as the last line of stdout."""
        self.console.file.flush()
        if self._as_json:
            print(json.dumps(result, allow_nan=False), flush=True)


def console(stream: IO[str]) -> Console:
    """A console on `stream` that takes text literally; wide where nobody's terminal says how wide."""
    width = None if stream.isatty() else _WIDE
    return Console(file=stream, width=width, markup=False, highlight=False, emoji=False)


def _numeric(values: Sequence[Any]) -> bool:
    known = [v for v in values if v is not None]
    return bool(known) and all(
        isinstance(v, (int, float, Decimal)) and not isinstance(v, bool) for v in known
    )


@contextmanager
def aside() -> Iterator[IO[bytes]]:
    """Processes started inside the block write stdout and stderr to a file without a name, for as long as they live.

    The JVM says on stderr which of its own modules it loads, before any logger is set up that could be told not to; Delta says on stdout
    what VACUUM deleted.
    """
    sys.stdout.flush()
    sys.stderr.flush()
    kept = os.dup(1), os.dup(2)
    with tempfile.TemporaryFile() as file:
        os.dup2(file.fileno(), 1)
        os.dup2(file.fileno(), 2)
        try:
            yield file
        finally:
            for own, to in zip(kept, (1, 2), strict=True):
                os.dup2(own, to)
                os.close(own)
