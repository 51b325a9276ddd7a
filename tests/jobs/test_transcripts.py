"""Every transcript of the project agrees with what the engine writes.

The differences of one that does not agree are shown row by row.
"""

from pathlib import Path

import pytest
from click.testing import CliRunner
from pyspark.sql import SparkSession

from jobs.cli.main import main
from jobs.transcripts import play_transcript
from tests.support.rare_cases import quick_and_rare
from windowing.report.difference import lines
from windowing.transcripts.load import load_plays

ROOT = Path(__file__).parents[2]
FILES = [
    file
    for folder in ("pipelines/transcripts", "tests/transcripts")
    for file in (ROOT / folder).rglob("*.yaml")
]
PLAYS = {
    Path(play.transcript.file).relative_to(ROOT).as_posix(): play
    for play in load_plays([str(ROOT / "pipelines"), str(ROOT / "tests")])
}

SHIPPED = ("departures_days.yaml", "planes_bridged.yaml")
"""One transcript of each shipped spec."""
FURTHER = tuple(
    f"transcripts/{name}.yaml"
    for name in ("in_order", "capped", "cumulate", "session", "erased_value")
)
"""What random schedules, the tests of windows in order of events and of erasures decide, too."""

SPEC = """
name: trips
lake: nowhere
source: {table: nowhere/bronze/trips, event_time: at, key: [place]}
watermark: {allowed_lateness: 0 seconds}
aggregates: {n: count(), total: sum(fare)}
windows:
  hourly: {kind: tumbling, size: 1 hour}
"""
WRONG = """
spec: trips.yaml
name: three mistakes
steps:
  - input:
      - {place: EWR, at: 2013-01-01 05:10, fare: 3}
      - {place: JFK, at: 2013-01-01 06:10, fare: 4}
    expect:
      hourly:
        - {place: EWR, window_start: 2013-01-01 05:00, n: 1, total: 4}
        - {place: LGA, window_start: 2013-01-01 05:00, n: 1}
      _watermark: 2013-01-01 06:10
  - input: [{place: EWR, at: 2013-01-01 05:10, fare: 3}]
    expect:
      _late: [{place: EWR, outcome: late}]
"""
SAID = """
  {file}:5: after step 1
    hourly: {{{first}}} differs in total: expected 4, found 3
    hourly: {{place: LGA, window_start: 2013-01-01 05:00, n: 1}} is missing
    hourly: {{{second}, n: 1, total: 4}} was not expected
"""


FIRST = "place: EWR, window_start: 2013-01-01 05:00Z, window_end: 2013-01-01 06:00Z"
SECOND = "place: JFK, window_start: 2013-01-01 06:00Z, window_end: 2013-01-01 07:00Z"


def is_rare(file: str) -> bool:
    """Whether it is an example of another system, or a further one."""
    shipped = file.startswith("pipelines/")
    if shipped:
        return not file.endswith(SHIPPED)
    return "/elsewhere/" in file or file.endswith(FURTHER)


@pytest.mark.slow
@pytest.mark.parametrize("file", quick_and_rare(PLAYS, [*filter(is_rare, PLAYS)]))
def test_a_transcript_agrees(file: str, spark: SparkSession) -> None:
    differences = [
        (missed.line, line)
        for missed in play_transcript(spark, PLAYS[file]).missed
        for difference in missed.differences
        for line in lines(difference)
    ]
    assert not differences


def test_no_transcript_is_left_out() -> None:
    specs = [file for file in FILES if file.parent.name == "specs"]
    assert len(PLAYS) == len(FILES) - len(specs)


@pytest.mark.slow
def test_a_wrong_transcript_fails_where_it_is_wrong(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "trips.yaml").write_text(SPEC)
    file = tmp_path / "wrong.yaml"
    file.write_text(WRONG)
    result = CliRunner().invoke(main, ["test", str(tmp_path)], prog_name="tidemark")
    assert result.exit_code == 3, result.output
    differences = SAID.format(file=file, first=FIRST, second=SECOND)
    assert differences in result.stdout.replace("FAILED", "", 1)
    assert "after step 2" not in result.stdout
    assert result.stderr == "tidemark: 1 of 1 transcript failed: three mistakes\n"
    assert not (tmp_path / "nowhere").exists()


FEED = """
spec: trips.yaml
name: read by its change feed
steps:
  - input: [{place: EWR, at: 2013-01-01 05:10, fare: 3}]
    expect:
      hourly: [{place: EWR, window_start: 2013-01-01 05:00, n: 1, total: 3}]
  - input: [{place: EWR, at: 2013-01-01 05:20, fare: 4}, {place: EWR, at: 2013-01-01 06:10}]
    expect:
      hourly:
        - {place: EWR, window_start: 2013-01-01 05:00, n: 2, total: 7}
        - {place: EWR, window_start: 2013-01-01 06:00, n: 1}
  - backfill: {from: 2013-01-01 05:00, to: 2013-01-01 07:00}
    expect:
      hourly:
        - {place: EWR, window_start: 2013-01-01 05:00, n: 2, total: 7, revision: 1}
        - {place: EWR, window_start: 2013-01-01 06:00, n: 1, revision: 0}
"""


@pytest.mark.slow
def test_a_spec_that_reads_a_change_feed_is_played(spark: SparkSession, tmp_path: Path) -> None:
    spec = SPEC.replace("key: [place]", "key: [place], changes: feed")
    (tmp_path / "trips.yaml").write_text(spec)
    (tmp_path / "feed.yaml").write_text(FEED)
    (play,) = load_plays([str(tmp_path)])
    verdict = play_transcript(spark, play)
    assert verdict.agrees, verdict.missed
