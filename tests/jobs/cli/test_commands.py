"""The commands on a small lake: two runs, a validation, a publish, and all commands that read."""

import json
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result
from pyspark.sql import SparkSession

import jobs.session
from jobs.cli.main import main
from tests.support.report_page import read_page
from windowing.location import Location
from windowing.report.rule import Changed, RunReport
from windowing.storage import delta

SPEC = """
name: trips
lake: lake
source: {table: lake/bronze/trips, event_time: at, key: [place], event_id: id}
watermark: {delay: 0 seconds, allowed_lateness: 0 seconds}
aggregates: {n: count(), total: sum(fare)}
windows:
  hourly: {kind: tumbling, size: 1 hour}
retention: {state: 1 day}
"""
HOSTILE = "<script>\x1b[31m[red]"
BAD = f"bad {HOSTILE}"


def at(hour: int, minute: int = 0) -> datetime:
    return datetime(2013, 1, 1, hour, minute, tzinfo=UTC)


@dataclass
class Cli:
    """A spec file and the commands on it."""

    spec: Path
    spark: SparkSession

    def land(self, *rows: tuple[str, str | None, datetime, int]) -> None:
        """Appends (id, place, at, fare) to the source in one commit."""
        frame = self.spark.createDataFrame(
            list(rows), "id string, place string, at timestamp, fare bigint"
        ).coalesce(1)
        delta.append(frame, Location(str(self.spec.parent / "lake" / "bronze" / "trips")))

    def __call__(self, command: str, *words: str, code: int = 0) -> Result:
        """What `tidemark {command} SPEC {words}` printed; it ended with `code`."""
        result = CliRunner().invoke(main, [command, str(self.spec), *words], prog_name="tidemark")
        assert result.exit_code == code, result.output
        return result

    def json(self, command: str, *words: str) -> Any:
        """The one line on stdout."""
        lines = self(command, *words, "--json").stdout.splitlines()
        assert len(lines) == 1
        return json.loads(lines[0])


