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
from jobs.cli.spark import spark
from jobs.console import Printer

if TYPE_CHECKING:
    from windowing.spec.pipeline import Pipeline

OUTCOMES = ("late", "partial", "duplicate", "quarantined")


@click.command()
@common
@click.option(
    "--outcome",
    "outcomes",
    type=click.Choice(OUTCOMES),
    multiple=True,
    help="Only rows with this outcome. May be repeated.",
)
@key_option
@range_options("event times")
@as_of_option("As run RUN left it.")
@limit_option
def late(
    pipeline: "Pipeline",
    *,
    as_json: bool,
    outcomes: tuple[str, ...],
    keys: tuple[str, ...],
    start: datetime | None,
    end: datetime | None,
    reverse: bool,
    as_of: str | None,
    limit: int,
) -> None:
    """Rows that were refused, newest run first.

    late: for every window; partial: for some of its windows; duplicate: its id was accepted before; quarantined: for a reason.
    """
    wanted_keys = keys_of(pipeline, keys)
    ordered(start, end)
    session = spark()
    from jobs.show import Wanted, refused

    found = refused(
        session,
        pipeline,
        outcomes or OUTCOMES,
        Wanted(wanted_keys, start, end, not reverse, limit),
        as_of,
    )
    printer = Printer(as_json=as_json)
    printer.line(
        f"{pipeline.name}: " + ", ".join(f"{n:,} {outcome}" for outcome, n in found.counts.items())
    )
    if found.rows:
        names = [
            *pipeline.source.key,
            *([pipeline.source.event_id] if pipeline.source.event_id else []),
        ]
        columns = ["outcome", *names, "event time", "run", "watermark", "reason", "resolved by"]
        printer.data(columns, [_refused(row, names) for row in found.rows])
    printer.finish({"pipeline": pipeline.name, **found.as_json()})


def _refused(row: Mapping[str, Any], names: Sequence[str]) -> list[Any]:
    missed = ", ".join(m["window"] for m in row.get("missed") or [])
    reason = f"{row['reason']}: {missed}" if missed else row["reason"]
    return [
        row["outcome"],
        *(row.get(n) for n in names),
        row["event_time"],
        row["run"],
        row["watermark"],
        reason,
        row["resolved_by"],
    ]
