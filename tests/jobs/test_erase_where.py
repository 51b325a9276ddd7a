"""An erased value of a column that is no key is nowhere, and windows are as if it had never been.

The oracle says what they are. That is so also where the erasure was interrupted, and in whatever
comes afterwards.
"""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from jobs.backfill import backfill
from jobs.erase import erase, lift_erasure
from jobs.publish import publish
from jobs.read import read
from jobs.run import follow_rewrites, run
from jobs.validate import validate
from tests import oracle
from tests.oracle import Event
from tests.support.changing_source import Changing
from tests.support.command_line import run_command
from tests.support.erased_canary import CANARY, LEFT, WINDOWS
from tests.support.long_lived_pipeline import BASE, MINUTE, Crasher, ends_at
from tests.support.pipeline_under_test import FEW, SCHEMA, Lab
from tests.support.session_settings import setting_changed
from tests.support.stored_rows import list_stored
from windowing.errors import StateRefused, UsageError
from windowing.grid.zone import moment
from windowing.ledger.erased import Erasing
from windowing.ledger.rule import ERASE_LIST
from windowing.ledger.table import read_history
from windowing.report.table import read_facts
from windowing.spec.load import load_pipeline
from windowing.storage import delta_log

OTHER = "somebody"
MARK = 7
"""The order of the canary's events, by which the oracle knows them."""
REFUSED = ("_late", "_duplicates", "_quarantine")


@dataclass
class Shop(Lab):
    """A lab whose rows have a customer, who is no key, and whose outputs list the customers."""

    schema: str = f"{SCHEMA}, customer string"

    def spec(self) -> dict[str, Any]:
        """The lab's, with the list."""
        spec = super().spec()
        return spec | {"aggregates": {**spec["aggregates"], "who": "collect(customer)"}}

    def land_of(self, customer: str, key: str, *events: tuple[str, int | None]) -> list[Event]:
        """Appends events of a customer, each an id and a minute or no time."""
        self.more = {"customer": customer}
        order = MARK if customer == CANARY else 1
        found = []
        for event_id, minute in events:
            at = None if minute is None else BASE + minute * MINUTE
            found.append(Event(key, at, 1, event_id, order))
        return self.land(found)

    def erase_canary(self) -> None:
        """The canary is erased, in the oracle too."""
        self.truth.erase(MARK, "order")
        erase(self.spark, self.pipeline, Erasing({"customer": CANARY}, "customer"))


def places(lab: Lab) -> list[str]:
    """Every file of the pipeline that contains the canary, but those of the removed window."""
    found = []
    for path in lab.pipeline.root.local.rglob("*"):
        if path.is_file() and "left" not in path.parts and CANARY.encode() in path.read_bytes():
            found.append(path.name)
    return found


def customers(lab: Lab, table: str) -> set[Any]:
    """The customers of refused rows."""
    return {row["customer"] for row in list_stored(lab.spark, lab.pipeline.table(table))}


