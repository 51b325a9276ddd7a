"""The worked tables of the documentation.

Pipelines are run, and what they wrote becomes Markdown between two comments of a page.

<!-- made: NAME -->
| ... |
<!-- end -->
"""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from pyspark.sql import SparkSession

from docs.draw.lake import Event, Lake, Row, at, deleted_rows, events, identify_row

Bounds = tuple[datetime, datetime]
MADE = re.compile(r"(<!-- made: (\w+) -->\n).*?(<!-- end -->)", re.DOTALL)
TUMBLING = {"kind": "tumbling", "size": "10 minutes"}
SHOWN = {
    "on_change": TUMBLING,
    "on_close": TUMBLING | {"emit": "on_close"},
    "changes": {"kind": "sliding", "size": "30 minutes", "slide": "10 minutes", "emit": "changes"},
    "empty": TUMBLING | {"empty": True},
    "having": TUMBLING | {"having": "n < 2"},
}
SHOWN_RUNS = (
    [*events("10:02=4 10:05=1 10:34=2"), *events("10:36=1", "b")],
    [*events("10:13=3 10:31=5"), *events("11:15=1", "b")],
)
WAITING = {"waiting": {"kind": "session", "gap": "20 minutes", "emit": "on_close"}}
WAITING_RUNS = (
    [*events("10:00=4"), *events("10:25=1", "b")],
    events("10:20=2 10:38=3"),
    events("11:00=1", "b"),
)


def make_emission_tables(spark: SparkSession, root: Path) -> dict[str, str]:
    """One table for each way to show windows: key `a` after each run."""
    lake = Lake(spark, root / "emission", SHOWN, {"delay": "0 seconds"})
    waiting = Lake(spark, root / "waiting", WAITING, {"delay": "0 seconds"})
    tables = _tables_after_each_run(lake, SHOWN_RUNS, at("12:00"))
    return tables | _tables_after_each_run(waiting, WAITING_RUNS, at("12:00"))


def _tables_after_each_run(
    lake: Lake, runs: Sequence[list[Event]], arrival: datetime
) -> dict[str, str]:
    """Window name -> the table of key `a` after each run."""
    heads = []
    shots: dict[str, list[list[Row]]] = {name: [] for name in lake.windows}
    for n, batch in enumerate(runs, 1):
        report = lake.run(batch, arrival)
        heads.append(f"after run {n}, W = {report.watermark:%H:%M}")
        for name in lake.windows:
            shots[name].append(lake.rows(name))
    return {name: format_steps(heads, shots[name]) for name in lake.windows}


def format_steps(heads: Sequence[str], shots: Sequence[Sequence[Row]]) -> str:
    """Windows down, runs across; what a run changed is bold."""
    # For each run the text of each window.
    texts: list[dict[Bounds, str]] = []
    for shot in shots:
        texts.append({_bounds_of(row): format_value(row) for row in shot})
    every_window: set[Bounds] = set().union(*texts)
    lines = []
    for bounds in sorted(every_window):
        line = [format_span(*bounds)]
        before: str | None = None
        for text in texts:
            cell = text.get(bounds, "")
            changed = before is not None and cell != before
            line.append(f"**{cell or 'deleted'}**" if changed else cell)
            before = cell
        lines.append(line)
    return format_table(["window", *heads], lines)


def _bounds_of(row: Row) -> Bounds:
    return row["window_start"], row["window_end"]


WEEK = {"kind": "sliding", "size": "7 days", "slide": "1 minute"}
WEEK_RUN = [
    *events("10:01=1 10:01:10=1 10:02:10=1 10:02:59=1 10:03=1"),
    *events("03-10T10:00=1", "b"),
]


