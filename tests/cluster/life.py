"""The life of a pipeline with every family of windows: what comes, and what is done with it.

python -m tests.cluster.life ROOT
plays it in a local session.
"""

import sys
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from jobs.erase import erase
from jobs.microbatch import outputs
from jobs.publish import publish
from jobs.read import read
from jobs.session import spark_session
from jobs.sessions.process import stay_on_utc
from jobs.sessions.profiles import TEST
from jobs.shortcuts import run_size
from jobs.validate import validate
from tests.oracle import (
    Count,
    Cumulate,
    Delta,
    Event,
    Global,
    Punctuation,
    RecordSliding,
    Session,
    Sliding,
    Tumbling,
    Window,
)
from tests.support.pipeline_under_test import ARRIVAL, FAR, Lab
from tests.support.published_readers import Row, read_by_each, to_rows
from tests.support.random_schedules import BASE, DAY, HOUR, MINUTE, NEW_YORK, event
from tests.support.stored_rows import read_stored
from windowing.ledger.erased import Erasing
from windowing.location import Location
from windowing.merge.rule import REVISIONS, published_name
from windowing.revisions.table import CHANGE, KEPT, OUTPUT, SINCE, VERSION
from windowing.storage import few_rows
from windowing.storage.store import store_of

WINDOWS: tuple[Window, ...] = (
    Tumbling("hourly", HOUR, zone=NEW_YORK),
    Sliding("sliding", HOUR, 20 * MINUTE),
    Cumulate("so_far", 2 * HOUR, 0, 20 * MINUTE, zone=NEW_YORK),
    Session("visits", 7 * MINUTE),
    Session("capped", 7 * MINUTE, 45 * MINUTE),
    RecordSliding("near", 5 * MINUTE, 1000),
    Count("fours", 4, 2),
    Delta("steps", 10),
    Punctuation("marked"),
    Global("ever"),
)
LATER: tuple[Window, ...] = (
    *(window for window in WINDOWS if window.name not in ("so_far", "steps")),
    Tumbling("daily", DAY, zone=NEW_YORK),
)
"""The windows after the spec has changed."""
QUANTILES = {"middle": "median(value)", "high": "quantile(value, 0.9)"}
KEYS = ("a", "b", "c")
_LOG = "/_delta_log/"
WITHOUT_CLOCK = ("_ledger", "_quality", "_reports")
"""Tables with times of the host's clock are left out."""


def draw_batches() -> list[list[Event]]:
    """Three batches of events of three keys; some come late, some are there twice."""
    rng = Random(7)
    events = [replace(event(rng, n), key=rng.choice(KEYS), attr=n % 40) for n in range(90)]
    times = [e for e in events if e.t is not None and e.t < BASE + 4 * HOUR]
    first, second, third = (sorted(times, key=lambda e: e.t)[n::3] for n in range(3))
    late = first[:4]
    return [[*first[4:], *second[:6]], [*second, *late], [*third, *first[8:10]]]


def carry_by_spark(patched: pytest.MonkeyPatch) -> None:
    """Few rows are carried through a run as many are, by executors."""
    patched.setattr(run_size, "FEW_ROWS", 0)
    patched.setattr(few_rows, "_FEW_ROWS", 0)
    patched.setattr(few_rows, "_FEW_LARGE_ROWS", 0)
    patched.setattr(outputs, "_MANY_BYTES", 0)


class LabWithSketches(Lab):
    """The pipeline whose windows also show quantiles, which the oracle does not compute.

    They are exact up to 4,096 values, so they are the same wherever they are computed.
    """

    def spec(self) -> dict[str, Any]:
        """The spec as a user would write it."""
        spec = super().spec()
        return {**spec, "aggregates": {**spec["aggregates"], **QUANTILES}}