@pytest.fixture(scope="module")
def shop(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Shop:
    """Two published runs, with the canary on time, late, partly late, duplicate and quarantined."""
    root = tmp_path_factory.mktemp("erase-where")
    lab = Shop(spark, root, (*WINDOWS, LEFT), 60 * MINUTE, 10 * MINUTE, shows=FEW)
    first = lab.land_of(CANARY, "a", ("c0", 3), ("c1", 12), ("c2", 181))
    first += lab.land_of(CANARY, "b", ("c3", 7))
    first += lab.land_of(OTHER, "a", ("o0", 0), ("o1", 21), ("o2", 180))
    lab.run_over(first)
    second = lab.land_of(CANARY, "a", ("c4", 1), ("c5", 100), ("c0", 3), ("c6", None), ("c7", 199))
    second += lab.land_of(OTHER, "a", ("o3", 2), ("o4", 101), ("o5", 200), ("c1", 12))
    lab.run_over(second)
    lab.respecify(WINDOWS)
    (lab.root / "lab.yaml").write_text(json.dumps(lab.spec()))
    lab.run_over([])
    lab.check()
    validate(spark, lab.pipeline)
    publish(lab.pipeline)
    return lab


@pytest.mark.slow
def test_a_value_is_nowhere_any_more(shop: Shop, spark: SparkSession) -> None:
    assert all(CANARY in customers(shop, table) for table in REFUSED)
    assert places(shop)
    ends_at(Crasher("state.swapped"), shop.erase_canary)
    left = read_facts(shop.pipeline, lambda: spark).unfinished
    assert left == ("the rebuild of an erasure", "an erasure")
    shop.go()
    shop.check()
    assert CANARY in customers(shop, "_late"), "a run finishes the rebuild, and nothing else"
    result = run_command(shop, "erase", "--where", f"customer={CANARY}", "--yes", "--json")
    assert result.exit_code == 0, result.output
    done = json.loads(result.stdout)
    assert {table: done["rows"][table] for table in REFUSED} == dict(
        zip(REFUSED, (2, 1, 1), strict=True)
    )
    assert done["resumed"] and done["left_tables"] == ["left"]
    assert done["source_rows"] == sum(e.order == MARK for e in shop.landed) == 9
    assert "Not erased: 9 rows with it in" in result.stderr
    assert "Not erased: what left counted of it" in result.stderr
    assert CANARY not in result.stderr
    delta_log.forget_all(spark)
    shop.check()
    assert places(shop) == []
    ids = {row["event_id"] for row in list_stored(spark, shop.pipeline.table("_seen"))}
    assert ids == {"o0", "o1", "o2", "o4", "o5"}
    for window in WINDOWS:
        assert read(spark, shop.pipeline, window.name).count() == len(shop.table(window.name))
    assert validate(spark, shop.pipeline).passed


@pytest.mark.slow
def test_an_erasure_reports_what_it_rebuilds(spark: SparkSession, tmp_path: Path) -> None:
    lab = Shop(spark, tmp_path, WINDOWS[:1], shows=("n",))
    fresh = lab.land_of(CANARY, "a", ("c0", 3)) + lab.land_of(CANARY, "b", ("c1", 4))
    lab.run_over(fresh + lab.land_of(OTHER, "b", ("o0", 5)))
    lab.truth.erase(MARK, "order")
    done = erase(spark, lab.pipeline, Erasing({"customer": CANARY}, "customer"))
    assert done.rows["_seen"] == 2 and not done.resumed and done.left_tables == ()
    assert done.as_json()["windows"] == {
        "hourly": {"inserted": 0, "updated": 1, "deleted": 1, "restated": 0}
    }
    lab.check()
    (hourly,) = read_facts(lab.pipeline, lambda: spark).outputs
    steps = [step for step, change in hourly.changes]
    assert steps[:2] == ["erasure", "erasure"], "that of the rebuild, and that of what is deleted"
    assert read_history(lab.pipeline).total("accepted") == 1
    assert validate(spark, lab.pipeline).passed


@pytest.mark.slow
def test_the_next_run_keeps_the_value_out(shop: Shop) -> None:
    """It is neither late nor quarantined there, and moves no watermark."""
    fresh = shop.land_of(CANARY, "a", ("d0", 205), ("d1", 4), ("d2", None), ("d3", 900))
    fresh += shop.land_of(CANARY, "new", ("d4", 206))
    fresh += shop.land_of(OTHER, "a", ("p0", 207), ("c2", 208))
    report = shop.run_over(fresh)
    assert (report.accepted, report.erased) == (2, 5)
    shop.check()
    assert places(shop) == []


@pytest.mark.slow
def test_a_backfill_and_a_changed_spec_leave_the_value_out(shop: Shop) -> None:
    start, end = BASE, BASE + 300 * MINUTE
    erased = sum(e.order == MARK and e.t is not None and start <= e.t < end for e in shop.landed)
    assert shop.backfill(start, end, shop.truth.arrival or 0).erased == erased == 11
    shop.check()
    shop.respecify((*WINDOWS, oracle.Sliding("added", 60 * MINUTE, 20 * MINUTE)))
    shop.run_over([])
    shop.check()
    assert places(shop) == []


@pytest.mark.slow
def test_the_value_is_read_again_once_that_is_lifted(shop: Shop) -> None:
    (shop.root / "lab.yaml").write_text(json.dumps(shop.spec()))
    entries = len(read_history(shop.pipeline).entries)
    for value, lifted in (("nobody", False), (CANARY, True), (CANARY, False)):
        result = run_command(shop, "erase", "--where", f"customer={value}", "--lift", "--json")
        assert result.exit_code == 0, result.output
        assert json.loads(result.stdout) == {"pipeline": "lab", "lifted": lifted}
        said = "this value count again" if lifted else "this value was not erased, so nothing was"
        assert said in result.stderr
    assert len(read_history(shop.pipeline).entries) == entries + 1
    shop.truth.lift(MARK, "order")
    assert shop.run_over(shop.land_of(CANARY, "a", ("e0", 209))).accepted == 1
    shop.check()


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (("--where", "customer"), "--where 'customer' names no value; write COLUMN=VALUE"),
        (("--where", "customer=x", "--key", "a"), "erase takes one key or one value of lab"),
        (("--where", "customer=x", "--where", "seq=1"), "erase takes one key or one value of lab"),
        (("--where", "key=a", "--yes"), "--where: 'key' is the key of lab; give --key instead"),
        (
            ("--where", "custmer=x", "--yes"),
            "--where: the source of lab has no column 'custmer'; it has ",
        ),
        (("--where", "value=x", "--yes"), "--where: 'x' is not a value of 'value', which is of"),
        (("--where", "customer=x"), "erase would delete all rows of one value and every older"),
    ],
)
def test_wrong_questions(words: tuple[str, ...], sentence: str, shop: Shop) -> None:
    before = read_history(shop.pipeline).entries
    result = run_command(shop, "erase", *words)
    assert (result.exit_code, result.stdout) == (2, "")
    assert sentence in result.stderr and result.stderr.count("\n") == 1
    assert read_history(shop.pipeline).entries == before