@pytest.fixture(scope="module")
def empty(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Cli:
    """A pipeline that never ran, over a source with one row."""
    return _cli(spark, tmp_path_factory.mktemp("empty"))


@pytest.fixture(scope="module")
def trips(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Cli:
    """Two runs, the second with a late, a duplicate and a quarantined row; one commit is unread."""
    cli = _cli(spark, tmp_path_factory.mktemp("trips"))
    cli.land(("b", HOSTILE, at(6, 30), 3), ("c", "EWR", at(7), 4))
    cli("run", "--arrival", "2013-01-01T08:00Z")
    cli.land(
        ("late", "EWR", at(5), 1),
        ("c", "EWR", at(7), 4),
        ("d", "EWR", at(7, 59), 5),
        (BAD, None, at(7), 1),
    )
    cli.second = cli.json("run", "--arrival", "2013-01-01T08:00Z")  # type: ignore[attr-defined]
    cli.land(("e", "JFK", at(9), 6))
    return cli


def _cli(spark: SparkSession, root: Path) -> Cli:
    (root / "trips.yaml").write_text(SPEC)
    cli = Cli(root / "trips.yaml", spark)
    cli.land(("a", "EWR", at(6), 2))
    return cli


def test_before_the_first_run_there_is_nothing_to_see_and_that_is_no_error(empty: Cli) -> None:
    assert "there is no run yet" in empty("show", "hourly").stdout
    assert empty.json("show", "hourly") == {
        "pipeline": "trips",
        "window": "hourly",
        "version": None,
        "run": None,
        "watermark": None,
        "total": 0,
        "rows": [],
    }
    assert empty.json("late")["total"] == 0
    assert empty.json("state")["tables"] == []
    plan = empty.json("explain")
    assert (plan["run"], plan["watermark"], plan["source"]["rows"]) == (1, None, 1)
    page = empty.spec.parent / "page.html"
    empty("report", "--output", str(page))
    assert "nothing has run yet" in page.read_text()
    assert empty.json("report") == {"pipeline": "trips", "report": None}
    assert "no report, because there is nothing at" in empty("report").stdout


def test_before_the_first_run_maintenance_holds_no_lock_and_makes_no_directory(empty: Cli) -> None:
    assert empty.json("maintain") == {"pipeline": "trips", "tables": {}}
    assert not (empty.spec.parent / "lake" / "trips").exists(), "a look left something behind"


def test_before_the_first_run_nothing_is_validated_or_published(empty: Cli) -> None:
    assert empty("validate").stdout == "trips: nothing is evaluated, because there is no run yet\n"
    assert empty.json("validate")["checked"] == 0
    assert empty("publish").stdout == "trips: nothing is published, because there is no run yet\n"
    unknown = dict.fromkeys(("publication", "at", "watermark", "accepted", "changed_days"))
    nothing = {"run": 0, "outputs": {}, "held": {}, "changed": False}
    assert empty.json("publish") == {**nothing, **unknown}


def test_a_missing_source_is_exit_2(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "trips.yaml").write_text(SPEC)
    result = Cli(tmp_path / "trips.yaml", spark)("run", code=2)
    assert result.stdout == ""
    assert result.stderr.count("\n") == 1
    assert "source.table: there is no Delta table" in result.stderr


def test_run_reports_where_rows_went(trips: Cli) -> None:
    second = trips.second  # type: ignore[attr-defined]
    counts = ("read", "accepted", "late", "duplicate", "quarantined")
    assert second["run"] == 2
    assert [second[name] for name in counts] == [4, 1, 1, 1, 1]
    assert second["watermark"] == "2013-01-01T07:59:00+00:00"
    assert second["windows"] == {
        "hourly": {"inserted": 0, "updated": 1, "deleted": 0, "restated": 0}
    }


def test_explain_tells_what_the_next_run_would_read(trips: Cli) -> None:
    plan = trips.json("explain")
    assert (plan["run"], plan["source"]["commits"], plan["source"]["rows"]) == (3, 1, 1)
    assert plan["windows"]["hourly"]["span"] == [
        "2013-01-01T09:00:00+00:00",
        "2013-01-01T10:00:00+00:00",
    ]
    assert plan["windows"]["hourly"]["closed_until"] == "2013-01-01T07:00:00+00:00"
    assert "run 3 would read 1 row in 1 file of 1 commit" in trips("explain").stdout


def test_show_filters_orders_and_goes_back_in_time(trips: Cli) -> None:
    of_key = trips.json("show", "hourly", "--key", "EWR")
    assert [row["n"] for row in of_key["rows"]] == [1, 2]
    one = ("--key", "place=EWR", "--reverse", "--limit", "1")
    newest = trips.json("show", "hourly", *one)
    assert [row["n"] for row in newest["rows"]] == [2]
    hour = ("--from", "2013-01-01T07:00", "--to", "2013-01-01T08:00")
    assert trips.json("show", "hourly", *hour)["total"] == 1
    first = trips.json("show", "hourly", "--key", "EWR", "--as-of", "1")
    assert [(r["n"], r["is_closed"], r["is_final"]) for r in first["rows"]] == [
        (1, True, True),
        (1, False, False),
    ]
    assert "finished runs are 1 to 2" in trips("show", "hourly", "--as-of", "9", code=2).stderr
    assert "has not been published yet" in trips("show", "hourly", "--published", code=2).stderr


def test_tables_show_windows_half_open_and_no_control_characters(trips: Cli) -> None:
    text = trips("show", "hourly").stdout
    assert "[2013-01-01 06:00Z, 07:00Z)" in text
    assert "<script>\\x1b[31m[red]" in text
    assert "\x1b" not in text


def test_where_nothing_was_refused_late_starts_no_jvm(
    empty: Cli, trips: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delattr(jobs.session, "spark_session")
    words = ("--outcome", "late", "--outcome", "duplicate", "--key", "EWR")
    assert empty.json("late", *words) == {
        "pipeline": "trips",
        "counts": {"late": 0, "duplicate": 0},
        "total": 0,
        "rows": [],
    }
    assert empty("late").stdout == "trips: no refused rows, because there is no run yet\n"
    for outcome in ("late", "partial"):
        assert "spark_session" in trips("late", "--outcome", outcome, code=1).stderr


def test_late_lists_refused_rows_with_reasons(trips: Cli) -> None:
    found = trips.json("late")
    assert found["counts"] == {"late": 1, "partial": 0, "duplicate": 1, "quarantined": 1}
    assert {r["id"]: r["outcome"] for r in found["rows"]} == {
        "late": "late",
        "c": "duplicate",
        BAD: "quarantined",
    }
    assert trips.json("late", "--outcome", "late")["rows"][0]["missed"][0]["window"] == "hourly"
    assert "place is null" in trips("late").stdout


def test_state_lists_tables_and_partials(trips: Cli) -> None:
    found = trips.json("state", "--window", "hourly", "--key", "EWR")
    assert {t["table"]: t["rows"] for t in found["tables"]} == {"_panes_1h": 4, "_seen": 4}
    assert [r["rows"] for r in found["partials"]["rows"]] == [1, 1, 1]


def test_refused_rows_and_state_are_found_by_key_time_and_run(trips: Cli) -> None:
    of_key = trips.json("late", "--key", "EWR", "--reverse")
    assert [row["id"] for row in of_key["rows"]] == ["late", "c"]
    duplicates = trips.json("late", "--from", "2013-01-01T07:00", "--outcome", "duplicate")
    assert [row["id"] for row in duplicates["rows"]] == ["c"]
    assert trips.json("late", "--to", "2013-01-01T05:00")["total"] == 0
    assert trips.json("late", "--as-of", "1")["total"] == 0
    oldest = trips.json("state", "--window", "hourly", "--key", "EWR", "--reverse")["partials"]
    starts = [row["pane_start"] for row in oldest["rows"]]
    assert starts == sorted(starts)
    since = trips.json("state", "--window", "hourly", "--from", "2013-01-01T07:00")
    assert since["partials"]["total"] == 2
    assert trips.json("state", "--window", "hourly", "--as-of", "1")["partials"]["total"] == 3
    unknown = trips("state", "--window", "hourly", "--as-of", "9", code=2)
    assert "finished runs are 1 to 2" in unknown.stderr


def test_validated_versions_can_be_published_and_shown(
    trips: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    refused = trips("publish", code=3)
    assert "has not been validated" in refused.stderr
    verdict = trips.json("validate")
    assert verdict["passed"] is True
    with monkeypatch.context() as patched:
        # Publishing starts no JVM.
        patched.delattr(jobs.session, "spark_session")
        assert trips.json("publish")["outputs"]["hourly"]["rows"] == 3
    assert trips.json("show", "hourly", "--published")["total"] == 3


def test_the_report_is_one_page_of_what_the_ledger_has_without_values_of_rows(
    trips: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    target = tmp_path / "new" / "page.html"
    with monkeypatch.context() as patched:
        # The report starts no JVM.
        patched.delattr(jobs.session, "spark_session")
        assert trips.json("report", "--output", str(target)) == {
            "pipeline": "trips",
            "report": str(target),
        }
    page = read_page(target.read_text())
    assert page.sources == []
    assert "place is null" in page.text
    assert "[red]" not in target.read_text()
    refused = trips("report", "--samples", code=2)
    assert "--samples --output samples.html" in refused.stderr
    trips("report", "--samples", "--output", str(target))
    assert "[red]" in read_page(target.read_text()).sections["refused"].text


def test_backfill_shows_its_plan_and_its_progress(
    trips: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    words = ("--from", "2012-12-01T07:00Z", "--to", "2013-03-01T00:00Z")
    plan = trips.json("backfill", *words, "--dry-run")
    begins = [begin for begin, _ in plan["chunks"]]
    assert begins == ["2012-12-01T07:00:00+00:00", "2013-01-01T07:00:00+00:00"], (
        "none begins after the last event"
    )

    def backfill(
        spark: SparkSession,
        pipeline: object,
        start: datetime,
        end: datetime,
        progress: Callable[[int, int], None],
    ) -> RunReport:
        progress(1, 2)
        return RunReport(
            2,
            2,
            read=5,
            accepted=5,
            windows={"hourly": Changed(1, 2, 0, 4)},
            evolved=("windows.visits", "windows.daily"),
        )

    monkeypatch.setattr("jobs.backfill.backfill", backfill)
    result = trips("backfill", *words, "--json")
    assert "1 of 2 chunks done" in result.stderr
    assert "trips: the spec has added or removed windows.visits, windows.daily" in result.stderr
    assert "state was rebuilt from previously accepted events" in result.stderr
    assert json.loads(result.stdout)["windows"]["hourly"] == {
        "inserted": 1,
        "updated": 2,
        "deleted": 0,
        "restated": 4,
    }
    assert "restated of a closed period, and not shown: hourly 4; see" in result.stderr


def test_an_error_of_spark_is_one_short_line(trips: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(spark: SparkSession, *_: object) -> None:
        spark.sql("select raise_error('the disk\nis full')").collect()

    monkeypatch.setattr("jobs.run.run", fail)
    result = trips("run", code=1)
    assert result.stdout == ""
    assert result.stderr.count("\n") == 1
    assert len(result.stderr) < 450
    assert result.stderr.startswith("tidemark: unexpected ")


def test_a_value_that_is_none_of_the_column_is_bad_usage(
    spark: SparkSession, tmp_path: Path
) -> None:
    from jobs.show import of_keys
    from windowing.errors import UsageError

    rows = spark.createDataFrame([(1,), (2,)], "seq int")
    assert of_keys(rows, {"seq": ("2", "3")}).count() == 1
    with pytest.raises(UsageError, match="'two' is not a value of 'seq'"):
        of_keys(rows, {"seq": ("two",)})
