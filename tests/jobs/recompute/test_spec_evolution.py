"""A live pipeline whose spec gains and loses windows and aggregates.

What is new fills itself, the rest stays, also when it is killed.
"""

from collections.abc import Callable, Mapping
from copy import deepcopy
from typing import Any

import pytest
from pyspark.sql import SparkSession

from jobs.publish import publish
from jobs.read import read
from jobs.validate import validate
from tests import oracle
from tests.support.long_lived_pipeline import BASE, MINUTE, Crasher, Life, ends_at
from tests.support.pipeline_under_test import ARRIVAL, Lab
from windowing.errors import StateRefused
from windowing.spec.load import load_pipeline
from windowing.spec.pipeline import Pipeline
from windowing.storage import delta, delta_log

HOURLY = oracle.Tumbling("hourly", 60 * MINUTE)
ROLLING = oracle.Sliding("rolling", 60 * MINUTE, 20 * MINUTE, emit="changes")
VISITS = oracle.Session("visits", 10 * MINUTE, emit="on_close")
PAIRS = oracle.Count("pairs", 2)
ALL = oracle.Global("all")
FEW = ["n", "total"]


def become(life: Life, *windows: oracle.Window, few: tuple[str, ...] = ()) -> None:
    """The spec has these windows from now on, those named in `few` with two aggregates.

    So has an oracle that read all there is.
    """
    lab, batches = life.lab, life.batches
    lab.windows = windows
    lab.truth = oracle.Oracle(lab.delay, lab.lateness, 10**15, None, windows, None)
    for batch in batches:
        lab.truth.run(batch, ARRIVAL)
    spec = lab.spec()
    for name in few:
        spec["windows"][name]["aggregates"] = FEW
    lab.pipeline = load_pipeline(spec)


def check(life: Life, few: tuple[str, ...] = ()) -> None:
    """Outputs are the oracle's; of windows in `few` the two aggregates."""
    for window in life.lab.windows:
        found = life.lab.table(window.name)
        wanted = life.lab.expected(window)
        names = ("count", "sum") if window.name in few else next(iter(wanted.values()), {}).keys()
        assert {place: {n: row[n] for n in names} for place, row in found.items()} == {
            place: {n: row[n] for n in names} for place, row in wanted.items()
        }, window


