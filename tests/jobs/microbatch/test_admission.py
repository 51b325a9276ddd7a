"""Admission of one batch, on few rows: outcomes and counts are derived by hand from the law.

W is the watermark that the batch is judged by, and L the allowed lateness.
"""

from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from jobs.microbatch.admission import Admitted
from jobs.microbatch.process import keep_accepted_ids
from tests.support.small_lake import (
    SmallLake,
    just_after,
    just_before,
    rows_of,
    small_lake,
    span,
)

TENS = {"kind": "tumbling", "size": "10 minutes"}
TWENTIES = {"kind": "sliding", "size": "20 minutes", "slide": "10 minutes"}
VISITS = {"kind": "session", "gap": "5 minutes"}
IDS = {"event_id": "id"}


def outcomes(admitted: Admitted) -> list[tuple[Any, ...]]:
    """Id, outcome and missed windows of every row."""
    missed = F.array_join(F.array_sort(F.col("__missed")["window"]), " ").alias("missed")
    found = admitted.rows.select("id", "__outcome", missed)
    return rows_of(found, "id", "__outcome", "missed")


def reasons(admitted: Admitted) -> list[tuple[Any, ...]]:
    """Id, outcome and reason of every row."""
    return rows_of(admitted.rows, "id", "__outcome", "__why")


def counts(read: int, accepted: int, **others: int) -> dict[str, int]:
    """The counts of a batch; those that are not named are 0."""
    none = {"late": 0, "duplicate": 0, "quarantined": 0}
    return {"read": read, "accepted": accepted, **none, **others}


