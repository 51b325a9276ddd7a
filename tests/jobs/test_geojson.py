"""A feed of earthquakes as GeoJSON, revised for days: windows of it are those of a plain loop."""

import json
from collections.abc import Mapping
from pathlib import Path
from random import Random
from typing import Any

from pyspark.sql import SparkSession

from jobs.ingest import ingest
from jobs.init import propose_project, write_project
from jobs.init_sample import find_sample
from jobs.run import run
from jobs.show import Wanted, show_windows
from tests.support.drop_folder import DropFolder
from windowing.spec.load import load_pipeline

BEGAN_MS = 1_772_445_600_000
HOUR_MS = 3_600_000
NO_LIST = "has no list of JSON objects in features"


def quake(rng: Random, number: int) -> dict[str, Any]:
    """A feature as seismologists publish them; some have no magnitude yet."""
    return {
        "type": "Feature",
        "id": f"us{number:04}",
        "properties": {
            "mag": rng.choice([None, rng.randrange(10, 80) / 10]),
            "net": rng.choice(["us", "ak"]),
            "time": BEGAN_MS + rng.randrange(12 * HOUR_MS),
        },
        "geometry": {"type": "Point", "coordinates": [rng.random(), rng.random(), 10]},
    }


def document(features: object) -> str:
    """A feed, which tells of itself before its features."""
    return json.dumps({"type": "FeatureCollection", "metadata": {"n": 1}, "features": features})


def count_hours(feeds: list[list[dict[str, Any]]]) -> dict[tuple[str, int], tuple[int, float]]:
    """By network and hour how many quakes, and the strongest one, each as it was told first."""
    first: dict[str, Mapping[str, Any]] = {}
    for feed in feeds:
        for feature in feed:
            first.setdefault(feature["id"], feature["properties"])
    found: dict[tuple[str, int], tuple[int, float]] = {}
    for quaked in first.values():
        hour = (quaked["time"] - BEGAN_MS) // HOUR_MS
        n, strongest = found.get((quaked["net"], hour), (0, 0.0))
        found[quaked["net"], hour] = (n + 1, max(strongest, quaked["mag"] or 0.0))
    return found


def test_a_pipeline_is_proposed_from_a_feed(spark: SparkSession, tmp_path: Path) -> None:
    rng = Random(6)
    file = tmp_path / "week.geojson"
    file.write_text(document([quake(rng, n) for n in range(80)]))
    sample = find_sample(str(file))
    project = propose_project(spark, "quakes", sample)
    assert (project.read, project.report.accepted, project.quarantined) == (80, 80, 0)
    assert project.proposal.key.value == "[properties.net]"
    folder = tmp_path / "quakes"
    write_project(project, folder, sample)
    pipeline = load_pipeline(folder / "quakes.yaml")
    assert ingest(spark, pipeline).appended == 80
    assert run(spark, pipeline).accepted == 80


def test_windows_of_a_feed_are_those_of_a_plain_loop(spark: SparkSession, tmp_path: Path) -> None:
    rng = Random(5)
    drop = DropFolder(tmp_path, {"format": "json", "records": "features"})
    feeds = [[quake(rng, n) for n in range(30)], [quake(rng, n) for n in range(10, 50)]]
    spec = drop.spec
    spec["source"] |= {
        "event_time": {"column": "properties.time", "unit": "ms"},
        "key": ["properties.net"],
        "event_id": "id",
    }
    del spec["source"]["zone"]
    spec["aggregates"] = {"n": "count()", "strongest": "max(properties.mag)"}
    spec["watermark"] = {"allowed_lateness": "forever"}
    pipeline = load_pipeline(spec)
    drop.land("first.geojson", document(feeds[0]))
    drop.land("empty.geojson", document([]))
    drop.land("object.geojson", document({"a": 1}))
    drop.land("cut.geojson", document(feeds[0])[:-40])
    taken = drop.take(spark)
    assert (taken.read, taken.appended, taken.quarantined) == (32, 30, 2)
    assert [(file, why) for file, _, why in drop.quarantine(spark)] == [
        ("cut.geojson", NO_LIST),
        ("object.geojson", NO_LIST),
    ]
    assert run(spark, pipeline).accepted == 30
    # Of a quake that was told before, what is told later is a duplicate.
    drop.land("second.geojson", document(feeds[1]))
    assert drop.take(spark).appended == 40
    report = run(spark, pipeline)
    assert (report.accepted, report.duplicate) == (20, 20)
    shown = show_windows(
        spark, pipeline, pipeline.windows[0], Wanted(limit=100), published=False, as_of=None
    )
    found = {
        (
            row["net"],
            round(row["window_start"].timestamp() * 1000 - BEGAN_MS) // HOUR_MS,
        ): (
            row["n"],
            row["strongest"] or 0.0,
        )
        for row in shown.rows.rows
    }
    assert found == count_hours(feeds)
