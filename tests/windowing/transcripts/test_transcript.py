"""Transcripts that can't be played are refused before Spark starts.

Each is refused in one sentence that names file and field.
"""

from datetime import UTC, datetime
from pathlib import Path

import pytest

from windowing.errors import SpecError, UsageError
from windowing.transcripts.document import LATEST
from windowing.transcripts.load import load_plays

SPEC = """
name: trips
lake: lake
source: {table: lake/bronze/trips, event_time: at, key: [place], event_id: id, where: vip}
watermark: {allowed_lateness: 1 hour}
aggregates: {n: count(), total: sum(fare)}
windows:
  hourly: {kind: tumbling, size: 1 hour}
  busy: {kind: session, gap: 30 minutes}
"""
HEAD = "spec: trips.yaml\ncolumns: {vip: boolean, id: string, fare: bigint}\nsteps:\n"
ROW = "{place: EWR, at: 2013-01-01 05:10, fare: 3, vip: true}"


def write(folder: Path, text: str, name: str = "one.yaml") -> str:
    (folder / "trips.yaml").write_text(SPEC)
    (folder / name).write_text(text)
    return str(folder / name)


WRONG = {
    "": "null is not a transcript",
    "- a": "is not a transcript; write a mapping with spec and steps",
    "spec: trips.yaml\n": "steps",
    "spec: trips.yaml\nsteps: []\n": "steps",
    "steps: [{watermark: 2013-01-01}]\n": "spec",
    "spec: nowhere.yaml\nsteps: [{watermark: 2013-01-01}]\n": "nowhere.yaml: can't be read",
    HEAD + "  - inptu: []\n": "did you mean 'input'",
    HEAD + "  - expect: {hourly: []}\n": (
        "steps[0]: does nothing; write input, watermark, arrival, backfill or erase"
    ),
    HEAD + "  - input: {place: EWR}\n": "steps[0].input",
    HEAD + "  - input: [EWR]\n": "steps[0].input[0]",
    HEAD + "  - watermark: noon\n": "steps[0].watermark: 'noon' is not a time",
    HEAD + "  - watermark: 5\n": "steps[0].watermark",
    HEAD + "  - backfill: 2013-01-01\n": "steps[0].backfill",
    HEAD + "  - backfill: {from: 2013-01-02, to: 2013-01-01}\n": "from must be before to",
    HEAD + "  - backfill: {from: 2013-01-01, to: 2013-01-02}\n    watermark: 2013-01-01\n": (
        "has watermark and backfill"
    ),
    HEAD + "  - erase: {key: a}\n    backfill: {from: 2013-01-01, to: 2013-01-02}\n": (
        "has erase and backfill; give the backfill a step of its own"
    ),
    HEAD + "  - erase: {key: a}\n    input: []\n": (
        "has input and erase; give the erase a step of its own"
    ),
    HEAD + "  - erase: a\n": "steps[0].erase: 'a' is not a key; write {origin: JFK}, or {where: ",
    HEAD + "  - erase: {}\n": "steps[0].erase: {} is not a key",
    HEAD + "  - erase: {where: {fare: 1, place: EWR}}\n": "is not a key; write {origin: JFK}",
    HEAD + "  - erase: {where: {fare: 1}, place: EWR}\n": "is not a key; write {origin: JFK}",
    HEAD + "  - input: [{place: EWR, at: noon}]\n": "steps[0].input[0].at: 'noon' is not a time",
    HEAD + "  - input: [{place: 5, at: 2013-01-01}, {place: EWR, at: 2013-01-01}]\n": (
        "columns.place: is missing, and the rows give"
    ),
    HEAD + "  - input: [{plce: EWR}]\n": (
        "steps[0].input[0].plce: the spec does not use this column, did you mean 'place'"
    ),
    HEAD + "  - input: [{place: EWR, at: 2013-01-01, fare: 1.5}]\n": (
        "fare: 1.5 is not a whole number of 64 bits"
    ),
    HEAD + "  - input: [{place: EWR, at: 2013-01-01, fare: 9223372036854775808}]\n": (
        "is not a whole number of 64 bits"
    ),
    HEAD + "  - input: [{place: EWR, at: 2013-01-01, vip: 1}]\n": "vip: 1 is not true or false",
    HEAD.replace("bigint", "money") + f"  - input: [{ROW}]\n": (
        "columns.fare: 'money' is not a type"
    ),
    HEAD.replace("fare:", "Fare:") + f"  - input: [{ROW}]\n": "by case only",
    "spec: trips.yaml\nsteps:\n  - watermark: 2013-01-01\n": (
        "columns: the spec uses place, id, vip, fare, but no row gives a value"
    ),
    HEAD + f"  - input: [{ROW}]\n    expect: {{houry: []}}\n": (
        "is not a table of this pipeline, did you mean 'hourly'"
    ),
    HEAD + f"  - input: [{ROW}]\n    expect: {{hourly: {{n: 1}}}}\n": (
        "is not a list of rows; write all rows of hourly, or []"
    ),
    HEAD + f"  - input: [{ROW}]\n    expect: {{hourly: [3]}}\n": (
        "steps[0].expect.hourly[0]: 3 is not a row"
    ),
    HEAD + f"  - input: [{ROW}]\n    expect: {{hourly: [{{}}]}}\n": "is not a row",
    HEAD + f"  - input: [{ROW}]\n    expect: {{hourly: [{{m: 1}}]}}\n": (
        "hourly[0].m: is not a column of hourly"
    ),
    HEAD + f"  - input: [{ROW}]\n    expect: {{hourly: [{{last_event: 2013-01-01}}]}}\n": (
        "last_event: is not a column of hourly"
    ),
    HEAD + f"  - input: [{ROW}]\n    expect: {{busy: [{{window_start: noon}}]}}\n": (
        "'noon' is not a time"
    ),
    HEAD + f"  - input: [{ROW}]\n    expect: {{_watermark: [1]}}\n": "null says there is none yet",
    HEAD + f"  - arrival: 2013-01-02\n    input: [{ROW}]\n  - arrival: 2013-01-01\n": (
        "is before 2013-01-02"
    ),
    HEAD + f"  - input: [{ROW}]\n  - arrival: 2013-01-01\n": "steps[0].arrival: is missing",
}


