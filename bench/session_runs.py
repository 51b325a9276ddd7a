"""Arrivals of a session window beside Spark's session_window, one run of each for every arrival.

    python -m bench.session_runs [--events 50000] [--arrivals 10] [--rounds 3] [--to FILE]

Spark emits a session once it is closed, and refuses update mode for sessions. So its stream appends
to a Delta table without a MERGE. Tidemark's table has the open sessions as well; the comparison
leaves them out.
"""

import sys
from collections.abc import Callable, Sequence
from datetime import datetime
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from bench.contenders import (
    COUNT,
    MAX,
    PEER_SETTINGS,
    START_US,
    STREAMING,
    SUM,
    TIDEMARK,
    Lake,
    Work,
    aggregate_events,
    digest_rows,
    run_tidemark,
)
from bench.figures import Figure, Result, Times, Took, at_least, report_result
from bench.rounds import compare_times, gather_times, time_in_turn
from bench.themes import (
    add_rounds,
    add_size,
    describe_command,
    describe_count,
    make_parser,
    temporary_directory,
)
from jobs.session import spark_session

THEME = "session_runs"
HOUR_US = 3_600_000_000
EVENTS_OF_A_KEY = 12
"""Events of a key in one arrival, which covers an hour: most gaps are shorter than the session's"""
DELAY = "10 minutes"
VISITS = Work(
    {"kind": "session", "gap": "10 minutes"},
    "session_window(at, '10 minutes')",
    {**COUNT, **SUM, **MAX},
    {"delay": DELAY, "allowed_lateness": "0 seconds"},
)


def main() -> int:
    """Prints and stores the figure."""
    parser = make_parser(THEME, "arrivals of sessions, beside Spark's session_window")
    add_size(parser, "--events", 50_000, "events of one arrival")
    add_size(parser, "--arrivals", 10, "arrivals of a round")
    add_rounds(parser)
    options = parser.parse_args()
    spark = spark_session(THEME, **PEER_SETTINGS)
    command = describe_command(THEME, options)
    with temporary_directory(THEME) as root:
        result = measure_session_runs(
            spark, root, command, options.events, options.arrivals, options.rounds
        )
    report_result(result, options.to)
    return 0


def measure_session_runs(
    spark: SparkSession, root: Path, command: str, events: int, arrivals: int, rounds: int
) -> Result:
    """What all arrivals of a round take together, after a round that does not count."""
    measure_round(spark, root / "warm_up", events, arrivals, first=0)
    measured = [
        measure_round(spark, root / f"round{number}", events, arrivals, number)
        for number in range(rounds)
    ]
    phase = f"{arrivals} arrivals of {describe_count(events)} into sessions"
    times = gather_times(phase, measured)
    return Result(THEME, command, (make_session_figure(times, phase),), tuple(times))


def make_session_figure(times: Sequence[Times], phase: str) -> Figure:
    """Structured Streaming beside Tidemark."""
    ratio = compare_times(times, phase, STREAMING, TIDEMARK)
    return at_least(f"{phase}: Structured Streaming to Tidemark", ratio.cpu, 3, 1.5, ratio.beside)


def measure_round(
    spark: SparkSession, root: Path, events: int, arrivals: int, first: int
) -> dict[str, Took]:
    """The sums of all arrivals in a lake of its own; the tables are equal afterwards."""
    lake = Lake(spark, root / "source", root, max(events // EVENTS_OF_A_KEY, 1))
    contenders: dict[str, Callable[[], object]] = {
        TIDEMARK: lambda: run_tidemark(lake, VISITS),
        STREAMING: lambda: stream_sessions(lake),
    }
    sums = dict.fromkeys(contenders, Took(0, 0))
    for number in range(arrivals):
        lake.land(number * events, events, START_US + number * HOUR_US, HOUR_US)
        took = time_in_turn(spark, contenders, first + number)
        sums = {
            name: Took(sums[name].wall + each.wall, sums[name].cpu + each.cpu)
            for name, each in took.items()
        }
    _check_sessions(lake)
    return sums


def stream_sessions(lake: Lake) -> None:
    """Spark's session_window with state in RocksDB; closed sessions are appended exactly once."""
    source = lake.spark.readStream.format("delta").load(str(lake.source))
    sessions = aggregate_events(source.withWatermark("at", DELAY), VISITS)
    writer = sessions.writeStream.format("delta").outputMode("append")
    writer = writer.option("checkpointLocation", str(lake.out / "streaming_checkpoint"))
    writer.trigger(availableNow=True).start(str(lake.out / "streaming")).awaitTermination()


def _check_sessions(lake: Lake) -> None:
    """Ends the program where the closed sessions of both tables differ."""
    spark = lake.spark
    ours = spark.read.format("delta").load(str(lake.out / "ours" / "w"))
    theirs = spark.read.format("delta").load(str(lake.out / "streaming"))
    closed = _keep_closed(ours, _find_watermark(lake))
    digests = [digest_rows(rows, VISITS.columns) for rows in (closed, theirs)]
    if digests[0] != digests[1] or not digests[0][0]:
        raise SystemExit(f"the tables differ, or no session is closed: {digests}")


def _find_watermark(lake: Lake) -> datetime:
    """The newest event less the delay."""
    events = lake.spark.read.format("delta").load(str(lake.source))
    newest = events.agg(F.max("at") - F.expr(f"interval {DELAY}"))
    watermark: datetime = newest.collect()[0][0]
    return watermark


def _keep_closed(sessions: DataFrame, watermark: datetime) -> DataFrame:
    return sessions.where(F.col("window_end") <= F.lit(watermark))


if __name__ == "__main__":
    sys.exit(main())