@pytest.fixture(scope="module")
def life(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Life:
    """Three runs of a pipeline with one window of two aggregates; nothing is ever late."""
    root = tmp_path_factory.mktemp("evolve")
    new = Life(
        Lab(
            spark,
            root,
            (HOURLY,),
            delay=10 * MINUTE,
            shows=("n", "total", "mean"),
        )
    )
    become(new, HOURLY, few=("hourly",))
    for _ in range(3):
        new.step()
    check(new, few=("hourly",))
    return new


pytestmark = pytest.mark.deep


STEPS: list[tuple[tuple[str, ...], tuple[oracle.Window, ...], tuple[str, ...]]] = [
    (("evolve.intended", "evolve.kept", "evolve.widened"), (HOURLY, ROLLING), ()),
    (("state.swapped", "evolve.filled"), (HOURLY, ROLLING, VISITS, PAIRS), ()),
    ((), (VISITS, ALL), ()),
    (("evolve.done",), (HOURLY, VISITS, ROLLING), ("visits",)),
]
"""Where the first runs with the new spec end, and its windows.

The last part says which of them have two aggregates only.
"""


@pytest.mark.parametrize(
    ("places", "windows", "few"),
    STEPS,
    ids=[", ".join(step[0]) or "nowhere" for step in STEPS],
)
def test_windows_and_aggregates_come_and_go(
    places: tuple[str, ...], windows: tuple[oracle.Window, ...], few: tuple[str, ...], life: Life
) -> None:
    were, before = parts(life.lab.pipeline), versions(life)
    become(life, *windows, few=few)
    for place in places:
        ends_at(Crasher(place), life.lab.go)
    changed = were ^ parts(life.lab.pipeline)
    assert {*life.lab.go().evolved} == (changed if places != STEPS[-1][0] else set())
    check(life, few)
    written = {name for name, v in versions(life).items() if before.get(name) != v}
    # What has changed is `windows.NAME`, or that and an aggregate of it.
    may_be_written = {
        w.name for w in windows if any(f"windows.{w.name}" in c.split() for c in changed)
    }
    assert written <= may_be_written, "an output that is gone or did not change was written"
    life.step()
    check(life, few)


def parts(pipeline: Pipeline) -> set[str]:
    """The names of its windows and of their aggregates."""
    windows = {f"windows.{w.name}" for w in pipeline.windows}
    return windows | {
        f"windows.{w.name} aggregate {a.name}" for w in pipeline.windows for a in w.aggregates
    }


def versions(life: Life) -> Mapping[str, int]:
    """The version of every output there is."""
    paths = {w.name: life.lab.pipeline.table(w.name) for w in (HOURLY, ROLLING, VISITS, PAIRS, ALL)}
    return {
        name: delta_log.version(life.lab.spark, path)
        for name, path in paths.items()
        if delta.exists(life.lab.spark, path)
    }


def test_a_window_that_is_gone_leaves_its_table_and_an_aggregate_a_column_of_nulls(
    life: Life,
) -> None:
    assert delta.read(life.lab.spark, life.lab.pipeline.table("pairs")).count() > 0
    visits = delta.read(life.lab.spark, life.lab.pipeline.table("visits"))
    assert visits.count() > 0
    assert visits.where("mean is not null or n is null").isEmpty()


def test_what_evolved_can_be_backfilled_validated_and_published(life: Life) -> None:
    _, windows, few = STEPS[-1]
    become(life, *windows, few=few)
    life.lab.go()
    life.lab.backfill(BASE - 600 * MINUTE, BASE + 60 * life.runs * MINUTE)
    check(life, few)
    found = validate(life.lab.spark, life.lab.pipeline)
    assert found.passed, list(found.failed)
    publish(life.lab.pipeline)
    for window in life.lab.windows:
        assert read(life.lab.spark, life.lab.pipeline, window.name).count() == len(
            life.lab.table(window.name)
        )


def spec_with(
    change: Callable[[dict[str, Any]], object],
) -> Callable[[dict[str, Any]], dict[str, Any]]:
    """A change of a spec as a function of it."""

    def changed(spec: dict[str, Any]) -> dict[str, Any]:
        change(spec)
        return spec

    return changed


REFUSED = {
    "size": (
        lambda s: s["windows"]["hourly"].update(size="2 hours"),
        "windows.hourly differ.*under which it fills itself",
    ),
    "aggregate": (lambda s: s["aggregates"].update(total="min(value)"), "aggregate total.* differ"),
    "watermark": (
        lambda s: s["watermark"].update(delay="1 hour"),
        "watermark differ.*; restore them, or give the pipeline a new name",
    ),
    "key": (lambda s: s["source"].update(key=["id"]), "source differ"),
    "type": (
        lambda s: (
            s["windows"].update(pairs={"kind": "count", "count": 2, "aggregates": ["mean"]})
            or s["aggregates"].update(mean="top_k(value, 2)")
        ),
        "aggregate mean",
    ),
    "reused": (
        lambda s: s["windows"].update(pairs={"kind": "global"}),
        "windows.pairs differ.*under which it fills itself",
    ),
    "text": (
        lambda s: s["aggregates"].update(odd="sum(key)"),
        "events that were accepted would be refused now",
    ),
}


@pytest.mark.parametrize("change", REFUSED)
def test_what_has_a_name_stays_what_it_is(change: str, life: Life) -> None:
    lab, (does, sentence) = life.lab, REFUSED[change]
    before, kept = versions(life), lab.pipeline
    lab.pipeline = load_pipeline(spec_with(does)(spec_of(life)))
    with pytest.raises(StateRefused, match=f"SPEC_CHANGED: .*{sentence}.*`tidemark reset lab`"):
        lab.go()
    lab.pipeline = kept
    assert versions(life) == before
    lab.go()


def spec_of(life: Life) -> dict[str, Any]:
    """The spec after the last step."""
    spec = deepcopy(life.lab.spec())
    spec["windows"]["visits"]["aggregates"] = FEW
    return spec


def test_a_run_that_was_left_open_is_finished_by_its_own_spec(life: Life) -> None:
    lab, kept = life.lab, life.lab.pipeline
    life.land()
    ends_at(Crasher("state.stored"), lab.go)
    spec = spec_of(life)
    spec["windows"]["daily"] = {"kind": "tumbling", "size": "1 day"}
    lab.pipeline = load_pipeline(spec)
    with pytest.raises(
        StateRefused,
        match="the spec has changed and run .*: the next run finishes it; "
        "restore the spec, run, then",
    ):
        lab.go()
    lab.pipeline = kept
    lab.go()
    check(life, ("visits",))
