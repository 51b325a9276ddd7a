"""Values on their way to a person or a program: windows, JSON, statistics of commits."""

import json
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from jobs.cli.format import join_evolved, print_changes
from jobs.cli.main import main
from jobs.console import Printer
from windowing.grid.zone import micros
from windowing.report.difference import spell_value
from windowing.report.rule import Changed, RunReport
from windowing.report.text import datum, interval, plain, window_cell
from windowing.source.commits import read_commit, total
from windowing.spec.load import load_pipeline


def test_windows_print_half_open() -> None:
    five = datetime(2013, 1, 1, 23, tzinfo=UTC)
    assert interval(five, five.replace(minute=30)) == "[2013-01-01 23:00Z, 23:30Z)"
    assert (
        interval(five, datetime(2013, 1, 2, tzinfo=UTC)) == "[2013-01-01 23:00Z, 2013-01-02 00:00Z)"
    )


def test_windows_print_on_the_clock_of_their_zone() -> None:
    first, second = datetime(2026, 10, 25, tzinfo=UTC), datetime(2026, 10, 25, 1, tzinfo=UTC)
    third = second.replace(hour=2, minute=0, second=0, microsecond=500)
    assert interval(first, second, "Europe/Berlin") == "[2026-10-25 02:00+02:00, 02:00+01:00)"
    assert interval(second, third, "Europe/London") == "[2026-10-25 01:00Z, 02:00:00.0005Z)"
    last = datetime(9999, 12, 31, 23, tzinfo=UTC)
    assert interval(first, last, "Asia/Tokyo") == "[2026-10-25 09:00+09:00, 9999-12-31 23:00Z)"
    windows = {"kind": "tumbling", "size": "1 day", "zone": "America/New_York"}
    spec = {
        "name": "shop",
        "lake": "/lake",
        "source": {"table": "/sales", "event_time": "at", "key": ["shop"]},
        "watermark": {"delay": "0 seconds"},
        "aggregates": {"n": "count()"},
        "windows": {"daily": windows, "visits": {"kind": "session", "gap": "1 hour"}},
    }
    daily, visits = load_pipeline(spec).windows
    row = {
        "window_start": datetime(2013, 3, 10, 5, tzinfo=UTC),
        "window_end": datetime(2013, 3, 11, 4, tzinfo=UTC),
    }
    assert window_cell(row, daily) == "[2013-03-10 00:00-05:00, 2013-03-11 00:00-04:00)"
    assert window_cell(row, visits) == "[2013-03-10 05:00Z, 2013-03-11 04:00Z)"


@pytest.mark.parametrize(
    ("value", "digits"),
    [
        ("0E-18", "0.000000000000000000"),
        ("1E-8", "0.00000001"),
        ("-0.000000120", "-0.000000120"),
        ("49.99", "49.99"),
        ("12345678901234567890123456789012345678", "12345678901234567890123456789012345678"),
    ],
)
def test_a_decimal_has_all_of_its_digits_and_no_exponent(value: str, digits: str) -> None:
    number = Decimal(value)
    assert (plain(number), datum(number), spell_value(number)) == (digits, digits, digits)
    assert plain({"paid": [number]}) == {"paid": [digits]}


def test_a_window_that_is_added_stands_for_its_aggregates() -> None:
    names = ("windows.a", "windows.a aggregate n", "windows.b aggregate n")
    assert join_evolved(names) == "windows.a, windows.b aggregate n"


def test_what_was_restated_is_a_sentence(capsys: pytest.CaptureFixture[str]) -> None:
    windows = {"hourly": Changed(1, restated=1_200), "visits": Changed(0, 1, 0, 2)}
    windows |= {"daily": Changed()}
    print_changes(Printer(as_json=False), RunReport(1, windows=windows))
    said = capsys.readouterr().out
    assert "not shown: hourly 1,200, visits 2; see `tidemark restatements`\n" in said
    print_changes(Printer(as_json=False), RunReport(1, windows={"hourly": Changed(1)}))
    assert "restated" not in capsys.readouterr().out


