"""What rows hold stays in tables.

Only commands that print rows say it, no log, page or pointer keeps it, and nobody can listen in.
"""

import json
import os
from pathlib import Path

import psutil
import pytest
from click.testing import CliRunner
from pyspark.sql import SparkSession

from jobs.cli.main import main
from tests.support.killed_process import jvm_of
from windowing.location import Location
from windowing.storage import delta

KEY, ID, VALUE, SECRET = "zz-key-4711", "zz-id-4712", 987654321987, "zz-secret-4713"
CANARIES = (KEY, ID, str(VALUE), SECRET)
SPEC = {
    "name": "birds",
    "lake": "/lake",
    "source": {
        "table": "/lake/in/birds",
        "event_time": "at",
        "key": ["who"],
        "event_id": "id",
        "zone": "UTC",
        "on_bad_value": "quarantine",
    },
    "watermark": {"delay": "0 seconds", "allowed_lateness": "0 seconds"},
    "aggregates": {"n": "count()", "most": "max(weight)", "names": "count_distinct(ring)"},
    "expectations": {"suite": "birds"},
    "windows": {
        "hourly": {"kind": "tumbling", "size": "1 hour"},
        "visits": {"kind": "session", "gap": "10 minutes"},
    },
}
SUITE = (
    "hourly:\n  - {type: expect_column_values_to_be_between, "
    "kwargs: {column: most, min_value: 0, max_value: 5}, severity: warning}\n"
)
SCHEMA = "id string, who string, at string, weight bigint, ring string"
RANGE = ("--from", "2026-01-05T00:00", "--to", "2026-01-05T02:00")
COMMANDS: tuple[tuple[str, ...], ...] = (
    ("explain",), ("run",), ("validate",), ("publish", "--accept", "birds are heavy"), ("report",),
    ("publish", "--list"), ("publish", "--rollback", "0", "--reason", "there is none"),
    ("status",),
    ("doctor",), ("run",), ("explain",),
    ("close", "--until", "2026-01-05T01:00", "--reason", "done"), ("doctor",),
    ("backfill", *RANGE, "--dry-run"), ("backfill", *RANGE), ("maintain",), ("recover",),
    ("reopen", "--reason", "undone"),
)  # fmt: skip
"""Every command that is not there to print rows, in the order of a pipeline's day."""


@pytest.fixture
def spec(spark: SparkSession, tmp_path: Path) -> Path:
    """A pipeline whose rows are all canaries: accepted, late, copied and refused ones."""
    file = tmp_path / "birds.yaml"
    file.write_text(json.dumps(SPEC).replace("/lake", f"{tmp_path}/lake"))
    (tmp_path / "expectations").mkdir()
    (tmp_path / "expectations" / "birds.yaml").write_text(SUITE)
    return file


def land(spark: SparkSession, spec: Path, *times: str | None) -> None:
    """Appends rows of the canary, one for each time; ids count up from its own."""
    rows = [
        {"id": f"{ID}-{t}", "who": KEY, "at": t, "weight": VALUE, "ring": SECRET} for t in times
    ]
    delta.append(delta.rows(spark, rows, SCHEMA), Location(str(spec.parent / "lake/in/birds")))


@pytest.mark.slow
def test_no_command_says_what_rows_hold(spark: SparkSession, spec: Path) -> None:
    land(
        spark,
        spec,
        "2026-01-05 00:10",
        "2026-01-05 00:10",
        "2026-01-05 03:00",
        f"{SECRET} o'clock",
        None,
    )
    for n, words in enumerate(COMMANDS):
        if n == COMMANDS.index(("doctor",)):
            land(spark, spec, "2026-01-05 00:20", "2026-01-05 04:00")
        said = CliRunner().invoke(main, [words[0], str(spec), *words[1:]], prog_name="tidemark")
        assert said.exit_code in (0, 2, 3), said.output
        assert [c for c in CANARIES if c in said.output] == [], words
    home = spec.parent / "lake" / "birds"
    files = [p for p in home.rglob("*") if p.is_file() and ".parquet" not in p.name]
    assert {"_published.json", "_report.html"} <= {p.name for p in files}
    assert any("_docs" in p.parts for p in files)
    assert [(p.name, c) for p in files for c in CANARIES if c.encode() in p.read_bytes()] == []


@pytest.mark.slow
def test_a_report_has_values_only_where_they_are_asked_for_and_never_in_its_usual_place(
    spark: SparkSession, spec: Path
) -> None:
    land(spark, spec, "2026-01-05 00:10", f"{SECRET} o'clock")
    for words in (["run"], ["validate"]):
        CliRunner().invoke(main, [words[0], str(spec)], prog_name="tidemark")
    page = spec.parent / "page.html"
    report = ["report", str(spec)]
    for words, told in ([], False), (["--samples"], True):
        answer = CliRunner().invoke(main, [*report, *words, "--output", str(page)])
        assert answer.exit_code == 0, answer.output
        assert [c in page.read_text() for c in (KEY, SECRET, str(VALUE))] == [told] * 3
    refused = CliRunner().invoke(main, [*report, "--samples"])
    assert refused.exit_code == 2
    assert not (spec.parent / "lake" / "birds" / "_report.html").exists()


def test_what_is_refused_is_where_it_can_be_seen(spark: SparkSession, spec: Path) -> None:
    """The canaries are really there: the commands that print rows do."""
    land(spark, spec, "2026-01-05 00:10", f"{SECRET} o'clock")
    CliRunner().invoke(main, ["run", str(spec)], prog_name="tidemark")
    said = CliRunner().invoke(main, ["show", str(spec), "hourly"], prog_name="tidemark").output
    assert KEY in said and str(VALUE) in said
    assert SECRET in CliRunner().invoke(main, ["late", str(spec)], prog_name="tidemark").output


def listening(pid: int) -> set[str]:
    """The addresses that the process listens on."""
    found = [
        c.laddr.ip
        for c in psutil.Process(pid).net_connections("inet")
        if c.status == psutil.CONN_LISTEN
    ]
    return {address.removeprefix("::ffff:") for address in found}


def test_nothing_listens_outside_this_machine(spark: SparkSession) -> None:
    spark.range(1).count()
    assert listening(jvm_of(spark)) == {"127.0.0.1"}
    assert listening(os.getpid()) <= {"127.0.0.1"}
