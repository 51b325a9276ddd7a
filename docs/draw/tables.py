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
from typing import Any

from pyspark.sql import SparkSession

from docs.draw.lake import Event, Lake, Row, at, deleted, events, identity

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


def emission(spark: SparkSession, root: Path) -> dict[str, str]:
    """One table for each way to show windows: key `a` after each run."""
    lake = Lake(spark, root / "emission", SHOWN, {"delay": "0 seconds"})
    waiting = Lake(spark, root / "waiting", WAITING, {"delay": "0 seconds"})
    found = _after_each_run(lake, SHOWN_RUNS, at("12:00"))
    return {
        name: steps(*columns)
        for name, columns in (found | _after_each_run(waiting, WAITING_RUNS, at("12:00"))).items()
    }


def _after_each_run(
    lake: Lake, runs: Sequence[list[Event]], arrival: datetime
) -> dict[str, tuple[list[str], list[list[Row]]]]:
    """By window: a heading for each run, and the rows of key `a` after it."""
    heads, shots = [], []
    for n, batch in enumerate(runs, 1):
        report = lake.run(batch, arrival)
        heads.append(f"after run {n}, W = {report.watermark:%H:%M}")
        shots.append({name: lake.rows(name) for name in lake.windows})
    return {name: (heads, [shot[name] for shot in shots]) for name in lake.windows}


def steps(heads: Sequence[str], shots: Sequence[Sequence[Row]]) -> str:
    """Windows down, runs across; what a run changed is bold."""
    bounds = sorted({(row["window_start"], row["window_end"]) for shot in shots for row in shot})
    by_window = [
        {(row["window_start"], row["window_end"]): value(row) for row in shot} for shot in shots
    ]
    lines = []
    for place in bounds:
        cells = [shot.get(place, "") for shot in by_window]
        bold = [
            cell if n == 0 or cell == cells[n - 1] else f"**{cell or 'deleted'}**"
            for n, cell in enumerate(cells)
        ]
        lines.append([span(*place), *bold])
    return table(["window", *heads], lines)


WEEK = {"kind": "sliding", "size": "7 days", "slide": "1 minute"}
WEEK_RUN = [
    *events("10:01=1 10:01:10=1 10:02:10=1 10:02:59=1 10:03=1"),
    *events("03-10T10:00=1", "b"),
]


def week(spark: SparkSession, root: Path) -> dict[str, str]:
    """How many rows five events within three minutes make of a week that slides by the minute."""
    windows = {
        "on_change": WEEK,
        "on_close": WEEK | {"emit": "on_close"},
        "changes": WEEK | {"emit": "changes"},
    }
    lake = Lake(spark, root / "week", windows, {"delay": "0 seconds"})
    lake.run(WEEK_RUN, at("03-10T12:00"))
    return {
        "week": table(
            ["output", "rows of key `a`"],
            [[f"`{name}`", f"{len(lake.rows(name)):,}"] for name in windows],
        )
    }


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
WORKED, COMPARED = "30 minutes", 3
"""The allowed lateness of the worked run; how many of its runs are made under the others."""


def lateness(spark: SparkSession, root: Path) -> dict[str, str]:
    """The worked run, step by step, and its first runs under other lateness."""
    steps_of = {}
    for n, allowed in enumerate(LATENESS):
        lake = Lake(spark, root / f"lateness{n}", WINDOWS, RULES | {"allowed_lateness": allowed})
        steps_of[allowed] = _worked(lake, LATE_RUNS if allowed == WORKED else LATE_RUNS[:COMPARED])
    made: dict[str, str] = {}
    before: dict[str, list[Row]] = {name: [] for name in WINDOWS}
    for n, step in enumerate(steps_of[WORKED], 1):
        made |= {
            f"run_{n}_read": _read(step),
            f"run_{n}_mark": f"W = {step.watermark:%H:%M}",
            f"run_{n}_rows": _changed(before, step.rows),
        }
        before = step.rows
    last = {allowed: steps[COMPARED - 1].rows for allowed, steps in steps_of.items()}
    beside = _beside({allowed: rows["hourly"] + rows["visits"] for allowed, rows in last.items()})
    return made | {"compared": _outcomes(steps_of), "compared_rows": beside}


@dataclass(frozen=True)
class Step:
    """What one run read, and what it left.

    That is the outcome of the rows it refused (by id), the watermark and the rows of every output.
    """

    batch: list[Event]
    refused: dict[str, str]
    watermark: datetime | None
    rows: dict[str, list[Row]]


