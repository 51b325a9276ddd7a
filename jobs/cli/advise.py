"""The command that proposes a watermark from the history of the source: advise."""

from collections.abc import Iterable, Sequence
from datetime import datetime
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import click

from jobs.cli.options import TIMES, Instant, common
from jobs.cli.spark import open_to_read
from jobs.console import Printer
from windowing.report.text import count, instant, interval
from windowing.spec.duration import FIXED_UNITS, Duration
from windowing.spec.kinds import zone_of
from windowing.spec.words import quote_value

if TYPE_CHECKING:
    from windowing.advise.advice import Advice, Named, OpenWindow, Target
    from windowing.advise.cost import Cost
    from windowing.advise.rule import Settings
    from windowing.spec.pipeline import Pipeline

_MOST_SHOWN = 12
"""How many open windows of an output are printed, those that end nearest to the newest commit."""


class Share(click.ParamType[Fraction]):
    """A share in percent, as 99.9."""

    name = "percent"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> Fraction:
        """The share; a usage error for what is none above 0 and up to 100."""
        from windowing.advise.rule import read_share

        if isinstance(value, Fraction):
            return value
        try:
            return read_share(str(value))
        except (ValueError, ZeroDivisionError):
            self.fail(
                f"{quote_value(str(value))} is no share in percent above 0 and up to 100, "
                "such as 99.9",
                param,
                ctx,
            )


class Length(click.ParamType[Duration]):
    """A duration in the words of a spec."""

    name = "duration"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> Duration:
        """The duration; a usage error for another text, for months and for what is not positive."""
        if isinstance(value, Duration):
            return value
        try:
            length = Duration.parse(value, FIXED_UNITS)
        except ValueError as error:
            self.fail(str(error), param, ctx)
        if length.us <= 0:
            self.fail(f"{quote_value(value)} is no positive length without months", param, ctx)
        return length


@click.command()
@common
@click.option(
    "--by",
    multiple=True,
    metavar="COLUMN",
    help="Group events by this column of the source instead of the key. May be repeated.",
)
@click.option(
    "--since",
    type=Instant(),
    help=f"Only events that arrived from this time on (inclusive). {TIMES}",
)
@click.option(
    "--rows",
    type=click.IntRange(1),
    default=5_000_000,
    show_default=True,
    help="Read about so many rows, the newest ones.",
)
@click.option(
    "--every",
    type=Length(),
    help="As if the pipeline ran so often, such as '15 minutes'; else after each commit.",
)
@click.option(
    "--on-time",
    type=Share(),
    default="99",
    show_default=True,
    help="Percent of events to arrive before a window of theirs has closed.",
)
@click.option(
    "--counted",
    type=Share(),
    default="99.9",
    show_default=True,
    help="Percent of events to be counted in all their windows.",
)
def advise(
    pipeline: "Pipeline",
    *,
    printer: Printer,
    by: tuple[str, ...],
    since: datetime | None,
    rows: int,
    every: Duration | None,
    on_time: Fraction,
    counted: Fraction,
) -> None:
    """Propose a watermark from the history of the source; write nothing.

    Says how late events arrive, which delay and lateness would have been enough for 99, 99.9 and
    100 percent, what each would have cost, and how much of each open window has probably arrived.
    """
    from jobs.advise import advise as advise_on
    from jobs.sessions.profiles import SHORT
    from windowing.advise.advice import Wanted
    from windowing.advise.reading import Asked
    from windowing.grid.zone import micros

    asked = Asked(rows, by, None if since is None else micros(since))
    wanted = Wanted(on_time, counted, 0 if every is None else every.us)
    advice = advise_on(pipeline, asked, wanted, lambda: open_to_read(SHORT))
    _print_history(printer, advice)
    if advice.unknown is not None:
        printer.line(advice.unknown)
    else:
        _print_lateness(printer, pipeline, advice, by)
        _print_settings(printer, advice)
        _print_keys(printer, advice)
        _print_windows(printer, pipeline, advice)
        _print_proposal(printer, advice)
    printer.finish(advice.as_json())


def _print_history(printer: Printer, advice: "Advice") -> None:
    """Prints what was read, how far back it reaches and what was left out."""
    from windowing.grid.zone import moment

    reading, history = advice.reading, advice.history
    arrived = reading.batches.arrived_us.tolist()
    commits = count(len(arrived), "commit")
    events = count(len(history.events.time), "event")
    printer.line(f"{advice.pipeline}: {events} in {commits} of {advice.source}")
    if arrived:
        when = f"{instant(moment(arrived[0]))} to {instant(moment(arrived[-1]))}"
        versions = f"versions {reading.first} to {reading.last}"
        printer.line(f"They arrived from {when}, in {versions}; {reading.reach}.")
    first = len(history.events.time) - advice.judged
    if advice.judged and first:
        printer.line(f"{count(first, 'event')} arrived first, so nothing is late among them.")
    for each in reading.left_out:
        rows = "" if each.rows is None else f" with {count(each.rows, 'row')}"
        printer.line(f"{count(each.commits, 'commit')}{rows} left out, because {each.reason}.")
    for number, what in (
        (reading.invalid, "without a valid event time or key"),
        (history.ahead, "too far ahead of their arrival"),
        (history.copies, "whose event id had arrived before"),
    ):
        if number:
            printer.line(f"{count(number, 'row')} left out {what}.")


