"""Real data on both sides of the limits by which a run chooses its way: the same numbers.

Few rows are collected and written by this process, and more by Spark; a small run has one task for
each step; a short one a JVM that compiles quickly. That the way is another one is seen as well.
"""

from collections import Counter, defaultdict
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

import jobs.run
from jobs.run import run
from jobs.sessions import profiles
from jobs.shortcuts.run_size import (
    FEW_ROWS,
    MANY_BYTES,
    MANY_ROWS,
    RunSize,
    estimate_next_run,
    stores_little,
)
from tests.support.pipeline_under_test import us
from tests.support.stored_rows import list_stored
from windowing.grid.zone import moment
from windowing.location import Location
from windowing.spec.load import load_pipeline
from windowing.spec.pipeline import Pipeline
from windowing.storage import delta, own_tables, plain_table, staged_files
from windowing.storage.few_rows import _FEW_ROWS

START = us("2026-01-05T00:00:00")
HOUR = 3_600_000_000
STEP = 977_000
"""Microseconds between events; 200,000 of them take two days."""
KEYS = 7
ARRIVAL = moment(START + 400 * 24 * HOUR)


def load(root: Path) -> Pipeline:
    """Hours of some keys over the table `source`."""
    spec = {
        "name": "large",
        "lake": str(root / "lake"),
        "source": {"table": str(root / "source"), "event_time": "ts", "key": ["key"]},
        "watermark": {"delay": "0 seconds", "allowed_lateness": "forever"},
        "aggregates": {"n": "count()", "total": "sum(value)"},
        "windows": {"hourly": {"kind": "tumbling", "size": "1 hour"}},
    }
    return load_pipeline(spec)


def land(spark: SparkSession, root: Path, first: int, after: int) -> None:
    """Appends the events of these numbers to the source in one commit of Spark."""
    columns = [
        f"concat('k', id % {KEYS}) as key",
        f"timestamp_micros({START} + id * {STEP}) as ts",
        "id % 101 as value",
    ]
    rows = spark.range(first, after, numPartitions=2).selectExpr(*columns)
    delta.append(rows, Location(str(root / "source")))