KILLED_AT = (
    ("evolve.intended", 1),
    ("evolve.widened", 1),
    ("state.swapped", 2),
    ("output.corrected", 1),
    ("evolve.filled", 1),
    ("evolve.done", 1),
    ("erase.deleted", 1),
    ("erase.deleted", 7),
    ("publish.noted", 1),
    ("publish.pointed", 1),
    ("erase.vacuumed", 1),
    ("erase.done", 1),
)


COMES = (
    *((*place, "erase") for place in KILLED_AT),
    *((*place, "run") for place in KILLED_AT[::3]),
    *((*place, "backfill") for place in KILLED_AT[1::4]),
    *((*place, "erase of a key") for place in KILLED_AT[::4]),
)
"""Where an erasure ends, and what comes before it is finished."""


@pytest.mark.deep
@pytest.mark.parametrize(("place", "nth", "comes"), COMES)
def test_an_erasure_that_ends_anywhere_leads_to_the_same_end(
    place: str, nth: int, comes: str, spark: SparkSession, tmp_path: Path
) -> None:
    lab = Shop(spark, tmp_path, WINDOWS, 60 * MINUTE, 10 * MINUTE, shows=FEW)
    first = lab.land_of(CANARY, "a", ("c0", 3), ("c1", 12), ("c2", 181))
    first += lab.land_of(OTHER, "a", ("o0", 0), ("o1", 21), ("o2", 180))
    first += lab.land_of(OTHER, "z", ("o6", 5))
    lab.run_over(first)
    lab.run_over(lab.land_of(CANARY, "a", ("c4", 1), ("c5", 100), ("c0", 3), ("c6", None)))
    validate(spark, lab.pipeline)
    publish(lab.pipeline)
    ends_at(Crasher(place, nth), lab.erase_canary)
    if comes in ("run", "backfill"):
        fresh = lab.land_of(CANARY, "a", ("d0", 190)) + lab.land_of(OTHER, "a", ("p0", 8))
        assert lab.run_over(fresh).erased == 1
        if comes == "backfill":
            lab.backfill(BASE, BASE + 60 * MINUTE, lab.truth.arrival or 0)
        lab.check()
        validate(spark, lab.pipeline)
        publish(lab.pipeline)
    if comes == "erase of a key":
        lab.truth.erase("z")
        erase(spark, lab.pipeline, Erasing({"key": "z"}))
    else:
        erase(spark, lab.pipeline, Erasing({"customer": CANARY}, "customer"))
    delta_log.forget_all(spark)
    lab.check()
    assert places(lab) == []
    assert not read_history(lab.pipeline).is_open
    assert read_history(lab.pipeline).total("accepted") == len(lab.truth.accepted)
    assert validate(spark, lab.pipeline).passed
    assert read(spark, lab.pipeline, "hourly").count() == len(lab.table("hourly"))


@pytest.mark.deep
def test_a_value_is_erased_before_anything_is_read(spark: SparkSession, tmp_path: Path) -> None:
    lab = Shop(spark, tmp_path, WINDOWS[:1], shows=("n",))
    fresh = lab.land_of(CANARY, "a", ("c0", 3)) + lab.land_of(OTHER, "a", ("o0", 5))
    lab.erase_canary()
    assert not erase(spark, lab.pipeline, Erasing({"customer": CANARY}, "customer")).rows
    assert [entry.step for entry in read_history(lab.pipeline).entries] == [ERASE_LIST]
    assert lab.run_over(fresh).erased == 1
    lab.check()