def _worked(lake: Lake, runs: Sequence[tuple[str, str]]) -> list[Step]:
    made = []
    for arrival, line in runs:
        report = lake.run(events(line), at(arrival))
        refused = {row["id"]: outcome(row) for row in lake.late() if row["run"] == report.run}
        made.append(
            Step(
                events(line),
                refused,
                report.watermark,
                {name: lake.rows(name) for name in lake.windows},
            )
        )
    return made


def _outcomes(steps_of: dict[str, list[Step]]) -> str:
    """The rows after the first run, and their outcome under each lateness."""
    batches = {allowed: steps[1:COMPARED] for allowed, steps in steps_of.items()}
    lines = []
    for n, step in enumerate(batches[WORKED]):
        for e in step.batch:
            lines.append(
                [
                    f"`{e.id}`",
                    *(steps[n].refused.get(e.id or "", "accepted") for steps in batches.values()),
                ]
            )
    return table(["row", *batches], lines)


def _read(step: Step) -> str:
    """The rows of a run and their outcomes."""
    rows = [
        [f"`{e.id}`", f"{e.at:%H:%M}", f"{e.value:g}", step.refused.get(e.id or "", "accepted")]
        for e in step.batch
    ]
    return table(["row", "event time", "value", "outcome"], rows)


def outcome(row: Row) -> str:
    """What became of a refused row.

    For a partly late one, the windows it missed, with the end of the last one.
    """
    if row["outcome"] != "partial":
        return f"{row['outcome']}: {row['reason']}"
    missed = [
        f"`{m['window']}`" + (f" to {m['until']:%H:%M}" if m["until"] else "")
        for m in row["missed"]
    ]
    return f"partial: missed {', '.join(missed)}"


def _changed(before: dict[str, list[Row]], now: dict[str, list[Row]]) -> str:
    """The rows that changed.

    That includes those that are gone and those that closed or became final.
    """
    lines = []
    for name, rows in now.items():
        old = {identity(row): row for row in before[name]}
        for row in rows:
            was = old.get(identity(row))
            if was != row:
                wrote = (
                    was is None
                    or value(was) != value(row)
                    or was["window_end"] != row["window_end"]
                )
                lines.append(
                    [
                        f"`{name}`",
                        span(row["window_start"], row["window_end"]),
                        _bold(value(row), wrote),
                        state(row, was),
                    ]
                )
        lines += [
            [f"`{name}`", span(r["window_start"], r["window_end"]), "deleted", ""]
            for r in deleted(before[name], rows)
        ]
    return table(["output", "window", "n / sum", ""], lines)


def state(row: Row, was: Row | None) -> str:
    """Whether a row is open, closed or final, and what it was."""
    now, then = _state(row), None if was is None else _state(was)
    return now if then in (None, now) else f"{then} → {now}"


def _state(row: Row) -> str:
    return "final" if row["is_final"] else "closed" if row["is_closed"] else "open"


def _beside(found: dict[str, list[Row]]) -> str:
    """Hours, then sessions; a column for each lateness."""
    places = sorted(
        {
            ("last_event" in r, r["window_start"], r["window_end"])
            for rows in found.values()
            for r in rows
        }
    )
    lines = []
    for visit, start, end in places:
        cells = [
            next(
                (
                    value(r)
                    for r in rows
                    if ("last_event" in r, r["window_start"], r["window_end"])
                    == (visit, start, end)
                ),
                "",
            )
            for rows in found.values()
        ]
        lines.append(["`visits`" if visit else "`hourly`", span(start, end), *cells])
    return table(["output", "window", *found], lines)


def value(row: Row) -> str:
    """Events and their sum."""
    return f"{row['n']} / {'NULL' if row['total'] is None else format(row['total'], 'g')}"


def span(start: datetime, end: datetime) -> str:
    """A window as the pages write it."""
    return f"[{start:%H:%M}, {end:%H:%M})"


def table(heads: Sequence[str], lines: Iterable[Sequence[str]]) -> str:
    """A Markdown table."""
    rows = [" | ".join(cells) for cells in (heads, *lines)]
    return "\n".join(
        [f"| {rows[0]} |", "|" + "---|" * len(heads), *(f"| {row} |" for row in rows[1:])]
    )


def spliced(page: str, made: dict[str, str]) -> str:
    """The page with the tables that were made between their comments."""

    def put(found: re.Match[str]) -> str:
        return f"{found[1]}{made[found[2]]}\n{found[3]}" if found[2] in made else found[0]

    return MADE.sub(put, page)


def _bold(text: str, wrote: Any) -> str:
    return f"**{text}**" if wrote else text