def _print_lateness(
    printer: Printer, pipeline: "Pipeline", advice: "Advice", by: Sequence[str]
) -> None:
    from windowing.advise.advice import Named
    from windowing.advise.analysis import find_zone
    from windowing.advise.groups import SHARES
    from windowing.advise.rule import describe_length, write_share

    if advice.all is None:
        return
    shares = [write_share(share) for share in SHARES]
    rows = [
        ("behind the newest event before it", *map(describe_length, advice.all.behind_us)),
        ("after it happened, by the clock", *map(describe_length, advice.all.age_us)),
    ]
    printer.table(["an event arrives, at most", *shares], rows, "How late do events arrive?")
    names = ", ".join(by or pipeline.source.key)
    title = "Which are latest?"
    if advice.others:
        title = f"Which are latest? ({count(advice.others, 'other')} left out)"
    _print_named(printer, names, advice.groups, title)
    hour = f"hour ({find_zone(pipeline) or 'UTC'})"
    _print_named(printer, hour, advice.hours, "At which hour of the day do they happen?")
    periods: Iterable[Named] = advice.periods
    _print_named(printer, "arrived from", periods, "Does it change over time?")


def _print_named(printer: Printer, what: str, named: "Iterable[Named]", title: str) -> None:
    from windowing.advise.groups import SHARES
    from windowing.advise.rule import describe_length, write_share

    shares = [f"{write_share(share)} behind" for share in SHARES]
    rows = [
        (
            each.name,
            each.lateness.events,
            *map(describe_length, each.lateness.behind_us),
            describe_length(each.lateness.age_us[1]),
        )
        for each in named
    ]
    printer.table([what, "events", *shares, "99 % after it happened"], rows, title)


def _print_settings(printer: Printer, advice: "Advice") -> None:
    columns = [
        "settings",
        "needs",
        "delay",
        "lateness",
        "miss a window",
        "refused",
        "corrections",
        "half wait",
        "99 % wait",
        "open rows",
    ]
    rows = []
    if advice.present is not None:
        rows.append(("of the spec", None, *_list_cost(advice.present)))
    rows += [(*_name_target(target), *_list_cost(target.cost)) for target in advice.targets]
    if advice.proposed is not None:
        rows.append(("proposed", None, *_list_cost(advice.proposed)))
    printer.table(columns, rows, "What would have been enough, and what would it cost?")
    for note in advice.notes:
        printer.line(f"Note: {note}.")


def _name_target(target: "Target") -> tuple[str, str]:
    from windowing.advise.rule import describe_length, write_share

    return f"{write_share(target.share)} by delay", describe_length(target.reach_us)


def _list_cost(cost: "Cost") -> tuple[object, ...]:
    from windowing.advise.rule import describe_length, describe_part

    waits = (cost.wait_us, cost.long_wait_us)
    return (
        str(Duration(cost.settings.delay_us)),
        _describe_lateness(cost.settings),
        describe_part(cost.missing, cost.events),
        describe_part(cost.refused, cost.events),
        cost.corrections,
        *(None if us is None else describe_length(us) for us in waits),
        cost.open_rows,
    )


def _describe_lateness(settings: "Settings") -> str:
    from windowing.advise.advice import is_forever

    return "forever" if is_forever(settings) else str(Duration(settings.lateness_us))


def _print_keys(printer: Printer, advice: "Advice") -> None:
    if advice.odd_keys:
        rows = [(key, finding.what, finding.text) for key, finding in advice.odd_keys]
        printer.data(["key", "what", "why"], rows, "Which keys are odd?")


def _print_windows(printer: Printer, pipeline: "Pipeline", advice: "Advice") -> None:
    from windowing.advise.rule import describe_length

    rows = []
    for output in dict.fromkeys(window.output for window in advice.windows):
        zone = zone_of(pipeline.window(output))
        for window in _choose_nearest(advice, output):
            bounds = interval(window.start, window.end, zone)
            rows.append((output, bounds, window.events, _percent(window.expected_share)))
    if rows:
        columns = ["window", "open", "events", "expected share"]
        printer.table(columns, rows, "How much of each open window has probably arrived?")
    checks = [
        (
            each.output,
            describe_length(each.check.age_us),
            _percent(each.check.expected),
            _percent(each.check.was),
            each.check.windows,
        )
        for each in advice.checks
    ]
    if checks:
        columns = ["window", "time since its end", "expected", "was", "windows"]
        printer.table(columns, checks, "Were earlier expected shares right?")
    elif rows:
        printer.line("The history is too short to check expected shares.")


def _choose_nearest(advice: "Advice", output: str) -> "list[OpenWindow]":
    """The open windows of an output that end nearest to the newest commit, in their order."""
    from windowing.grid.zone import micros

    those = [window for window in advice.windows if window.output == output]
    now_us = int(advice.history.batches.arrived_us[-1])
    nearest = sorted(those, key=lambda window: abs(micros(window.end) - now_us))[:_MOST_SHOWN]
    return sorted(nearest, key=lambda window: (window.end, window.start))


def _percent(share: float | None) -> str | None:
    return None if share is None else f"{100 * share:.1f} %"


def _print_proposal(printer: Printer, advice: "Advice") -> None:
    """Prints the proposal as a part of a spec."""
    from windowing.advise.rule import describe_part

    cost = advice.proposed
    if cost is None:
        return
    on_time = cost.events - cost.missing - cost.correcting
    printer.line(
        f"Proposed: of {count(cost.events, 'event')}, {describe_part(on_time, cost.events)} would "
        f"have arrived before a window of theirs had closed, {cost.correcting:,} would have "
        f"corrected windows, {cost.missing:,} would have missed a window, and {cost.refused:,} "
        "of these would have been refused."
    )
    printer.line("watermark:")
    printer.line(f"  delay: {Duration(cost.settings.delay_us)}")
    printer.line(f"  allowed_lateness: {_describe_lateness(cost.settings)}")