@pytest.mark.deep
def test_a_value_and_a_key_are_erased_by_their_own_digests(
    spark: SparkSession, tmp_path: Path
) -> None:
    """The key is called as the customer is, and the other way round."""
    lab = Shop(spark, tmp_path, WINDOWS[:1], shows=("n",))
    lab.run_over(lab.land_of(CANARY, OTHER, ("c0", 3)) + lab.land_of(OTHER, CANARY, ("o0", 5)))
    lab.erase_canary()
    lab.check()
    assert {place[0] for place in lab.table("hourly")} == {CANARY}
    lab.truth.erase(CANARY)
    erase(spark, lab.pipeline, Erasing({"key": CANARY}))
    assert lab.table("hourly") == {}
    lab.check()


@pytest.mark.deep
def test_where_events_happen_when_they_arrive_only_a_key_can_be_erased(
    spark: SparkSession, tmp_path: Path
) -> None:
    lab = Shop(spark, tmp_path, WINDOWS[:1], shows=("n",))
    spec = lab.spec()
    source = {name: spec["source"][name] for name in ("table", "key", "event_id")}
    lab.pipeline = load_pipeline(spec | {"source": {**source, "event_time": "arrival"}})
    lab.land_of(CANARY, "a", ("c0", 3))
    lab.go()
    before = read_history(lab.pipeline).entries
    with pytest.raises(UsageError, match="events happen when they arrive .* only a key can be"):
        erase(spark, lab.pipeline, Erasing({"customer": CANARY}, "customer"))
    assert read_history(lab.pipeline).entries == before


@pytest.mark.deep
def test_a_change_that_was_left_out_is_reprocessed_before(
    spark: SparkSession, tmp_path: Path
) -> None:
    lab = Changing(spark, tmp_path, WINDOWS[:1], shows=FEW, feed=False)
    events = [Event("a", BASE + n * 2880 * MINUTE, n, f"e{n}") for n in range(3)]
    lab.land(events)
    lab.go()
    lab.sql("update {} set value = value + 10 where seq = 0")
    until = BASE + 60 * MINUTE
    follow_rewrites(spark, lab.pipeline, moment(BASE), moment(until))
    before = read_history(lab.pipeline).entries
    with pytest.raises(UsageError, match="was left out, so windows can't be rebuilt .*backfill"):
        erase(spark, lab.pipeline, Erasing({"value": "10"}, "value"))
    spec = lab.spec()
    more = {"half": {"kind": "tumbling", "size": "30 minutes"}}
    grown = load_pipeline(spec | {"windows": spec["windows"] | more})
    with pytest.raises(StateRefused, match="SPEC_CHANGED.*left out, and a rebuild would apply it"):
        run(spark, grown)
    assert read_history(lab.pipeline).entries == before
    backfill(spark, lab.pipeline, moment(BASE), moment(events[-1].t or 0))
    backfill(spark, lab.pipeline, moment(events[-1].t or 0), moment((events[-1].t or 0) + MINUTE))
    erase(spark, lab.pipeline, Erasing({"value": "10"}, "value"))
    lab.sql("delete from {} where value = 10")
    lab.holds_what_the_source_does()


@pytest.mark.deep
def test_a_source_that_lacks_what_was_read_is_named_before_anything_is_changed(
    spark: SparkSession, tmp_path: Path
) -> None:
    lab = Shop(spark, tmp_path, WINDOWS[:1], shows=("n",))
    lab.run_over(lab.land_of(CANARY, "a", ("c0", 3)) + lab.land_of(OTHER, "a", ("o0", 5)))
    table = f"delta.`{lab.root}/source`"
    spark.sql(f"optimize {table}")
    with setting_changed(spark, "spark.databricks.delta.retentionDurationCheck.enabled", "false"):
        spark.sql(f"vacuum {table} retain 0 hours")
    before = read_history(lab.pipeline).entries
    newer = "`tidemark run lab`, if the source has something new, and erase again"
    advised = f"SOURCE_VACUUMED: .*have been vacuumed; {newer}; or `tidemark reset lab`"
    with pytest.raises(StateRefused, match=advised):
        erase(spark, lab.pipeline, Erasing({"customer": CANARY}, "customer"))
    assert read_history(lab.pipeline).entries == before
    lab.check()
    lab.run_over(lab.land_of(OTHER, "a", ("o1", 6)))
    lab.erase_canary()
    lab.check()
    lift_erasure(spark, lab.pipeline, Erasing({"customer": CANARY}, "customer"))
    lab.truth.lift(MARK, "order")
    lab.backfill(BASE, BASE + 60 * MINUTE, lab.truth.arrival or 0)
    lab.check()