def test_json_has_no_value_that_json_lacks() -> None:
    values = plain(
        {
            "nan": float("nan"),
            "far": float("-inf"),
            "at": datetime(2013, 1, 1, tzinfo=UTC),
            "raw": b"\x01",
        }
    )
    assert json.loads(json.dumps(values, allow_nan=False)) == {
        "nan": "nan",
        "far": "-inf",
        "at": "2013-01-01T00:00:00+00:00",
        "raw": "01",
    }


def test_a_commit_is_read_from_its_statistics() -> None:
    stats = {
        "numRecords": 3,
        "minValues": {"at": "2013-01-01T05:00:00.000Z"},
        "maxValues": {"at": "2013-01-01T06:00:00.000Z"},
    }
    lines = [
        {"commitInfo": {"operation": "WRITE"}},
        {"add": {"path": "a", "dataChange": True, "stats": json.dumps(stats)}},
        {"add": {"path": "b", "dataChange": False, "stats": json.dumps(stats)}},
    ]
    read = read_commit(7, "\n".join(json.dumps(line) for line in lines), "at")
    assert (read.version, read.operation, read.files, read.rows, read.rewrites) == (
        7,
        "WRITE",
        1,
        3,
        False,
    )
    assert (read.low_us, read.high_us) == (
        micros(datetime(2013, 1, 1, 5, tzinfo=UTC)),
        micros(datetime(2013, 1, 1, 6, tzinfo=UTC)),
    )


def test_a_commit_that_takes_rows_away_says_so_and_unknown_rows_stay_unknown() -> None:
    lines = [
        {"remove": {"path": "a", "dataChange": True}},
        {"add": {"path": "b", "dataChange": True}},
    ]
    read = read_commit(1, "\n".join(json.dumps(line) for line in lines), "at")
    assert (read.rewrites, read.rows, read.low_us) == (True, None, None)
    assert total([1, None]) is None


NULLS = {"delay": 3, "source.where": 1200}
SENTENCES = [
    "delay: 3 rows gave no value (NULL) although their input had one",
    "source.where: 1,200 rows gave no answer (NULL) although their input had a value,"
    " and were left out",
]
COMMANDS = {"run": (), "backfill": ("--from", "2013-01-01", "--to", "2013-01-02")}


def _printed(
    command: str,
    nulls: dict[str, int],
    root: Path,
    patch: pytest.MonkeyPatch,
    *words: str,
    erased: int = 0,
) -> Result:
    """What a command prints when a run, or a backfill, met `nulls`; no session is needed."""
    spec = root / "trips.yaml"
    spec.write_text(
        "name: trips\nlake: lake\n"
        "source: {table: lake/bronze, event_time: at, key: [place]}\n"
        "aggregates: {n: count()}\nwindows: {ever: {kind: global}}\n"
    )
    patch.setattr("jobs.cli.spark.start_session", lambda profile: None)
    report = RunReport(1, 1, read=9, accepted=9, gave_null=nulls, erased=erased)
    patch.setattr(f"jobs.{command}.{command}", lambda *_: report)
    result = CliRunner().invoke(main, [command, str(spec), *COMMANDS[command], *words])
    assert result.exit_code == 0, result.output
    return result


@pytest.mark.parametrize("command", COMMANDS)
def test_what_gave_null_is_a_sentence_each_and_a_field(
    command: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lines = _printed(command, NULLS, tmp_path, monkeypatch).stdout.splitlines()
    assert [line for line in lines if "NULL" in line] == SENTENCES
    told = _printed(command, NULLS, tmp_path, monkeypatch, "--json")
    assert json.loads(told.stdout)["gave_null"] == NULLS
    assert SENTENCES[0] in told.stderr


@pytest.mark.parametrize("command", COMMANDS)
def test_erased_rows_are_told_where_there_are_any(
    command: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert "erased" not in _printed(command, {}, tmp_path, monkeypatch).stdout
    assert "erased" in _printed(command, {}, tmp_path, monkeypatch, erased=2).stdout
    told = json.loads(_printed(command, {}, tmp_path, monkeypatch, "--json", erased=2).stdout)
    assert told["erased"] == 2


@pytest.mark.parametrize("command", COMMANDS)
def test_where_nothing_gave_null_nothing_is_said(
    command: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert "NULL" not in _printed(command, {}, tmp_path, monkeypatch).stdout
    told = _printed(command, {}, tmp_path, monkeypatch, "--json")
    assert json.loads(told.stdout)["gave_null"] == {}
