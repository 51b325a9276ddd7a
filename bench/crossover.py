"""From which history on a run is cheaper than computing everything again on a single machine.

    python -m bench.crossover [--histories N ...] [--rounds 3] [--to FILE]

Hourly count, sum and maximum by user. The peer is DuckDB: it reads the files of the source's newest
version, groups them, and overwrites a Delta table with delta-rs. It has no JVM to start, and runs
are measured in a warm session, so neither has to start. Tables are compared before a time counts.
"""

import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
from deltalake import DeltaTable, write_deltalake
from pyspark.sql import SparkSession

from bench.contenders import (
    DAY_US,
    HOURLY,
    START_US,
    TIDEMARK,
    Lake,
    digest_rows,
    read_table,
    run_tidemark,
)
from bench.figures import Point, Result, Times, Took, report_result
from bench.rounds import compare_times, gather_times, time_in_turn
from bench.themes import (
    add_rounds,
    describe_command,
    describe_count,
    make_parser,
    temporary_directory,
)
from jobs.console import Printer
from jobs.session import spark_session

THEME = "crossover"
HISTORIES = (100_000, 1_000_000, 5_000_000, 20_000_000)
SHARES = {"0.1 %": 0.001, "1 %": 0.01, "10 %": 0.1}
FIXED_ROWS = 10_000
"""New rows of every history in the chart of histories."""
KEYS = 20_000
WARM_UP_EVENTS = 20_000
ARRIVAL_US = DAY_US // 48
DUCKDB = "DuckDB, everything again"
HOUR_US = 3_600_000_000
QUERY = f"""
select "user", make_timestamp(epoch_us("at") // {HOUR_US} * {HOUR_US}) as window_start,
    window_start + interval 1 hour as window_end,
    count(*)::bigint as n, sum(amount)::bigint as total, max(amount)::bigint as most
from read_parquet($files) group by all
"""


def main() -> int:
    """Prints and stores the times."""
    parser = make_parser(THEME, "runs beside DuckDB, by history and new rows")
    parser.add_argument(
        "--histories",
        type=int,
        nargs="+",
        default=HISTORIES,
        metavar="N",
        help="rows of each history",
    )
    add_rounds(parser)
    options = parser.parse_args()
    spark = spark_session(THEME)
    command = describe_command(THEME, options)
    with temporary_directory(THEME) as root:
        result = measure_crossover(spark, root, command, options.histories, options.rounds)
    report_result(result, options.to)
    print_ratios(result, options.histories)
    return 0


def measure_crossover(
    spark: SparkSession, root: Path, command: str, histories: Sequence[int], rounds: int
) -> Result:
    """All histories, after one of few rows that does not count."""
    measure_history(spark, root / "warm_up", min(WARM_UP_EVENTS, *histories), rounds=1)
    times: list[Times] = []
    points: list[Point] = []
    for history in histories:
        found = measure_history(spark, root / str(history), history, rounds)
        times += found
        points += make_points(found, history)
    return Result(THEME, command, (), tuple(times), tuple(points))


def measure_history(spark: SparkSession, root: Path, history: int, rounds: int) -> list[Times]:
    """One lake: arrivals of every size, the small ones first, so that it keeps its size longer."""
    lake = Lake(spark, root / "source", root, KEYS)
    lake.land(0, history, START_US, DAY_US)
    run_tidemark(lake, HOURLY)
    contenders: dict[str, Callable[[], object]] = {
        TIDEMARK: lambda: run_tidemark(lake, HOURLY),
        DUCKDB: lambda: recompute_with_duckdb(lake),
    }
    sizes = sorted({count_new_rows(history, share) for share in SHARES} | {FIXED_ROWS})
    times: list[Times] = []
    landed = history
    now_us = START_US + DAY_US
    for rows in sizes:
        measured: list[dict[str, Took]] = []
        for number in range(rounds):
            lake.land(landed, rows, now_us, ARRIVAL_US)
            landed += rows
            now_us += ARRIVAL_US
            measured.append(time_in_turn(spark, contenders, number))
            check_duckdb(lake)
        times += gather_times(describe_phase(history, rows), measured)
    return times


def count_new_rows(history: int, share: str) -> int:
    """The new rows of a share, at least one file's worth of ten."""
    return max(round(history * SHARES[share]), 10)


def describe_phase(history: int, rows: int) -> str:
    """The phase of one history and one size of arrivals."""
    return f"{describe_count(rows)} more on {describe_count(history)}"


def recompute_with_duckdb(lake: Lake) -> None:
    """Scan, group by and overwrite, without Spark."""
    files = DeltaTable(str(lake.source)).file_uris()
    with duckdb.connect() as connection:
        made: Any = connection.sql(QUERY, params={"files": files}).to_arrow_table()
    # DuckDB needs an extension that is not in its wheel for instants, so its times have no zone.
    for name in ("window_start", "window_end"):
        place = made.schema.get_field_index(name)
        made = made.set_column(place, name, made[name].cast(pa.timestamp("us", "UTC")))
    write_deltalake(str(lake.out / "duckdb"), made, mode="overwrite")


def check_duckdb(lake: Lake) -> None:
    """Ends the program where the tables differ."""
    theirs = lake.spark.read.format("delta").load(str(lake.out / "duckdb"))
    digests = [digest_rows(rows, HOURLY.columns) for rows in (read_table(lake, TIDEMARK), theirs)]
    if digests[0] != digests[1]:
        raise SystemExit(f"the tables differ: {digests}")


def make_points(times: Sequence[Times], history: int) -> list[Point]:
    """The points of one history on the three charts."""
    took = {(each.phase, each.contender): each.median for each in times}
    points: list[Point] = []
    for share in SHARES:
        rows = count_new_rows(history, share)
        ours = took[describe_phase(history, rows), TIDEMARK]
        points.append(Point("crossover", f"Tidemark, {share} new", history, ours))
        points.append(Point("new rows", f"{describe_count(history)} stored", rows, ours))
    one = describe_phase(history, count_new_rows(history, "1 %"))
    points.append(Point("crossover", DUCKDB, history, took[one, DUCKDB]))
    fixed = describe_phase(history, FIXED_ROWS)
    line = f"Tidemark, {describe_count(FIXED_ROWS)} new rows"
    points.append(Point("history", line, history, took[fixed, TIDEMARK]))
    points.append(Point("history", DUCKDB, history, took[fixed, DUCKDB]))
    return points


def print_ratios(result: Result, histories: Sequence[int]) -> None:
    """Prints DuckDB's CPU and wall seconds in those of a run; above 1 the run is cheaper."""
    rows: list[list[str]] = []
    for history in histories:
        row = [describe_count(history)]
        for share in SHARES:
            phase = describe_phase(history, count_new_rows(history, share))
            ratio = compare_times(result.times, phase, DUCKDB, TIDEMARK)
            row.append(f"{ratio.cpu:.2f} ({ratio.beside})")
        rows.append(row)
    heads = ["history", *(f"{share} new" for share in SHARES)]
    Printer(as_json=False).table(heads, rows, "DuckDB's full recompute / a run, CPU")


if __name__ == "__main__":
    sys.exit(main())