@pytest.mark.parametrize("text", WRONG, ids=range(len(WRONG)))
def test_what_can_not_be_played_is_one_sentence(text: str, tmp_path: Path) -> None:
    file = write(tmp_path, text)
    with pytest.raises(SpecError) as refused:
        load_plays([file])
    said = str(refused.value)
    assert WRONG[text] in said
    assert "\n" not in said
    assert said.startswith(str(tmp_path / "nowhere.yaml" if "nowhere" in text else file))


@pytest.mark.parametrize(
    ("wrong", "part"),
    [("event_time: trip.at", "trip.at"), ("event_time: at, columns: {x: 'tags[0]'}", "tags[0]")],
)
def test_a_transcript_has_no_structs_arrays_and_maps(wrong: str, part: str, tmp_path: Path) -> None:
    file = write(tmp_path, HEAD + f"  - input: [{ROW}]\n")
    (tmp_path / "trips.yaml").write_text(SPEC.replace("event_time: at", wrong))
    with pytest.raises(SpecError, match="spec that names plain columns") as refused:
        load_plays([file])
    assert f"'{part}' reads a part of a column" in refused.value.message


def test_a_step_has_values_of_the_types_of_the_source(tmp_path: Path) -> None:
    [play] = load_plays(
        [write(tmp_path, HEAD + f"  - input: [{ROW}]\n  - watermark: 2013-01-01 07:00+01:00\n")]
    )
    at = datetime(2013, 1, 1, 5, 10, tzinfo=UTC)
    assert play.columns == {
        "place": "string",
        "at": "timestamp",
        "id": "string",
        "vip": "boolean",
        "fare": "bigint",
    }
    assert list(map(list, play.rows)) == [
        [{"place": "EWR", "at": at, "id": None, "vip": True, "fare": 3}],
        [],
    ]
    assert [(s.line, s.arrival, s.watermark) for s in play.transcript.steps] == [
        (4, LATEST, None),
        (5, LATEST, datetime(2013, 1, 1, 6, tzinfo=UTC)),
    ]


def test_a_directory_stands_for_the_transcripts_below_it(tmp_path: Path) -> None:
    (below := tmp_path / "below").mkdir()
    file = write(tmp_path, HEAD + f"  - input: [{ROW}]\n")
    (tmp_path / "below" / "two.yaml").write_text(
        Path(file).read_text().replace("trips.yaml", "../trips.yaml")
    )
    (tmp_path / "below" / "three.yml").write_text((tmp_path / "below" / "two.yaml").read_text())
    (hidden := tmp_path / ".hidden").mkdir()
    (hidden / "three.yaml").write_text("steps: broken")
    assert [p.transcript.name for p in load_plays([str(tmp_path), file, str(below)])] == [
        "three",
        "two",
        "one",
    ]


def test_a_broken_transcript_of_a_directory_is_not_passed_over(tmp_path: Path) -> None:
    file = write(tmp_path, "spec: trips.yaml\nsteps:\n  - [\n")
    with pytest.raises(SpecError, match="one.yaml"):
        load_plays([str(tmp_path)])
    assert Path(file).exists()


def test_a_directory_without_one_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "trips.yaml").write_text(SPEC)
    with pytest.raises(
        UsageError, match="holds no transcript; one is a YAML file with spec and steps"
    ):
        load_plays([str(tmp_path)])