def expected(count: int) -> dict[tuple[str, int], tuple[int, int]]:
    """The windows of the first `count` events, by plain loops."""
    found: dict[tuple[str, int], list[int]] = defaultdict(lambda: [0, 0])
    for n in range(count):
        window = found[f"k{n % KEYS}", (START + n * STEP) // HOUR * HOUR]
        window[0] += 1
        window[1] += n % 101
    return {place: (n, total) for place, (n, total) in found.items()}


def stored(spark: SparkSession, pipeline: Pipeline) -> dict[tuple[str, int], tuple[int, int]]:
    """The windows that the output has."""
    rows = list_stored(spark, pipeline.table("hourly"))
    found = {(row["key"], us_of(row["window_start"])): (row["n"], row["total"]) for row in rows}
    assert len(found) == len(rows)
    return found


def us_of(time: Any) -> int:
    """Microseconds of a time that has its zone or is in UTC."""
    return us(time.replace(tzinfo=None).isoformat())


@dataclass
class Ways:
    """How often each way was gone, without changing it."""

    patch: pytest.MonkeyPatch
    gone: Counter[str] = field(default_factory=Counter)

    def note(self, module: object, name: str, say: Callable[[Any], str | None]) -> None:
        """Notes what `say` makes of each result of a function of the product."""
        function = getattr(module, name)

        def noting(*given: Any, **named: Any) -> Any:
            found = function(*given, **named)
            if (word := say(found)) is not None:
                self.gone[word] += 1
            return found

        self.patch.setattr(module, name, noting)


@pytest.fixture
def ways(monkeypatch: pytest.MonkeyPatch) -> Ways:
    """The ways that are told apart."""
    ways = Ways(monkeypatch)
    ways.note(own_tables, "collect_few", lambda rows: None if rows is None else "collected here")
    ways.note(staged_files, "write_files", lambda _: "written by Spark")
    ways.note(jobs.run, "session_of_size", _tell_tasks)
    return ways


def _tell_tasks(session: SparkSession) -> str:
    tasks = session.conf.get("spark.sql.shuffle.partitions")
    return "one task" if tasks == "1" else "many tasks"


@pytest.fixture
def wide(spark: SparkSession) -> SparkSession:
    """A session whose shuffles have more than one task."""
    own = spark.newSession()
    own.conf.set("spark.sql.shuffle.partitions", "3")
    return own


SIZES = {
    FEW_ROWS: ("one task", "many tasks"),
    _FEW_ROWS: ("collected here", "written by Spark"),
}
"""By limit what is gone up to it, and what beyond it."""


@pytest.mark.slow
@pytest.mark.parametrize("beyond", [0, 1])
@pytest.mark.parametrize(
    "limit", [FEW_ROWS, pytest.param(_FEW_ROWS, marks=pytest.mark.long)], ids=str
)
def test_a_run_of_as_many_rows_as_are_few_and_of_one_more(
    limit: int, beyond: int, wide: SparkSession, tmp_path: Path, ways: Ways
) -> None:
    """A first load, and then as many rows again, half of them in windows that are there."""
    pipeline, count = load(tmp_path), limit + beyond
    for n in range(2):
        land(wide, tmp_path, n * count, (n + 1) * count)
        ways.gone.clear()
        report = run(wide, pipeline, ARRIVAL)
        assert (report.read, report.accepted) == (count, count)
        assert stored(wide, pipeline) == expected((n + 1) * count)
        assert SIZES[limit][beyond] in ways.gone, ways.gone
        assert SIZES[limit][1 - beyond] not in ways.gone or limit == _FEW_ROWS, ways.gone


@pytest.mark.long
@pytest.mark.parametrize("beyond", [0, 1])
def test_a_run_of_half_a_million_rows_is_short_and_of_one_more_is_not(
    beyond: int, wide: SparkSession, tmp_path: Path
) -> None:
    pipeline, count = load(tmp_path), MANY_ROWS + beyond
    land(wide, tmp_path, 0, count)
    size = estimate_next_run(pipeline)
    assert size == RunSize(count, 0)
    assert profiles.choose_for_run(size) is (profiles.FULL if beyond else profiles.SHORT)
    assert run(wide, pipeline, ARRIVAL).accepted == count
    assert stored(wide, pipeline) == expected(count)


@pytest.mark.long
def test_tables_of_a_quarter_of_a_gigabyte_make_no_short_run(
    wide: SparkSession, tmp_path: Path
) -> None:
    """Ids that can't be compressed fill `_seen`."""
    spec_root, rows, found = tmp_path, 400_000, []
    pipeline = load(spec_root)
    source = {"table": str(tmp_path / "source"), "event_time": "ts", "key": ["key"]}
    pipeline = load_pipeline(
        {
            "name": "large",
            "lake": str(tmp_path / "lake"),
            "source": {**source, "event_id": "id"},
            "watermark": {"delay": "0 seconds", "allowed_lateness": "forever"},
            "aggregates": {"n": "count()"},
            "windows": {"whole": {"kind": "global"}},
        }
    )
    while True:
        first = len(found) * rows
        columns = [
            "'k' as key",
            f"timestamp_micros({START} + id) as ts",
            "concat(" + ", ".join(f"sha2(concat(id, '-{n}'), 512)" for n in range(2)) + ") as id",
        ]
        appended = wide.range(first, first + rows, numPartitions=2).selectExpr(*columns)
        delta.append(appended, Location(str(tmp_path / "source")))
        run(wide, pipeline, ARRIVAL)
        size = estimate_next_run(pipeline)
        assert size is not None
        found.append(size.stored_bytes)
        is_beyond = size.stored_bytes > MANY_BYTES
        assert stores_little(pipeline) is not is_beyond
        assert profiles.choose_for_tables(pipeline) is (
            profiles.FULL if is_beyond else profiles.SHORT
        )
        (whole,) = list_stored(wide, pipeline.table("whole"))
        assert whole["n"] == len(found) * rows
        if is_beyond:
            break
    assert found[0] <= MANY_BYTES, found


@pytest.mark.long
def test_a_thousand_files_are_chosen_here_and_one_more_by_spark(
    wide: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, ways = Location(str(tmp_path / "table")), Ways(monkeypatch)
    ways.note(delta, "read", lambda _: "chosen by Spark")
    own_tables.create(wide, path, delta.parse_columns("n bigint"), {})
    for n in range(plain_table.MOST_FILES + 1):
        own_tables.append_values(wide, path, [{"n": n}], "n bigint")
        if n + 1 < plain_table.MOST_FILES:
            continue
        ways.gone.clear()
        read = own_tables.read(wide, path).collect()
        assert sorted(row["n"] for row in read) == list(range(n + 1))
        assert ways.gone["chosen by Spark"] == n + 1 - plain_table.MOST_FILES
