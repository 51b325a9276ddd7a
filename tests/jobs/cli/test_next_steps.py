"""What commands say after their work, where a figure alone would not be understood. No JVM."""

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from jobs.cli.explain import plan_facts
from jobs.cli.main import main
from jobs.erase import Erased
from jobs.explain import News, Plan
from windowing.location import Location
from windowing.report.rows import Rows, Seen, Version
from windowing.report.rule import Changed, RunReport
from windowing.spec.fingerprint import Evolution
from windowing.spec.load import load_pipeline

SPEC: dict[str, Any] = {
    "name": "trips",
    "lake": "lake",
    "source": {"table": "lake/bronze/trips", "event_time": "at", "key": ["place"]},
    "watermark": {"delay": "0 seconds"},
    "aggregates": {"n": "count()"},
    "windows": {"hourly": {"kind": "tumbling", "size": "1 hour"}},
}
RANGE = ("--from", "2026-01-05", "--to", "2026-01-06")
KEPT_OUT = "Rows of this key are kept out from now on"


@pytest.fixture
def spec(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A pipeline that has not run; sessions are not started."""
    monkeypatch.setattr("jobs.session.spark_session", lambda **_: None)
    file = tmp_path / "trips.yaml"
    file.write_text(json.dumps(SPEC))
    return str(file)


def said(*words: str) -> list[str]:
    """The lines that the command printed."""
    result = CliRunner().invoke(main, list(words), prog_name="tidemark")
    assert result.exit_code == 0, result.output
    return result.stdout.splitlines()


def test_a_backfill_says_which_partly_late_events_count_fully_now(
    spec: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    done = RunReport(2, 1, 14, windows={"hourly": Changed(1, 1)}, caught_up={"hourly": 1_200})
    monkeypatch.setattr("jobs.backfill.backfill", lambda *_, **__: done)
    lines = said("backfill", spec, *RANGE)
    assert "partly late events that count fully now: hourly 1,200" in lines


def test_a_backfill_names_the_ordinary_way_to_read_what_is_new(
    spec: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    done = RunReport(2, 1, 14, versions_unread=1)
    monkeypatch.setattr("jobs.backfill.backfill", lambda *_, **__: done)
    (line,) = (each for each in said("backfill", spec, *RANGE) if "did not read" in each)
    advice = (
        f"`tidemark run {spec}` reads what was appended, and `tidemark backfill {spec} --source "
        "newest` follows rows that were updated or deleted, too"
    )
    assert line.endswith(f"has 1 version that this backfill did not read; {advice}")


@pytest.mark.parametrize(
    ("time", "effect"),
    [
        ("arrival", "can't be reprocessed"),
        ("at", "--source newest` reads what is new and reprocesses them"),
    ],
)
def test_explain_advises_what_can_be_done_about_a_rewritten_source(time: str, effect: str) -> None:
    lake, table = Location("/lake"), Location("/lake/bronze/trips")
    source = SPEC["source"] | {"table": table.text, "event_time": time}
    pipeline = load_pipeline(SPEC | {"lake": lake.text, "source": source})
    news = News(table, 7, 7, 1, 1, None, rewrites=((7, "DELETE"),))
    facts = plan_facts(
        pipeline, Plan("trips", 2, None, news, (), {}, (), Evolution((), (), ()), None)
    )
    assert facts["rewrites"].endswith(effect)


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["--key", "Roma"], "trips.hourly: no row has this key"),
        (["--key", "Roma", *RANGE], "trips.hourly: no row has this key there"),
        ([], "0 rows"),
    ],
)
def test_rows_of_a_key_that_none_has_are_no_empty_table(
    words: list[str], sentence: str, spec: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen = Seen(Rows(("place", "window_start", "window_end", "n"), (), 0), Version(1, 1, 0))
    monkeypatch.setattr("jobs.show.show_windows", lambda *_, **__: seen)
    lines = said("show", spec, "hourly", *words)
    assert lines[-1] == sentence
    assert len(lines) == 1 or not words


def test_an_erasure_of_a_key_that_nothing_had_says_so_first(
    spec: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    erase = ("erase", spec, "--key", "zzz", "--yes")
    monkeypatch.setattr("jobs.erase.erase", lambda *_: Erased({"hourly": 0, "_late": 0}))
    nothing, kept_out = said(*erase)[-2:]
    assert nothing == "No row of the pipeline had this key."
    assert kept_out.startswith(KEPT_OUT)
    monkeypatch.setattr("jobs.erase.erase", lambda *_: Erased({"hourly": 1, "_late": 0}))
    lines = said(*erase)
    assert nothing not in lines and lines[-1].startswith(KEPT_OUT)


def test_before_the_first_run_there_are_no_refused_rows(spec: str) -> None:
    assert said("late", spec) == ["trips: no refused rows, because there is no run yet"]
