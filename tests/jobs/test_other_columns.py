"""Outputs that another spec has made, with other columns than the one that reads them. No JVM."""

import json
from dataclasses import replace
from html import unescape
from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from pyspark.errors import AnalysisException

from jobs.cli.main import main
from jobs.diagnosis.spec_changes import list_changed_names
from jobs.show import PUBLISHED, removal_explained, tell_first_run
from tests.support.published_lake import PublishedLake
from windowing.errors import UsageError
from windowing.ledger.history import LedgerHistory
from windowing.ledger.rule import CLOSE, EVOLVE_DONE, OPEN, LedgerEntry
from windowing.ledger.table import read_history, record_entries
from windowing.spec.fingerprint import parts

TUMBLING = "hourly: {kind: tumbling, size: 1 hour}"
OTHERS = {
    "hourly: {kind: count, count: 2}": ("windows.hourly", "window_index"),
    "hourly: {kind: session, gap: 1 hour}": ("windows.hourly", "last_event"),
    "key: [borough]": ("source", "borough"),
}
"""What is written in the spec instead, what differs then, and which column the output lacks."""


@pytest.fixture
def lake(tmp_path: Path) -> PublishedLake:
    """Two runs, the first of them published; the ledger says what the spec was."""
    made = PublishedLake(tmp_path)
    note = json.dumps({"types": {}, "parts": parts(made.pipeline)})
    record_entries(made.pipeline, read_history(made.pipeline), [LedgerEntry(OPEN, note=note)])
    made.run({("EWR", 1): 1})
    made.publish()
    made.run({("EWR", 1): 2})
    return made


def tidemark(command: str, lake: PublishedLake, *words: str) -> Result:
    """What `tidemark COMMAND SPEC WORDS` printed."""
    return CliRunner().invoke(main, [command, str(lake.spec), *words], prog_name="tidemark")


def rewrite(lake: PublishedLake, other: str) -> None:
    """The spec has something else in place of its window or key."""
    text = lake.spec.read_text()
    found = "key: [place]" if other.startswith("key") else TUMBLING
    lake.spec.write_text(text.replace(found, other))
    assert list_changed_names(lake.pipeline, read_history(lake.pipeline))


@pytest.mark.parametrize("other", OTHERS)
def test_a_diff_names_what_in_the_spec_has_changed(lake: PublishedLake, other: str) -> None:
    rewrite(lake, other)
    said = tidemark("diff", lake)
    differs, lacking = OTHERS[other]
    assert said.exit_code == 4, said.output
    assert f"{differs} differ from what made the rows of hourly" in said.stderr
    assert f"have no column '{lacking}'; restore them to read these rows" in said.stderr


@pytest.mark.parametrize("other", OTHERS)
def test_a_report_says_that_it_has_not_read_these_rows(
    lake: PublishedLake, other: str, tmp_path: Path
) -> None:
    rewrite(lake, other)
    page = tmp_path / "page.html"
    said = tidemark("report", lake, "--output", str(page))
    assert said.exit_code == 0, said.output
    lacking = OTHERS[other][1]
    assert f"another spec made its rows, without {lacking!r}" in unescape(page.read_text())


def test_the_run_that_added_an_output_is_the_first_that_left_it(lake: PublishedLake) -> None:
    filled = LedgerEntry(EVOLVE_DONE, run=1, versions={"hourly": 0, "daily": 1})
    closed = [LedgerEntry(CLOSE, run=n, versions=filled.versions) for n in (2, 3)]
    daily = replace(lake.pipeline.windows[0], name="daily")
    past = LedgerHistory((LedgerEntry(CLOSE, run=1, versions={"hourly": 0}), filled, *closed))
    assert tell_first_run(past, daily) == "it was added by run 2"
    unfinished = LedgerHistory(past.entries[:2])
    assert tell_first_run(unfinished, daily) == "no run that has finished has added it"


def test_a_published_version_that_was_removed_is_published_again() -> None:
    again = "published version of hourly has been removed .*; run `tidemark validate`, then"
    with pytest.raises(UsageError, match=again), removal_explained("hourly", PUBLISHED):
        raise AnalysisException("the version was deleted")


def test_a_diff_names_an_output_that_is_taken_away(lake: PublishedLake) -> None:
    past = read_history(lake.pipeline)
    published = past.published
    assert published is not None
    versions = {**published.versions, "daily": 4, "_seen": 5}
    closed = LedgerEntry(CLOSE, run=3, at=1, watermark_out=1, versions={"hourly": 2})
    again = LedgerEntry("publish", run=published.run, at=published.at, versions=versions)
    record_entries(lake.pipeline, past, [again, closed])
    found = json.loads(tidemark("diff", lake, "--json").stdout)
    assert (found["added"], found["removed"]) == ([], ["daily"])
    gone = "daily: every row is gone, because this output is not in the newest rows, of run 3"
    assert gone in tidemark("diff", lake).stdout


@pytest.mark.parametrize("place", ["s3://reports/trips.html", "file:///tmp/trips.html"])
def test_a_page_is_written_to_no_place_but_a_path(
    lake: PublishedLake, place: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    before = sorted(tmp_path.iterdir())
    said = tidemark("report", lake, "--output", place)
    assert (said.exit_code, said.stdout) == (2, "")
    assert "is none of this machine's files" in said.stderr
    assert sorted(tmp_path.iterdir()) == before