def make_week_table(spark: SparkSession, root: Path) -> dict[str, str]:
    """How many rows five events within three minutes make of a week that slides by the minute."""
    windows = {
        "on_change": WEEK,
        "on_close": WEEK | {"emit": "on_close"},
        "changes": WEEK | {"emit": "changes"},
    }
    lake = Lake(spark, root / "week", windows, {"delay": "0 seconds"})
    lake.run(WEEK_RUN, at("03-10T12:00"))
    lines = []
    for name in windows:
        count = len(lake.rows(name))
        lines.append([f"`{name}`", f"{count:,}"])
    return {"week": format_table(["output", "rows of key `a`"], lines)}


RULES = {"delay": "10 minutes", "max_future": "1 hour", "idle_after": "1 hour"}
WINDOWS = {
    "hourly": {"kind": "tumbling", "size": "1 hour"},
    "rolling": {"kind": "sliding", "size": "2 hours", "slide": "1 hour"},
    "visits": {"kind": "session", "gap": "20 minutes"},
}
LATE_RUNS = (
    ("11:20", "a@10:05=4 b@10:40=10 c@11:10=1 d@08:50=2"),
    ("12:00", "e@10:55=6 f@11:50=3 g@09:20=5 b@10:40=10 x@14:30=1"),
    ("12:30", "h@10:20=7 i@08:10=2 j@12:05=1"),
    ("12:40", "k@13:20=2"),
    ("13:00", ""),
    ("14:00", ""),
)
LATENESS = ("0 seconds", "30 minutes", "forever")
WORKED = "30 minutes"
"""The allowed lateness of the worked run."""
COMPARED = 3
"""How many of its runs are made under the other allowed latenesses."""


def make_lateness_tables(spark: SparkSession, root: Path) -> dict[str, str]:
    """The worked run, step by step, and its first runs under other lateness."""
    steps_of = {}
    for n, allowed in enumerate(LATENESS):
        lake = Lake(spark, root / f"lateness{n}", WINDOWS, RULES | {"allowed_lateness": allowed})
        runs = LATE_RUNS if allowed == WORKED else LATE_RUNS[:COMPARED]
        steps_of[allowed] = _run_steps(lake, runs)
    made: dict[str, str] = {}
    before: dict[str, list[Row]] = {name: [] for name in WINDOWS}
    for n, step in enumerate(steps_of[WORKED], 1):
        made[f"run_{n}_read"] = _format_read(step)
        made[f"run_{n}_mark"] = f"W = {step.watermark:%H:%M}"
        made[f"run_{n}_rows"] = _format_changes(before, step.rows)
        before = step.rows
    made["compared"] = _compare_outcomes(steps_of)
    made["compared_rows"] = _compare_rows(steps_of)
    return made


@dataclass(frozen=True)
class Step:
    """What one run read, and what it left.

    That is the outcome of the rows it refused (by id), the watermark and the rows of every output.
    """

    batch: list[Event]
    refused: dict[str, str]
    watermark: datetime | None
    rows: dict[str, list[Row]]

    def outcome_of(self, event: Event) -> str:
        """The outcome of one row that the run read."""
        return self.refused.get(event.id or "", "accepted")


def _run_steps(lake: Lake, runs: Sequence[tuple[str, str]]) -> list[Step]:
    steps = []
    for arrival, line in runs:
        batch = events(line)
        report = lake.run(batch, at(arrival))
        refused = {}
        for row in lake.late():
            if row["run"] == report.run:
                refused[row["id"]] = describe_outcome(row)
        rows = {name: lake.rows(name) for name in lake.windows}
        steps.append(Step(batch, refused, report.watermark, rows))
    return steps


def _compare_outcomes(steps_of: dict[str, list[Step]]) -> str:
    """The rows after the first run, and their outcome under each lateness."""
    lines = []
    for n in range(1, COMPARED):
        for event in steps_of[WORKED][n].batch:
            outcomes = [steps[n].outcome_of(event) for steps in steps_of.values()]
            lines.append([f"`{event.id}`", *outcomes])
    return format_table(["row", *steps_of], lines)


