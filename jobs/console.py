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
from typing import IO, Any, Literal

from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from windowing.report.text import cell, count, datum
from windowing.spec.words import is_number

Progress = Callable[[int, int], None]
"""What is called with (steps done, all steps)."""
Share = Callable[[float, str], None]
"""What is called with the share that is done, from 0 to 1, and a text."""
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

    Work of one step shows nothing in a log.
    """
    with show_share(title) as show:

        def tell(done: int, total: int) -> None:
            if total > 1 or sys.stderr.isatty():
                show(done / total if total else 1.0, f"{done} of {count(total, unit)} done")

        yield tell


@contextmanager
def show_share(title: str) -> Iterator[Share]:
    """What a command calls with the share of its work that is done, and what is done in words.

    On a terminal it is a bar on stderr from the first call on, without colours where NO_COLOR is
    set. Elsewhere the first call is a line, and then one after some seconds.
    """
    console = open_console(sys.stderr)
    if not sys.stderr.isatty():
        yield _ProgressLines(console, title).print_line
        return
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

    columns = (
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        TextColumn("{task.fields[text]}", markup=False),
        TimeElapsedColumn(),
    )
    with Progress(*columns, console=console) as bar:
        task = bar.add_task(title, total=1.0, visible=False, text="")
        yield lambda share, text: bar.update(task, completed=share, visible=True, text=text)


class _ProgressLines:
    def __init__(self, console: Console, title: str) -> None:
        self._console, self._title = console, title
        self._told_s: float | None = None

    def print_line(self, share: float, text: str) -> None:
        now_s = time.monotonic()
        if self._told_s is not None and now_s - self._told_s < _LOG_SECONDS:
            return
        self._told_s = now_s
        self._console.print(Text(f"{self._title}: {text}"), soft_wrap=True)


def _is_numeric(values: Sequence[Any]) -> bool:
    """Whether there are values, nulls aside, and all of them are numbers."""
    known = [value for value in values if value is not None]
    return bool(known) and all(map(is_number, known))


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
