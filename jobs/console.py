"""Prints to the terminal: tables, sentences and progress for people, one JSON object for programs.

What the JVM writes by itself is kept away from both.
"""

import json
import os
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from decimal import Decimal
from typing import IO, Any, Literal

from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from windowing.report.text import cell, count, datum

Progress = Callable[[int, int], None]
"""What is called with (steps done, all steps)."""
_LOG_SECONDS = 10.0
"""How far lines of progress are apart in a log, at least."""
_WIDTH_WITHOUT_TERMINAL = 200
"""How many columns wide tables are where the output is not a terminal."""


class Printer:
    """Prints for people on stdout, or on stderr when stdout is kept for JSON."""

    def __init__(self, *, as_json: bool) -> None:
        self._as_json = as_json
        self.console = open_console(sys.stderr if as_json else sys.stdout)

    def line(self, text: str) -> None:
        """Prints one sentence."""
        self.console.print(Text(text), soft_wrap=True)

    def data(
        self, columns: Sequence[str], rows: Iterable[Sequence[Any]], title: str | None = None
    ) -> None:
        """Prints rows of a pipeline's table; numbers stay as they are stored."""
        self.table(columns, rows, title, datum)

    def table(
        self,
        columns: Sequence[str],
        rows: Iterable[Sequence[Any]],
        title: str | None = None,
        text: Callable[[Any], str] = cell,
    ) -> None:
        """Prints a table, in which `text` renders each value.

        A column that contains only numbers is aligned to the right.
        """
        body = [list(row) for row in rows]
        table = Table(
            title=None if title is None else Text(title),
            box=box.SIMPLE_HEAD,
            title_justify="left",
            title_style="bold",
            pad_edge=False,
        )
        for i, name in enumerate(columns):
            values = [row[i] for row in body]
            justify: Literal["left", "right"] = "right" if _is_numeric(values) else "left"
            table.add_column(Text(name), justify=justify, overflow="fold")
        for row in body:
            table.add_row(*(Text(text(value)) for value in row))
        self.console.print(table)

    def facts(self, facts: Mapping[str, Any]) -> None:
        """Prints names and values, one pair on each line."""
        table = Table(box=None, show_header=False, pad_edge=False)
        table.add_column(style="dim", no_wrap=True)
        table.add_column(overflow="fold")
        for name, value in facts.items():
            table.add_row(Text(name), Text(cell(value)))
        self.console.print(table)

    def finish(self, result: Mapping[str, object]) -> None:
        """Prints the result as one JSON object on the last line of stdout, with --json only."""
        self.console.file.flush()
        if self._as_json:
            print(json.dumps(result, allow_nan=False), flush=True)


def open_console(stream: IO[str]) -> Console:
    """A console on `stream` that prints text literally, as wide as the terminal is."""
    width = None if stream.isatty() else _WIDTH_WITHOUT_TERMINAL
    return Console(file=stream, width=width, markup=False, highlight=False, emoji=False)


@contextmanager
def show_progress(title: str, unit: str) -> Iterator[Progress]:
    """What a command calls for each step that is done; `unit` is what a step is, such as chunk.

    On a terminal it is a bar on stderr, without colours where NO_COLOR is set. Elsewhere the first
    step is a line, and then one after some seconds; work of one step has none.
    """
    console = open_console(sys.stderr)
    if not sys.stderr.isatty():
        yield _ProgressLines(console, title, unit).print_line
        return
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    columns = (
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn(f"{unit}s", markup=False),
        TimeElapsedColumn(),
    )
    with Progress(*columns, console=console) as bar:
        task = bar.add_task(title, total=None)
        yield lambda done, total: bar.update(task, completed=done, total=total)


class _ProgressLines:
    def __init__(self, console: Console, title: str, unit: str) -> None:
        self._console, self._title, self._unit = console, title, unit
        self._told_s: float | None = None

    def print_line(self, done: int, total: int) -> None:
        now_s = time.monotonic()
        is_new = self._told_s is None or now_s - self._told_s >= _LOG_SECONDS
        if total < 2 or not is_new:
            return
        self._told_s = now_s
        text = f"{self._title}: {done} of {count(total, self._unit)} done"
        self._console.print(Text(text), soft_wrap=True)


def _is_numeric(values: Sequence[Any]) -> bool:
    """Whether there are values, nulls aside, and all of them are numbers."""
    known = [value for value in values if value is not None]
    return bool(known) and all(_is_number(value) for value in known)


def _is_number(value: Any) -> bool:
    # For Python, booleans are integers.
    return isinstance(value, (int, float, Decimal)) and not isinstance(value, bool)


@contextmanager
def redirected_stdio() -> Iterator[IO[bytes]]:
    """Redirects stdout and stderr of the process, and of those it starts, to an unnamed file.

    Processes that are started inside the block keep writing to that file after it. The JVM prints
    its modules on stderr before a logger can be configured, and Delta prints on stdout what VACUUM
    deleted.
    """
    sys.stdout.flush()
    sys.stderr.flush()
    # The JVM inherits the file descriptors, so replacing `sys.stdout` would not reach it.
    saved = {number: os.dup(number) for number in (1, 2)}
    with tempfile.TemporaryFile() as file:
        for number in saved:
            os.dup2(file.fileno(), number)
        try:
            yield file
        finally:
            for number, original in saved.items():
                os.dup2(original, number)
                os.close(original)