def make_lab(spark: SparkSession, root: Path | Location) -> Lab:
    """The pipeline, of which nothing has come yet."""
    shown = ("n", "total", "opening", "distinct")
    return LabWithSketches(spark, root, WINDOWS, HOUR, 5 * MINUTE, shows=shown, max_future=FAR)


def live(lab: Lab) -> None:
    """Runs, a backfill, a change of the spec, a maintenance, an erasure and a publication.

    Outputs are compared with the oracle's tables on the way.
    """
    first, second, third = draw_batches()
    lab.run(first, ARRIVAL)
    lab.run(second, ARRIVAL)
    lab.check()
    lab.backfill(BASE, BASE + HOUR, ARRIVAL)
    lab.respecify(LATER)
    lab.run(third, ARRIVAL)
    lab.maintain()
    lab.check()
    erase(lab.spark, lab.pipeline, Erasing({"key": "c"}))
    lab.truth.erase("c")
    assert validate(lab.spark, lab.pipeline).passed
    publish(lab.pipeline)
    lab.check()


def list_tables(root: Location) -> list[str]:
    """The names of the tables of the pipeline's lake."""
    lake = root / "lake" / "lab"
    files = store_of(lake).list_files(lake)
    found = {file.partition(_LOG)[0] for file in files if _LOG in file}
    return sorted(name for name in found if not name.startswith(WITHOUT_CLOCK))


def compare_lakes(spark: SparkSession, one: Location, other: Location) -> None:
    """Both have the same tables with the same rows; both have kept all changes of outputs.

    A cluster writes more files, so there is one commit more where they are merged. It changes no
    row, and the versions that are kept together count it.
    """
    names = list_tables(one)
    assert names == list_tables(other)
    assert {window.name for window in LATER} <= set(names)
    assert {published_name(window.name) for window in LATER} <= set(names)
    for name in names:
        there, here = (read_stored(spark, root / "lake" / "lab" / name) for root in (one, other))
        if name == REVISIONS:
            assert _check_kept(there) == _check_kept(here)
            there, here = (rows.where(F.col(CHANGE) != KEPT) for rows in (there, here))
        assert _comparable(there) == _comparable(here), name


def _check_kept(revisions: DataFrame) -> set[str]:
    """The outputs whose changes were kept: each of its first version and all behind that."""
    ranges: dict[str, list[tuple[int, int]]] = {}
    kept = revisions.where(F.col(CHANGE) == KEPT).select(OUTPUT, SINCE, VERSION)
    for window, since, until in sorted(kept.collect()):
        ranges.setdefault(window, []).append((since, until))
    for window, each in ranges.items():
        begins = [since for since, _ in each]
        assert begins == [0, *(until + 1 for _, until in each[:-1])], window
    return set(ranges)


def read_published(
    spark: SparkSession, lab: Lab, windows: tuple[Window, ...]
) -> dict[str, list[Row]]:
    """The rows of each published table, which all readers of other libraries find alike."""
    found = {}
    for window in windows:
        rows = read(spark, lab.pipeline, window.name).drop("is_closed", "is_final")
        expected = to_rows(rows.toArrow())
        assert {*QUANTILES} <= expected[0].keys()
        by_each = read_by_each(lab.pipeline.table(published_name(window.name)), "key", "a")
        assert {"delta-rs", "DuckDB"} <= by_each.keys()
        wrong = [name for name, each in by_each.items() if each != expected]
        assert not wrong, (window.name, wrong, expected, by_each[wrong[0]])
        assert len(expected) == len(lab.expected(window))
        found[window.name] = expected
    return found


def _comparable(rows: DataFrame) -> list[tuple[object, ...]]:
    """All rows, in one order; sketches are compared by what is shown of them."""
    shown = sorted(f.name for f in rows.schema.fields if f.dataType.typeName() != "binary")
    return sorted((tuple(row) for row in rows.select(shown).collect()), key=repr)


if __name__ == "__main__":
    stay_on_utc()
    live(make_lab(spark_session("life", **TEST), Path(sys.argv[1])))
