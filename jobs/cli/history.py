"""The command that shows which values windows have had: history."""

from collections.abc import Iterator, Mapping
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import click

from jobs.cli.changed_spec import tell_changed_spec
from jobs.cli.event_cells import (
    EVENT_COLUMNS,
    describe_step,
    events_option,
    list_cells_of_events,
)
from jobs.cli.options import (
    Instant,
    common,
    key_option,
    keys_of,
    limit_option,
    ordered,
    window_of,
    windows_options,
)
from jobs.cli.pipeline_argument import WINDOW
from jobs.cli.spark import open_to_read
from jobs.console import Printer
from windowing.columns import END, REVISION, RUN, START
from windowing.errors import UsageError
from windowing.report.text import count, instant, window_cell

if TYPE_CHECKING:
    from jobs.history import Histories, WindowHistory
    from windowing.revisions.rule import Period, Value
    from windowing.spec.pipeline import Pipeline

_MICROSECOND = timedelta(microseconds=1)
_LAST = datetime.max.replace(tzinfo=UTC)


@click.command()
@common
@click.argument("window", type=WINDOW, metavar="WINDOW")
@key_option
@click.option("--at", type=Instant(), help="Only windows that contain this time.")
@windows_options
@limit_option
@events_option("Of one window, also tell the events that each run or backfill has accepted")
def history(
    pipeline: "Pipeline",
    window: str,
    *,
    printer: Printer,
    keys: tuple[str, ...],
    at: datetime | None,
    start: datetime | None,
    end: datetime | None,
    reverse: bool,
    limit: int,
    events: int | None,
) -> None:
    """Show the values that windows have had, and why.

    For each value: since when and until when it was known, when readers of the published version
    saw it, and which step made it. Of a single window it says how many refused events belong to it.
    """
    chosen = window_of(pipeline, window)
    wanted_keys = keys_of(pipeline, keys)
    if at is not None and (start is not None or end is not None):
        raise UsageError("--at names the windows already; leave out --from and --to")
    ordered(start, end)
    if at is not None:
        # No window begins after the last time that there is.
        start, end = at, None if at == _LAST else at + _MICROSECOND
    from jobs.sessions.profiles import FULL, choose_for_tables

    # How much of the source is read is not known.
    session = open_to_read(choose_for_tables(pipeline) if events is None else FULL)
    from jobs.history import history as read_history
    from jobs.show import Wanted

    wanted = Wanted(wanted_keys, start, end, reverse, limit)
    found = read_history(session, pipeline, chosen, wanted, events)
    _print_histories(printer, pipeline, window, found)
    printer.finish({"pipeline": pipeline.name, "window": window, **found.as_json()})
    tell_changed_spec(pipeline, found.changed)


def _print_histories(
    printer: Printer, pipeline: "Pipeline", window: str, found: "Histories"
) -> None:
    name = f"{pipeline.name}.{window}"
    if found.missing is not None:
        printer.line(f"{pipeline.name}: no history, because {found.missing}")
        return
    for each in found.windows:
        _print_window(printer, pipeline, window, each)
    shown = len(found.windows)
    more = "" if shown == found.total else f"{shown:,} of "
    printer.line(f"{name}: {more}{count(found.total, 'window')}")
    if not found.is_complete:
        printer.line(
            "earlier values are not known: the output recorded no change feed, its columns were "
            "changed, files were deleted before their changes were kept, or retention.revisions or "
            "`erase --where` has removed them"
        )


def _print_window(
    printer: Printer, pipeline: "Pipeline", output: str, window: "WindowHistory"
) -> None:
    start, end = window.bounds
    keys = ", ".join(f"{key}={window.identity[key]}" for key in pipeline.source.key)
    bounds = window_cell({START: start, END: end}, pipeline.window(output))
    title = " ".join([f"{pipeline.name}.{output}", keys, bounds])
    hidden = {END, RUN}
    columns = dict.fromkeys(
        column for value in window.values for column in value.values or () if column not in hidden
    )
    rows = [list(_value_cells(value, columns)) for value in window.values]
    printer.data(["known from", "because of", *columns, "published"], rows, title)
    if window.events:
        printer.data(["because of", *EVENT_COLUMNS], list(_list_event_cells(window)))
    if window.refused:
        counted = ", ".join(f"{n:,} {outcome}" for outcome, n in window.refused.items())
        printer.line(f"refused events inside of it: {counted}; `tidemark late` shows them")


def _value_cells(value: "Value", columns: Mapping[str, None]) -> Iterator[Any]:
    yield "not recorded" if value.made_by is None else instant(value.known.start)
    yield describe_step(value.made_by)
    if value.values is None:
        yield from ("removed" if column == REVISION else None for column in columns)
    else:
        yield from (value.values.get(column) for column in columns)
    unseen = "never" if value.is_published_known else "not recorded"
    yield "; ".join(_describe_period(period) for period in value.published) or unseen


def _list_event_cells(window: "WindowHistory") -> Iterator[list[Any]]:
    """By value which events the step has accepted that made it."""
    for value, events in zip(window.values, window.events, strict=True):
        yield [describe_step(value.made_by), *list_cells_of_events(events)]


def _describe_period(period: "Period") -> str:
    start = "before the record" if period.start is None else instant(period.start)
    return f"since {start}" if period.end is None else f"{start} to {instant(period.end)}"