def _format_read(step: Step) -> str:
    """The rows of a run and their outcomes."""
    lines = []
    for event in step.batch:
        outcome = step.outcome_of(event)
        lines.append([f"`{event.id}`", f"{event.at:%H:%M}", f"{event.value:g}", outcome])
    return format_table(["row", "event time", "value", "outcome"], lines)


def describe_outcome(row: Row) -> str:
    """What became of a refused row.

    For a partly late one, the windows it missed, with the end of the last one.
    """
    if row["outcome"] != "partial":
        return f"{row['outcome']}: {row['reason']}"
    missed = []
    for window in row["missed"]:
        until = f" to {window['until']:%H:%M}" if window["until"] else ""
        missed.append(f"`{window['window']}`{until}")
    return f"partial: missed {', '.join(missed)}"


def _format_changes(before: dict[str, list[Row]], now: dict[str, list[Row]]) -> str:
    """The rows that changed.

    That includes those that are gone and those that closed or became final.
    """
    lines = []
    for name, rows in now.items():
        old = {identify_row(row): row for row in before[name]}
        for row in rows:
            was = old.get(identify_row(row))
            if was != row:
                lines.append(_format_change(name, row, was))
        for row in deleted_rows(before[name], rows):
            lines.append([f"`{name}`", format_span(*_bounds_of(row)), "deleted", ""])
    return format_table(["output", "window", "n / sum", ""], lines)


def _format_change(name: str, row: Row, was: Row | None) -> list[str]:
    """The line of a row that was another one before, or none; what was written is bold."""
    is_same_value = was is not None and format_value(was) == format_value(row)
    is_same_end = was is not None and was["window_end"] == row["window_end"]
    value = format_value(row)
    if not is_same_value or not is_same_end:
        value = f"**{value}**"
    return [f"`{name}`", format_span(*_bounds_of(row)), value, describe_state(row, was)]


def describe_state(row: Row, was: Row | None) -> str:
    """Whether a row is open, closed or final, and what it was."""
    now = _name_state(row)
    if was is None or _name_state(was) == now:
        return now
    return f"{_name_state(was)} → {now}"


def _name_state(row: Row) -> str:
    if row["is_final"]:
        return "final"
    return "closed" if row["is_closed"] else "open"


def _compare_rows(steps_of: dict[str, list[Step]]) -> str:
    """Hours, then sessions; a column for each lateness."""
    lines = []
    for name in ("hourly", "visits"):
        # For each lateness the text of each window.
        texts: list[dict[Bounds, str]] = []
        for steps in steps_of.values():
            rows = steps[COMPARED - 1].rows[name]
            texts.append({_bounds_of(row): format_value(row) for row in rows})
        every_window: set[Bounds] = set().union(*texts)
        for bounds in sorted(every_window):
            cells = [text.get(bounds, "") for text in texts]
            lines.append([f"`{name}`", format_span(*bounds), *cells])
    return format_table(["output", "window", *steps_of], lines)


def format_value(row: Row) -> str:
    """Events and their sum."""
    total = "NULL" if row["total"] is None else f"{row['total']:g}"
    return f"{row['n']} / {total}"


def format_span(start: datetime, end: datetime) -> str:
    """A window as the pages write it."""
    return f"[{start:%H:%M}, {end:%H:%M})"


def format_table(heads: Sequence[str], lines: Iterable[Sequence[str]]) -> str:
    """A Markdown table."""
    rows = [f"| {' | '.join(heads)} |", "|" + "---|" * len(heads)]
    for cells in lines:
        rows.append(f"| {' | '.join(cells)} |")
    return "\n".join(rows)


def splice_tables(page: str, made: dict[str, str]) -> str:
    """The page with the tables that were made between their comments."""

    def replace_table(found: re.Match[str]) -> str:
        begin, name, end = found.groups()
        if name not in made:
            return found[0]
        return f"{begin}{made[name]}\n{end}"

    return MADE.sub(replace_table, page)
