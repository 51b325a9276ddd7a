"""The commands of closed periods: close, reopen and restatements."""

from datetime import datetime
from typing import TYPE_CHECKING, Any

import click

from jobs.cli.event_cells import (
    EVENT_COLUMNS,
    describe_step,
    events_option,
    list_cells_of_events,
)
from jobs.cli.options import TIMES, Instant, common, limit_option, window_of
from jobs.cli.pipeline_argument import WINDOW
from jobs.cli.spark import open_to_read, open_to_write
from jobs.console import Printer
from windowing.columns import END, START
from windowing.errors import UsageError
from windowing.report.text import count, instant, window_cell
from windowing.spec.words import join_names
from windowing.values import is_same

if TYPE_CHECKING:
    from jobs.restatements import Restatement, Restatements
    from windowing.report.periods import ClosedPeriod
    from windowing.spec.kinds import Window
    from windowing.spec.pipeline import Pipeline

_DONE = {"insert": "inserted", "update": "updated", "delete": "deleted"}
_UNTIL = f"Freeze rows whose window ends at or before this time. {TIMES}"


@click.command(short_help="Freeze rows of outputs that end until a time.")
@common
@click.option("--until", type=Instant(), required=True, help=_UNTIL)
@click.option("--reason", required=True, help="Why; the ledger records it.")
def close(pipeline: "Pipeline", *, printer: Printer, until: datetime, reason: str) -> None:
    """Close a period: rows of outputs that end in it never change again.

    What late events, backfills or corrections would change is stated beside the outputs, and
    `restatements` shows it. Events go on being accepted by the same rules. The watermark must have
    reached --until. Closing again moves it forward.
    """
    _require(reason)
    from jobs.close import close_period
    from jobs.sessions.profiles import choose_for_tables

    session = open_to_write(pipeline, choose_for_tables(pipeline))
    done = close_period(session, pipeline, until, reason)
    rows = [[name, n] for name, n in done.frozen.items()]
    printer.table(["window", "frozen rows"], rows, pipeline.name)
    for sentence in describe_closed(pipeline, done):
        printer.line(sentence)
    printer.finish({"pipeline": pipeline.name, **done.as_json()})


def describe_closed(pipeline: "Pipeline", done: "ClosedPeriod") -> list[str]:
    """What is closed, what is not, and what readers see, in sentences."""
    until = instant(done.until)
    changed = f"{pipeline.name} is closed until {until}"
    same = f"{pipeline.name} is closed until {until} already, so nothing was changed"
    sentences = [changed if done.changed else same]
    if done.not_frozen:
        sentences.append(
            f"{join_names(done.not_frozen)}: not frozen, because a late event may change rows "
            "behind the period with those in it, or because they never end"
        )
    if done.published is False:
        sentences.append(
            "readers of published tables see the frozen rows, and an older version of others; "
            "`tidemark publish` shows them the newest"
        )
    return sentences


@click.command(short_help="Release the rows that a close has frozen.")
@common
@click.option("--reason", required=True, help="Why; the ledger records it.")
def reopen(pipeline: "Pipeline", *, printer: Printer, reason: str) -> None:
    """Reopen a closed period: outputs become as if it had never been closed.

    Restated rows become rows of the outputs, to be validated and published as any others.
    """
    _require(reason)
    from jobs.close import reopen_period
    from jobs.sessions.profiles import choose_for_tables

    session = open_to_write(pipeline, choose_for_tables(pipeline))
    done = reopen_period(session, pipeline, reason)
    if done.until is None:
        printer.line(f"{pipeline.name}: no period is closed, so nothing was changed")
    else:
        rows = [[name, c.inserted, c.updated, c.deleted] for name, c in done.windows.items()]
        if rows:
            printer.table(["window", "inserted", "updated", "deleted"], rows, pipeline.name)
        printer.line(f"{pipeline.name}: the period until {instant(done.until)} is open again")
        if not rows:
            printer.line("it was interrupted and is finished, so what it changed was not counted")
    printer.finish({"pipeline": pipeline.name, **done.as_json()})


def _require(reason: str) -> None:
    if not reason.strip():
        raise UsageError("--reason is empty; say why, because the ledger records it")


@click.command(short_help="Show what frozen rows would be: old, new and difference.")
@common
@click.argument("window", type=WINDOW, metavar="[WINDOW]", required=False)
@limit_option
@events_option(
    "Also tell the events that each run or backfill since the close has accepted in a row's window"
)
def restatements(
    pipeline: "Pipeline", window: str | None, *, printer: Printer, limit: int, events: int | None
) -> None:
    """Show what rows of a closed period would be: old, new and difference.

    It is what `reopen` would change in the outputs.
    """
    chosen = None if window is None else window_of(pipeline, window)
    from jobs.sessions.profiles import FULL, choose_for_tables

    # How much of the source is read is not known.
    session = open_to_read(choose_for_tables(pipeline) if events is None else FULL)
    from jobs.restatements import restatements as read_restatements

    found = read_restatements(session, pipeline, chosen, limit, events)
    for each in found.windows:
        if each.total:
            _print_window(printer, pipeline, each)
    total = sum(each.total for each in found.windows)
    if found.until is None:
        printer.line(f"{pipeline.name}: no period is closed, so nothing is restated")
    elif not total:
        printer.line(f"{pipeline.name} is closed until {instant(found.until)}: nothing is restated")
    else:
        until = instant(found.until)
        printer.line(f"{pipeline.name} is closed until {until}: {count(total, 'row')} would differ")
    printer.finish({"pipeline": pipeline.name, **found.as_json()})


def _print_window(printer: Printer, pipeline: "Pipeline", found: "Restatements") -> None:
    keys = pipeline.source.key
    window = pipeline.window(found.window)
    rows = [cells for each in found.rows for cells in _list_cells(each, keys, window)]
    columns = [*keys, "window", "would be", "run", "value", "old", "new", "difference"]
    shown = len(found.rows)
    more = "" if shown == found.total else f", the first {shown:,} of {found.total:,}"
    printer.data(columns, rows, f"{pipeline.name}.{found.window}{more}")
    brought = [
        [*_list_place(each, keys, window), describe_step(by.step), *list_cells_of_events(by.events)]
        for each in found.rows
        for by in each.brought_by or ()
    ]
    if brought:
        printer.data([*keys, "window", "because of", *EVENT_COLUMNS], brought)


def _list_place(each: "Restatement", keys: tuple[str, ...], window: "Window") -> list[Any]:
    """The cells of key and window."""
    bounds = window_cell({START: each.start, END: each.end}, window)
    return [*(each.key[key] for key in keys), bounds]


def _list_cells(each: "Restatement", keys: tuple[str, ...], window: "Window") -> list[list[Any]]:
    """One line for each value that differs; one without values where none does."""
    old, new = each.old or {}, each.new or {}
    names = [name for name in (each.new or old) if not is_same(old.get(name), new.get(name))]
    place = _list_place(each, keys, window)
    done = _DONE[each.operation]
    return [
        [*place, done, each.run, name, old.get(name), new.get(name), each.difference.get(name)]
        for name in names
    ] or [[*place, done, each.run, None, None, None, None]]
