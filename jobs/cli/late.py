"""The command that shows refused rows: late."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any

import click

from jobs.cli.options import (
    as_of_option,
    common,
    key_option,
    keys_of,
    limit_option,
    ordered,
    range_options,
)
from jobs.cli.spark import open_to_read
from jobs.console import Printer
from windowing.admit.outcomes import REFUSED, REFUSED_OUTCOMES
from windowing.columns import kept_name

if TYPE_CHECKING:
    from windowing.report.rows import Refused
    from windowing.spec.pipeline import Pipeline


@click.command()
@common
@click.option(
    "--outcome",
    "outcomes",
    type=click.Choice(REFUSED_OUTCOMES),
    multiple=True,
    help="Only rows with this outcome. May be repeated.",
)
@key_option
@range_options("event times")
@as_of_option("Show the rows as run RUN left them.")
@limit_option
def late(
    pipeline: "Pipeline",
    *,
    printer: Printer,
    outcomes: tuple[str, ...],
    keys: tuple[str, ...],
    start: datetime | None,
    end: datetime | None,
    reverse: bool,
    as_of: str | None,
    limit: int,
) -> None:
    """Show refused rows, newest run first.

    late: late for every window; partial: late for some of its windows; duplicate: its event id was
    accepted before; quarantined: invalid (the reason is shown).
    """
    wanted_keys = keys_of(pipeline, keys)
    ordered(start, end)
    wanted_outcomes = outcomes or REFUSED_OUTCOMES
    found = None
    if as_of is None:
        found = _find_none_refused(pipeline, wanted_outcomes)
    if found is None:
        from jobs.sessions.profiles import choose_for_tables
        from jobs.show import Wanted, show_refused

        session = open_to_read(choose_for_tables(pipeline))
        wanted = Wanted(wanted_keys, start, end, not reverse, limit)
        found = show_refused(session, pipeline, wanted_outcomes, wanted, as_of)
    if found.missing is None:
        counts = [f"{n:,} {outcome}" for outcome, n in found.counts.items()]
        printer.line(f"{pipeline.name}: {', '.join(counts)}")
    else:
        printer.line(f"{pipeline.name}: no refused rows, because {found.missing}")
    if found.rows:
        names = list(pipeline.source.key)
        if pipeline.source.event_id:
            names.append(pipeline.source.event_id)
        columns = ["outcome", *names, "event time", "run", "watermark", "reason", "resolved by"]
        printer.data(columns, [_refused_cells(row, names) for row in found.rows])
    printer.finish({"pipeline": pipeline.name, **found.as_json()})


def _find_none_refused(pipeline: "Pipeline", outcomes: Sequence[str]) -> "Refused | None":
    """The answer where no row had one of `outcomes` yet, which is known without a JVM."""
    from windowing.ledger.table import LEDGER
    from windowing.report.rows import Refused
    from windowing.storage.kept_open import has_commit

    for table, its in REFUSED.items():
        if {*its} & {*outcomes} and has_commit(pipeline.table(table)):
            return None
    missing = None if has_commit(pipeline.table(LEDGER)) else "there is no run yet"
    return Refused(dict.fromkeys(outcomes, 0), (), missing)


def _refused_cells(row: Mapping[str, Any], names: Sequence[str]) -> list[Any]:
    # Only rows of the table `_late` name the windows that they missed.
    missed = ", ".join(window["window"] for window in row.get("missed") or [])
    reason = f"{row['reason']}: {missed}" if missed else row["reason"]
    return [
        row["outcome"],
        *(row.get(kept_name(n)) for n in names),
        row["event_time"],
        row["run"],
        row["watermark"],
        reason,
        row["resolved_by"],
    ]