@pytest.fixture(scope="module")
def late_for_all(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> SmallLake:
    """Two grid windows with L = 10, without event ids."""
    root = tmp_path_factory.mktemp("grids")
    windows = {"tens": TENS, "twenties": TWENTIES}
    return small_lake(spark, root, windows, lateness="10 minutes", created=())


@pytest.fixture(scope="module")
def visits(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> SmallLake:
    """Sessions with a gap of 5 and L = 0.

    At W = 30 a session is final if its last event + 10 <= 30.
    """
    root = tmp_path_factory.mktemp("visits")
    lake = small_lake(spark, root, {"visits": VISITS}, lateness="0 seconds")
    # [key, start, end, last event, n, total, revision, run]
    lake.fill(
        "visits",
        ("final", 10, 25, 20, 2, 0, 0, 1),
        ("open", 10, 26, 21, 2, 0, 0, 1),
        ("bridged", 10, 26, 21, 2, 0, 0, 1),
    )
    return lake


@pytest.fixture(scope="module")
def copies(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> SmallLake:
    """Ids are stored for 20 minutes; a batch accepted `old` at 9 and `new` at 30."""
    root = tmp_path_factory.mktemp("copies")
    kept = {"dedupe_horizon": "20 minutes"}
    lake = small_lake(
        spark, root, {"tens": TENS}, lateness="10 minutes", source=IDS, watermark=kept, created=()
    )
    first = lake.batch(0)
    keep_accepted_ids(first, lake.admit(first, ("old", "a", 9, 1), ("new", "a", 30, 1)))
    return lake


def test_a_first_load_has_no_late_rows(late_for_all: SmallLake) -> None:
    found = late_for_all.admit(late_for_all.batch(0), ("x", "a", -500, 1), ("y", "a", 900, 2))
    assert outcomes(found) == [("x", "accepted", ""), ("y", "accepted", "")]
    assert found.counts == counts(2, 2)
    assert found.within == span(-500, 900)
    assert found.schema.names == ["id", "key", "ts", "value", "attr", "mark"]


def test_a_row_is_late_when_its_last_windows_ended_the_lateness_before_w(
    late_for_all: SmallLake,
) -> None:
    """W - L = 20. The last window of 9 ends at 20; [10, 30) is open for 10, [20, 30) for 20."""
    batch = late_for_all.batch(1, watermark=30)
    found = late_for_all.admit(
        batch,
        ("a9", "a", 9, 1),
        ("before10", "a", just_before(10), 1),
        ("a10", "a", 10, 1),
        ("before20", "a", just_before(20), 1),
        ("a20", "a", 20, 1),
    )
    assert outcomes(found) == [
        ("a10", "accepted", "tens twenties"),
        ("a20", "accepted", ""),
        ("a9", "late", "tens twenties"),
        ("before10", "late", "tens twenties"),
        ("before20", "accepted", "tens twenties"),
    ]
    more = {"partial": 2, "partial.tens": 2, "partial.twenties": 2}
    assert found.counts == counts(5, 3, late=2, **more)
    assert found.within == span(10, 20)
    assert rows_of(found.accepted, "id") == [("a10",), ("a20",), ("before20",)]


def test_one_minute_less_of_w_makes_the_same_rows_early_enough(late_for_all: SmallLake) -> None:
    """W - L = 19, so no window that ends at 20 is late, but [0, 10) and [-10, 10) are."""
    batch = late_for_all.batch(1, watermark=29)
    found = late_for_all.admit(batch, ("a9", "a", 9, 1), ("a10", "a", 10, 1))
    assert outcomes(found) == [("a10", "accepted", ""), ("a9", "accepted", "tens twenties")]


def test_missed_names_how_far_windows_are_missed(late_for_all: SmallLake) -> None:
    """By W - L = 25 windows up to the end 20 are missed, of both kinds."""
    found = late_for_all.admit(late_for_all.batch(1, watermark=35), ("x", "a", 12, 1))
    missed = found.rows.select(F.explode("__missed").alias("m")).select("m.window", "m.until")
    assert rows_of(missed, "window", "until") == [("tens", 20), ("twenties", 20)]
    assert reasons(found) == [("x", "accepted", "some of its windows had closed")]


@pytest.mark.slow
def test_every_kind_has_its_own_rule_of_lateness(spark: SparkSession, tmp_path: Path) -> None:
    """W - L = 20, and each event has a key of its own.

    cumulate [0, 10), [0, 20), ... [0, 60): those that end by 20 are missed. record_sliding: the
    window that ends with t is [t - 10, t + 1 minute). count: t + 1 us. Sessions: t + 5.
    """
    windows = {
        "hour": {"kind": "cumulate", "max_size": "1 hour", "step": "10 minutes"},
        "recent": {"kind": "record_sliding", "difference": "10 minutes", "tick": "1 minute"},
        "pairs": {"kind": "count", "count": 2},
        "visits": VISITS,
        "capped": {**VISITS, "max_duration": "20 minutes"},
        "all": {"kind": "global"},
    }
    lake = small_lake(spark, tmp_path, windows, lateness="10 minutes", created=("visits", "capped"))
    found = lake.admit(
        lake.batch(1, watermark=30),
        ("at15", "a", 15, 1),
        ("past15", "b", just_after(15), 1),
        ("before20", "c", just_before(20), 1),
        ("at20", "d", 20, 1),
    )
    ended = "hour pairs recent"
    assert outcomes(found) == [
        ("at15", "accepted", "capped hour pairs recent visits"),
        ("at20", "accepted", ""),
        ("before20", "accepted", ended),
        ("past15", "accepted", ended),
    ]
    by_window = {f"partial.{name}": 3 for name in ended.split()}
    by_window |= {"partial.visits": 1, "partial.capped": 1, "partial.all": 0}
    assert found.counts == counts(4, 4, partial=3, **by_window)


def test_a_late_marker_belongs_to_no_window_and_is_accepted(
    spark: SparkSession, tmp_path: Path
) -> None:
    """L = 0: an event of 19 is late at W = 20, because 19 + 1 us <= 20."""
    windows = {"laps": {"kind": "punctuation", "marker": "mark"}}
    lake = small_lake(spark, tmp_path, windows, lateness="0 seconds", created=())
    found = lake.admit(
        lake.batch(1, watermark=20),
        ("event", "a", 19, 1, None, False),
        ("marker", "a", 19, 1, None, True),
        ("unmarked", "a", 20, 1, None, None),
    )
    assert outcomes(found) == [
        ("event", "late", "laps"),
        ("marker", "accepted", "laps"),
        ("unmarked", "accepted", ""),
    ]


def test_events_that_touch_a_final_session_are_late(visits: SmallLake) -> None:
    """The final session spans [10, 20] and is touched by 5 to 25, though 25 + 5 <= 30 anyway.

    26 does not touch it, and 26 + 5 > 30.
    """
    found = visits.admit(
        visits.batch(1, watermark=30),
        ("touches", "final", 25, 1),
        ("beyond", "final", 26, 1),
        ("first", "new", 25, 1),
        ("second", "newer", just_after(25), 1),
    )
    assert outcomes(found) == [
        ("beyond", "accepted", ""),
        ("first", "late", "visits"),
        ("second", "accepted", ""),
        ("touches", "late", "visits"),
    ]
    assert found.counts == counts(4, 2, late=2, partial=0, **{"partial.visits": 0})
    assert found.within == span(just_after(25), 26)


def test_a_final_session_is_a_wall_between_early_events_and_those_behind_it(
    visits: SmallLake,
) -> None:
    """25 touches the final session and is late, so 27 begins a chain of its own: 27 + 5 > 30."""
    found = visits.admit(
        visits.batch(1, watermark=30), ("wall", "final", 25, 1), ("next", "final", 27, 1)
    )
    assert outcomes(found) == [("next", "accepted", ""), ("wall", "late", "visits")]


def test_the_events_of_a_chain_are_late_together(visits: SmallLake) -> None:
    """With the stored session, which ends with 21, 24 makes the chain [10, 24], and 24 + 5 <= 30.

    24 and 26 make [10, 26], and 26 + 5 > 30, so both are accepted.
    """
    found = visits.admit(
        visits.batch(1, watermark=30),
        ("alone", "open", 24, 1),
        ("bridge", "bridged", 24, 1),
        ("far", "bridged", 26, 1),
    )
    assert outcomes(found) == [
        ("alone", "late", "visits"),
        ("bridge", "accepted", ""),
        ("far", "accepted", ""),
    ]


def test_ids_that_were_accepted_are_duplicates_until_their_horizon(copies: SmallLake) -> None:
    """At W = 29 the id of 9 is forgotten, because 9 + 20 <= 29; W - L = 19 makes 12 not late.

    A null id is never a duplicate.
    """
    batch = copies.batch(1, watermark=29)
    found = copies.admit(
        batch,
        ("old", "a", 12, 1),
        ("new", "a", 30, 1),
        (None, "a", 30, 1),
        (None, "a", 30, 1),
    )
    assert reasons(found) == [
        (None, "accepted", None),
        (None, "accepted", None),
        ("new", "duplicate", "id was accepted before"),
        ("old", "accepted", None),
    ]
    assert found.counts == counts(4, 3, duplicate=1, partial=0, **{"partial.tens": 0})


def test_an_id_is_remembered_just_before_its_horizon(copies: SmallLake) -> None:
    found = copies.admit(copies.batch(1, watermark=just_before(29)), ("old", "a", 12, 1))
    assert reasons(found) == [("old", "duplicate", "id was accepted before")]


def test_a_retried_batch_does_not_meet_its_own_ids(copies: SmallLake) -> None:
    found = copies.admit(copies.batch(0), ("old", "a", 9, 1), ("new", "a", 30, 1))
    assert found.counts["accepted"] == 2


def test_of_the_copies_in_a_batch_the_first_that_is_not_late_is_accepted(
    copies: SmallLake,
) -> None:
    """W - L = 20: rows before 20 are late.

    Where all copies of an id are late, all are late.
    """
    found = copies.admit(
        copies.batch(1, watermark=30),
        ("x", "late", 3, 1),
        ("x", "first", 20, 1),
        ("x", "second", 21, 1),
        ("y", "late", 3, 1),
        ("y", "later", 4, 1),
    )
    assert rows_of(found.rows, "id", "key", "__outcome") == [
        ("x", "first", "accepted"),
        ("x", "late", "duplicate"),
        ("x", "second", "duplicate"),
        ("y", "late", "late"),
        ("y", "later", "late"),
    ]
    assert found.within == span(20, 20)


def test_an_id_that_was_accepted_is_a_duplicate_even_where_its_row_is_late(
    copies: SmallLake,
) -> None:
    found = copies.admit(copies.batch(1, watermark=45), ("new", "a", 3, 1))
    assert reasons(found) == [("new", "duplicate", "id was accepted before")]
    assert found.within is None


def test_unusable_rows_are_quarantined_before_anything_else(copies: SmallLake) -> None:
    """They arrive at 1000 and may be 60 minutes ahead; `old` would be a duplicate."""
    found = copies.admit(
        copies.batch(1, watermark=20),
        ("old", "a", None, 1),
        ("keyless", None, 30, 1),
        ("ahead", "a", 1060, 1),
        ("future", "a", just_after(1060), 1),
    )
    assert reasons(found) == [
        ("ahead", "accepted", None),
        ("future", "quarantined", "ts is more than 1 hour ahead of the arrival"),
        ("keyless", "quarantined", "key is null"),
        ("old", "quarantined", "ts is null"),
    ]
    more = {"partial": 0, "partial.tens": 0}
    assert found.counts == counts(4, 1, quarantined=3, **more)
    assert found.within == span(1060, 1060)


@pytest.mark.parametrize(
    ("on_bad_value", "outcome", "reason"),
    [
        ("quarantine", "quarantined", "attr is not a finite number"),
        ("null", "accepted", None),
    ],
)
def test_a_bad_value_quarantines_its_row_unless_the_spec_skips_it(
    spark: SparkSession, tmp_path: Path, on_bad_value: str, outcome: str, reason: str | None
) -> None:
    lake = small_lake(
        spark,
        tmp_path,
        {"tens": TENS},
        aggregates={"most": "max(attr)"},
        source={"on_bad_value": on_bad_value},
        created=(),
    )
    found = lake.admit(
        lake.batch(0), ("bad", "a", 1, 1, float("nan")), ("null", "a", 2, 1), ("ok", "a", 3, 1, 1.0)
    )
    assert reasons(found) == [
        ("bad", outcome, reason),
        ("null", "accepted", None),
        ("ok", "accepted", None),
    ]
    assert found.within == span(1 if reason is None else 2, 3)


def test_a_text_that_only_java_takes_for_a_number_is_a_bad_value(
    spark: SparkSession, tmp_path: Path
) -> None:
    aggregates = {"most": "sum(id)"}
    lake = small_lake(spark, tmp_path, {"tens": TENS}, aggregates=aggregates, created=())
    texts = ("7", " 7.5 ", "-1e3", "7d", "12F ", "0x1p3", "1.f")
    found = lake.admit(lake.batch(0), *((text, "a", n, 1) for n, text in enumerate(texts)))
    accepted = [text for text, outcome, _ in reasons(found) if outcome == "accepted"]
    assert sorted(accepted) == [" 7.5 ", "-1e3", "7"]


def test_rows_without_an_attribute_are_in_no_delta_window(
    spark: SparkSession, tmp_path: Path
) -> None:
    windows = {"climb": {"kind": "delta", "attribute": "attr", "delta": 10}}
    lake = small_lake(spark, tmp_path, windows, source={"on_bad_value": "null"}, created=())
    found = lake.admit(
        lake.batch(0), ("nan", "a", 1, 1, float("nan")), ("null", "a", 2, 1), ("ok", "a", 3, 1, 1.0)
    )
    assert reasons(found) == [
        ("nan", "quarantined", "attr is not a finite number"),
        ("null", "quarantined", "attr is null"),
        ("ok", "accepted", None),
    ]
    assert found.counts == counts(3, 1, quarantined=2)


def test_rows_that_are_no_events_are_not_read_and_lost_answers_are_counted(
    spark: SparkSession, tmp_path: Path
) -> None:
    """`where` is false for -1 and, since the id is no number, null for `word`."""
    source = {"columns": {"number": "cast(id as bigint)"}, "where": "number > 0"}
    lake = small_lake(spark, tmp_path, {"tens": TENS}, source=source, created=())
    found = lake.admit(
        lake.batch(0), ("1", "a", 1, 1), ("-1", "a", 2, 1), ("word", "a", 3, 1), (None, "a", 4, 1)
    )
    assert outcomes(found) == [("1", "accepted", "")]
    assert found.counts == counts(1, 1, **{"null(source.where)": 1})
    assert found.schema.names == ["id", "key", "ts", "value", "attr", "mark", "number"]
    assert found.within == span(1, 1)


def test_events_can_happen_when_they_arrive(spark: SparkSession, tmp_path: Path) -> None:
    source = {"event_time": "arrival"}
    lake = small_lake(spark, tmp_path, {"tens": TENS}, source=source, created=())
    found = lake.admit(lake.batch(0), ("x", "a", 1, 1), ("y", "a", None, 1))
    assert found.counts == counts(2, 2)
    assert found.within == span(1000, 1000)
