"""From files of one's own to published windows, as a newcomer goes, and what DuckDB makes of them.

init --from a file -> a corrected spec -> ingest, run --validate, publish -> the published table

Each expected table is one query of DuckDB over the files as they are. It knows nothing of Tidemark.
"""

import json
import os
import shutil
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import duckdb
import pytest
from click.testing import CliRunner
from deltalake import DeltaTable
from pyspark.sql import SparkSession

from jobs.cli.main import main
from tests.support.own_files import (
    write_broken_orders,
    write_local_sales,
    write_nested_readings,
)

Command = Callable[..., dict[str, Any]]


@pytest.fixture
def tidemark(spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Command:
    """A command that ends well, typed in the current folder; its JSON."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("TIDEMARK_TARGET", raising=False)

    def play(*words: str) -> dict[str, Any]:
        done = CliRunner().invoke(main, [*words, "--json"], prog_name="tidemark")
        assert done.exit_code == 0, (words, done.output, done.exception)
        found: dict[str, Any] = json.loads(done.stdout)
        return found

    return play


def correct(file: str, *changes: tuple[str, str]) -> None:
    """Changes texts of a file that `init` has written."""
    path = Path(file)
    text = path.read_text()
    for before, after in changes:
        assert before in text, (before, text)
        text = text.replace(before, after)
    path.write_text(text)


def publish(tidemark: Command, name: str) -> tuple[dict[str, Any], dict[str, Any]]:
    """Takes what has landed as far as its readers; what `ingest` and `run` say of it."""
    taken = tidemark("ingest", name)
    done = tidemark("run", name, "--validate")
    tidemark("publish", name)
    return taken, done


def read_published(lake: str, window: str, query: str) -> list[tuple[Any, ...]]:
    """What a query of DuckDB finds in the published table, which it calls `published`."""
    with connect() as connection:
        table = DeltaTable(f"{lake}/published/{window}").to_pyarrow_dataset()
        connection.register("published", table)
        return connection.sql(query).fetchall()


def check_published(lake: str, window: str, query: str) -> None:
    """The published table has the rows of the query, and no others."""
    with connect() as connection:
        expected = connection.sql(query)
        columns = ", ".join(f'"{column}"' for column in expected.columns)
        wanted = expected.order(columns).fetchall()
    assert len(wanted) > 12
    found = read_published(lake, window, f"select {columns} from published order by all")  # noqa: S608
    assert found == wanted


def connect() -> duckdb.DuckDBPyConnection:
    """DuckDB in this process, with the rule for local times."""
    connection = duckdb.connect()
    connection.execute("set timezone = 'UTC'")
    connection.execute(BERLIN)
    return connection


def count(query: str) -> int:
    """The number that a query of DuckDB returns."""
    with connect() as connection:
        (row,) = connection.sql(query).fetchall()
    return int(row[0])


BERLIN = """
create or replace macro instant(local) as (case
    when local < timestamp '2025-03-30 02:00' then local - interval 1 hour
    when local < timestamp '2025-03-30 03:00' then timestamp '2025-03-30 01:00'
    when local < timestamp '2025-10-26 03:00' then local - interval 2 hours
    else local - interval 1 hour end) at time zone 'UTC';
"""
"""The rule of docs/spec.md for local times and bounds of windows, without a tz database.

A local time that happens twice is the earlier instant. A bound in the hour that is missing is the
instant at which the clock was moved; an event with such a time is quarantined.
"""
IN_GAP = "sold_at >= timestamp '2025-03-30 02:00' and sold_at < timestamp '2025-03-30 03:00'"
SOLD = {
    False: f"""
        select *, instant(sold_at) as happened, sold_at as local
        from read_csv('sales.csv', types={{'sold_at': 'timestamp'}}) where not ({IN_GAP})
    """,
    True: """
        select *, sold_at as happened, sold_at at time zone 'Europe/Berlin' as local
        from read_csv('sales.csv', types={'sold_at': 'timestamptz'})
    """,
}
"""By whether the files have offsets: the events, with their instants and wall clocks."""
ZONED = {
    "utc": ("date_trunc('hour', happened)", "date_trunc('hour', happened) + interval 1 hour"),
    "hourly": (
        "instant(date_trunc('hour', local))",
        "instant(date_trunc('hour', local) + interval 1 hour)",
    ),
    "daily": (
        "instant(date_trunc('day', local)::timestamp)",
        "instant(date_trunc('day', local)::timestamp + interval 1 day)",
    ),
}
"""By window: its start and its end, for an event."""


@pytest.mark.slow
@pytest.mark.parametrize(
    ("rows", "with_offset"),
    [
        (3_000, False),
        pytest.param(3_000, True, marks=pytest.mark.deep),
        pytest.param(100_000, False, marks=pytest.mark.deep),
    ],
)
def test_local_times_over_both_changes_of_the_clock(
    rows: int, *, with_offset: bool, tidemark: Command, tmp_path: Path
) -> None:
    (file,) = write_local_sales(tmp_path, rows, with_offset=with_offset)
    tidemark("init", "shops", "--from", file.name)
    os.chdir("shops")
    # A time with an offset is an instant, so no zone is proposed.
    zone = () if with_offset else (("zone: UTC ", "zone: Europe/Berlin "),)
    # How long the proposed windows are follows from the first records of the file.
    proposed = Path("shops.yaml").read_text().partition("windows:\n")[2].partition("schedule:")[0]
    windows = (
        "  utc: {kind: tumbling, size: 1 hour}\n"
        "  hourly: {kind: tumbling, size: 1 hour, zone: Europe/Berlin}\n"
        "  daily: {kind: tumbling, size: 1 day, zone: Europe/Berlin}\n"
    )
    correct(
        "shops.yaml",
        *zone,
        ("aggregates:\n", "aggregates:\n  items: sum(items)\n"),
        (proposed, windows),
    )
    taken, done = publish(tidemark, "shops")
    os.chdir("..")
    events = SOLD[with_offset]
    assert (taken["read"], taken["quarantined"]) == (rows, 0)
    missing = 0 if with_offset else count(f"select count(*) from 'sales.csv' where {IN_GAP}")  # noqa: S608
    assert (missing > 100) is not with_offset
    assert (done["accepted"], done["quarantined"]) == (rows - missing, missing)
    for window, (start, end) in ZONED.items():
        query = f"""
            select shop, {start} as window_start, {end} as window_end,
                count(*) as events, sum(items)::bigint as items, avg(items) as avg_items
            from ({events}) group by all
        """  # noqa: S608
        check_published("shops/lake/shops", window, query)
    hours = "select window_end - window_start from published"
    found = read_published("shops/lake/shops", "hourly", f"{hours} group by all")  # noqa: S608
    assert {length for (length,) in found} == {timedelta(hours=1), timedelta(hours=2)}
    days = read_published("shops/lake/shops", "daily", hours)
    assert {length for (length,) in days} == {timedelta(hours=hours) for hours in (23, 24, 25)}


READINGS = """
    select device.site as site, device.battery as battery, sensors[1].value as inside,
        strptime(sent_at, '%Y-%m-%dT%H:%M:%S.%fZ') at time zone 'UTC' as happened,
        filename like '%-{last}.jsonl' as in_last
    from read_json('readings-*.jsonl', format='newline_delimited', filename=true, columns={{
        'sent_at': 'varchar', 'device': 'struct(site varchar, battery bigint)',
        'sensors': 'struct(kind varchar, value double)[]'}})
"""
LATENESS, DELAY = "interval 12 hours", "interval 30 minutes"
SLIDING = """
    with readings as ({events}),
    watermark as (select max(happened) - {delay} as w from readings where not in_last),
    placed as (
        select *, time_bucket(interval {slide}, happened) - step * interval {slide} as window_start
        from readings, range({steps}) as steps(step)
    )
    select site, window_start, window_start + interval {size} as window_end,
        count(*) as readings, sum(battery)::bigint as battery, avg(inside) as inside,
        min(inside) as coldest, max(inside) as warmest
    from placed, watermark
    where not in_last or window_start + interval {size} + {lateness} > w
    group by all
"""


@pytest.mark.deep
@pytest.mark.timeout(3000)
@pytest.mark.parametrize("rows", [20_000, 1_000_000])
def test_nested_readings_with_late_ones_in_a_later_file(
    rows: int, tidemark: Command, tmp_path: Path
) -> None:
    *files, last = write_nested_readings(tmp_path, rows, 5)
    tidemark("init", "sensors", "--from", files[0].name)
    os.chdir("sensors")
    spec = Path("sensors.yaml").read_text()
    assert "  key: [device.site] " in spec
    Path("sensors.yaml").write_text(
        spec[: spec.index("watermark:")]
        + """\
watermark: {delay: 30 minutes, allowed_lateness: 12 hours}
aggregates:
  readings: count()
  battery: sum(device.battery)
  inside: avg(sensors[0].value)
  coldest: min(sensors[0].value)
  warmest: max(sensors[0].value)
windows:
  hourly: {kind: tumbling, size: 1 hour}
  sliding: {kind: sliding, size: 1 hour, slide: 15 minutes}
"""
    )
    for file in files[1:]:
        shutil.copy(file, "drop")
    taken, done = publish(tidemark, "sensors")
    late = rows // 50
    assert (taken["read"], taken["quarantined"]) == (rows - late, 0)
    assert (done["accepted"], done["late"]) == (rows - late, 0)
    shutil.copy(last, "drop")
    taken, done = publish(tidemark, "sensors")
    os.chdir("..")
    assert taken["appended"] == late
    events = READINGS.format(last=len(files))
    refused = count(f"""
        with readings as ({events})
        select count(*) from readings where in_last
        and time_bucket(interval 15 minutes, happened) + interval 1 hour + {LATENESS}
            <= (select max(happened) - {DELAY} from readings where not in_last)
    """)  # noqa: S608
    assert late > refused > 0
    assert (done["accepted"], done["late"]) == (late - refused, refused)
    for window, slide, steps in (("hourly", "1 hour", 1), ("sliding", "15 minutes", 4)):
        query = SLIDING.format(
            events=events, delay=DELAY, lateness=LATENESS, slide=slide, steps=steps, size="1 hour"
        )
        check_published("sensors/lake/sensors", window, query)


LINES = """
    select string_split(line, ';') as part, filename as file
    from (
        select unnest(string_split(trim(content, chr(10)), chr(10))[2:]) as line, filename
        from read_text('bestellungen-*.csv')
    )
"""
RIGHT = f"""
    select part[1] as id, part[2] as shop,
        try_strptime(part[3], '%d.%m.%Y %H:%M:%S') at time zone 'UTC' as happened,
        replace(part[4], ',', '.')::decimal(18, 2) as amount
    from ({LINES})
    where len(part) = 4 and regexp_full_match(part[4], '\\d+,\\d\\d')
        and try_strptime(part[3], '%d.%m.%Y %H:%M:%S') is not null
"""


@pytest.mark.deep
@pytest.mark.parametrize("rows", [3_000, 200_000])
def test_a_spreadsheet_with_decimal_commas_copies_and_broken_lines(
    rows: int, tidemark: Command, tmp_path: Path
) -> None:
    first, second = write_broken_orders(tmp_path, rows)
    tidemark("init", "orders", "--from", first.name)
    os.chdir("orders")
    correct(
        "orders.yaml",
        ("  files:\n", "  event_id: Bestellung\n  files:\n"),
        ("aggregates:\n", "aggregates:\n  revenue: sum(Betrag)\n  largest: max(Betrag)\n"),
    )
    # Some amounts are numbers of another form, so the guess was text.
    correct("columns/orders.yaml", ('"string", from: "Betrag', '"decimal(18,2)", from: "Betrag'))
    taken, done = publish(tidemark, "orders")
    shutil.copy(second, "drop")
    taken_2, done_2 = publish(tidemark, "orders")
    os.chdir("..")
    lines, right = (count(f"select count(*) from ({query})") for query in (LINES, RIGHT))  # noqa: S608
    assert lines - right > rows // 100
    assert taken["quarantined"] + taken_2["quarantined"] == lines - right
    assert taken["appended"] + taken_2["appended"] == right
    assert done["accepted"] + done_2["accepted"] == rows
    assert done["duplicate"] + done_2["duplicate"] == right - rows
    assert min(done["duplicate"], done_2["duplicate"]) > 0
    query = f"""
        select shop as "Filiale", date_trunc('hour', happened) as window_start,
            date_trunc('hour', happened) + interval 1 hour as window_end,
            count(*) as events, sum(amount) as revenue, max(amount) as largest
        from (select distinct * from ({RIGHT})) group by all
    """  # noqa: S608
    check_published("orders/lake/orders", "hourly", query)
