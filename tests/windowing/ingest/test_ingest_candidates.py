"""Fields of structs are proposed as columns are, by names that a spec can have."""

from datetime import UTC, datetime, timedelta
from typing import Any

import yaml

from windowing.ingest.candidates import find_candidates
from windowing.ingest.columns import PinnedColumn
from windowing.ingest.project import Origin, render_project
from windowing.ingest.proposal import Proposal, propose
from windowing.spec.load import load_pipeline

AT = datetime(2026, 3, 2, 10, tzinfo=UTC)


def reading(n: int) -> dict[str, Any]:
    """A reading as devices send them."""
    return {
        "id": n,
        "ts": AT + timedelta(minutes=n),
        "stop": n % 2 == 0,
        "device": {"id": f"d{n % 3}", "where": {"floor": n % 2}},
        "reading": {"temp": n / 8, "unit": "C"},
        "source_file": "1.jsonl",
    }


def proposed(rows: list[dict[str, Any]]) -> Proposal:
    """What is proposed from rows."""
    proposal = propose(rows)
    assert proposal is not None
    return proposal


def test_fields_of_structs_are_key_and_aggregates() -> None:
    proposal = proposed([reading(n) for n in range(100)])
    assert proposal.key.value == "[device_id]"
    assert {name: part.value for name, part in proposal.columns.items()} == {
        "device_id": "device.id"
    }
    assert proposal.event_id is not None
    assert proposal.event_id.value == "id"
    assert {name: part.value for name, part in proposal.aggregates.items()} == {
        "events": "count()",
        "avg_floor": "avg(device.where.floor)",
        "avg_temp": "avg(reading.temp)",
    }


def test_a_spec_with_fields_of_structs_is_right() -> None:
    proposal = proposed([reading(n) for n in range(100)])
    texts = render_project("things", Origin("/data/things"), proposal, [], "100 records")
    spec = texts["things.yaml"]
    assert "  columns:\n    device_id: device.id  # a name of its own, because that of" in spec
    pipeline = load_pipeline({**yaml.safe_load(spec), "lake": "/lake"})
    assert pipeline.source.key == ("device_id",)
    assert not [path for path in texts if path.startswith("transcripts")]


def test_a_field_has_a_name_of_its_own_where_its_own_is_taken() -> None:
    rows = [
        {
            "id": 1,
            "a_id": 2,
            "a": {"id": 3, "run": 4, "odd name": 5, "deep": {"x": 6}},
            "b": {"X": 7, "y": None, "z": 8},
            "odd name": {"z": 9},
            "rescued": None,
        }
    ]
    found = find_candidates(rows)
    assert found.paths == {
        "a_id_2": "a.id",
        "a_run": "a.run",
        "a_deep_x": "a.deep.x",
        "b_X": "b.X",
    }
    values = {name: each for name, each in found.values.items() if name not in rows[0]}
    assert values == {"a_id_2": [3], "a_run": [4], "a_deep_x": [6], "b_X": [7], "b.z": [8]}


def test_no_rows_have_no_columns() -> None:
    found = find_candidates([])
    assert (found.values, found.paths) == ({}, {})


def transcript(rows: list[dict[str, Any]], *columns: PinnedColumn) -> dict[str, Any]:
    """The transcript of what is proposed from rows."""
    texts = render_project("things", Origin("/data/x"), proposed(rows), columns, "9 records")
    found: dict[str, Any] = yaml.safe_load(texts["transcripts/things.yaml"])
    return found


def test_a_transcript_has_values_of_the_sample() -> None:
    rows = [
        {"ts": AT + timedelta(minutes=n), "id": 40 + n, "stop": n % 2 == 0, "note": None}
        for n in range(10)
    ]
    (step,) = transcript(rows, PinnedColumn("id", "bigint", "id"))["steps"]
    (row,) = step["input"]
    assert {name: row[name] for name in ("stop", "id")} == {"stop": True, "id": 40}
    assert step["expect"] == {"minutes": [{"stop": True, "events": 1}]}


def test_texts_of_a_transcript_stay_texts() -> None:
    rows = [
        {"ts": AT + timedelta(minutes=n), "id": f"0{n}", "shop": ["yes", 'a "b": c'][n % 2]}
        for n in range(10)
    ]
    (step,) = transcript(rows)["steps"]
    (row,) = step["input"]
    assert (row["shop"], row["id"]) == ("yes", "00")
