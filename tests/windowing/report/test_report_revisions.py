"""What rows of an output say of corrections: plain loops over the same rows say the same."""

from collections.abc import Sequence
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from windowing.ledger.history import LedgerHistory
from windowing.ledger.rule import BACKFILL_DONE, CLOSE, ERASE_DONE, EVOLVE_DONE, LedgerEntry
from windowing.report.ages import EDGES, count_ages
from windowing.report.kept_rows import list_watermarks
from windowing.report.revisions import (
    MOST_REVISED,
    choose_width,
    draw_shape,
    find_picked,
    measure_revisions,
    pick_most_revised,
    tell_history,
)
from windowing.spec.duration import DAY, HOUR, MINUTE

SCHEMA = pa.schema(
    [
        ("shop", pa.string()),
        ("window_start", pa.int64()),
        ("window_end", pa.int64()),
        ("revision", pa.int64()),
        ("run", pa.int64()),
        ("n", pa.int64()),
    ]
)
IDENTITY = ("shop", "window_start", "window_end")
WATERMARKS = {1: None, 2: 10 * HOUR, 3: 50 * HOUR}
TIMES = st.one_of(st.none(), st.integers(-60, 60).map(lambda n: n * HOUR))


def rows_of(*rows: Sequence[Any]) -> pa.Table:
    return pa.Table.from_pylist(
        [dict(zip(SCHEMA.names, row, strict=True)) for row in rows], schema=SCHEMA
    )


@given(st.lists(st.tuples(TIMES, st.integers(0, 3), st.integers(1, 4))))
def test_corrections_are_counted_by_how_long_their_window_had_ended(
    rows: list[tuple[int | None, int, int]],
) -> None:
    table = rows_of(*(("a", 0, end, revision, run, 1) for end, revision, run in rows))
    back, open_rows, unknown = [], 0, 0
    for end, revision, run in rows:
        if revision == 0:
            continue
        if end is None or run == 4:
            unknown += 1
        elif WATERMARKS[run] is None or end > WATERMARKS[run]:
            open_rows += 1
        else:
            back.append(WATERMARKS[run] - end)
    found = measure_revisions(table, WATERMARKS)
    assert (found.back, found.open_rows, found.unknown_rows) == (
        count_ages(back),
        open_rows,
        unknown,
    )


def test_a_window_that_ends_at_the_watermark_had_ended() -> None:
    found = measure_revisions(rows_of(("a", 0, 10 * HOUR, 1, 2, 1)), WATERMARKS)
    assert (found.back.bars[0], found.open_rows) == (1, 0)


@pytest.mark.parametrize("step", [BACKFILL_DONE, EVOLVE_DONE, ERASE_DONE])
def test_a_run_after_which_an_output_was_updated_dates_no_row_of_that_output(step: str) -> None:
    closed = [LedgerEntry(CLOSE, run=run, watermark_in=run * HOUR) for run in (1, 2)]
    updated = LedgerEntry(step, run=2, counts={"hourly.updated": 1, "daily.inserted": 1})
    past = LedgerHistory((*closed, updated))
    assert list_watermarks(past, "hourly") == {1: HOUR}
    assert list_watermarks(past, "daily") == {1: HOUR, 2: 2 * HOUR}, "new rows are no revised ones"


@given(st.lists(st.integers(0, 400 * DAY)))
def test_every_length_lies_in_the_bar_whose_edge_it_does_not_exceed(lengths: list[int]) -> None:
    found = count_ages(lengths)
    for place, edge in enumerate(EDGES):
        assert sum(found.bars[: place + 1]) == sum(length <= edge for length in lengths)
    assert found.total == len(lengths)
    for share, within in found.within.items():
        assert within in lengths
        covered = sum(length <= within for length in lengths)
        assert covered * 100 >= share * len(lengths)
        fewer = sum(length < within for length in lengths)
        assert fewer * 100 < share * len(lengths), "and no shorter length would be enough"


def test_windows_of_highest_revision_are_followed_through_versions_newest_run_first() -> None:
    newest = rows_of(
        ("a", 0, HOUR, 2, 3, 30),
        ("b", 0, HOUR, 0, 1, 9),
        ("b", HOUR, 2 * HOUR, 2, 2, 7),
        ("c", 0, HOUR, 1, 3, 5),
    )
    picked = pick_most_revised(newest, IDENTITY)
    assert [row["shop"] for row in picked.rows] == ["a", "b", "c"]
    versions = [
        rows_of(("a", 0, HOUR, 0, 1, 10), ("b", 0, HOUR, 0, 1, 9)),
        rows_of(("a", 0, HOUR, 1, 2, 20), ("b", HOUR, 2 * HOUR, 2, 2, 7)),
        rows_of(("a", 0, HOUR, 1, 2, 20), ("b", HOUR, 2 * HOUR, 2, 2, 7)),
        newest,
    ]
    found = [find_picked(picked, version) for version in versions]
    first, second, third = tell_history(picked, found, ["shop"], ["n"], None)
    assert [(was.run, was.revision, was.values["n"]) for was in first.history] == [
        (1, 0, 10),
        (2, 1, 20),
        (3, 2, 30),
    ]
    assert (first.key, first.place) == ({"shop": "a"}, "[1970-01-01 00:00Z, 01:00Z)")
    assert [was.values["n"] for was in second.history] == [7]
    assert [was.revision for was in third.history] == [1]
    without = tell_history(picked, found, [], [], "Asia/Tokyo")
    assert without[0].place == "[1970-01-01 09:00+09:00, 10:00+09:00)"
    assert {tuple(each.key) for each in without} == {()}
    assert {was.values.get("n") for each in without for was in each.history} == {None}


def test_at_most_a_few_windows_are_followed() -> None:
    many = rows_of(*((str(n), 0, HOUR, n, 1, 1) for n in range(20)))
    picked = pick_most_revised(many, IDENTITY)
    assert [row["revision"] for row in picked.rows] == [*range(19, 19 - MOST_REVISED, -1)]
    assert pick_most_revised(many.slice(0, 1), IDENTITY).rows == ()


@pytest.mark.parametrize(
    ("key", "kind"),
    [(None, pa.string()), (1.5, pa.float64()), (b"x", pa.binary()), (True, pa.bool_())],
)
def test_a_window_is_found_by_a_key_of_any_type(key: object, kind: pa.DataType) -> None:
    schema = SCHEMA.set(0, pa.field("shop", kind))
    row = dict(zip(SCHEMA.names, (key, 0, HOUR, 1, 1, 4), strict=True))
    table = pa.Table.from_pylist([row], schema=schema)
    picked = pick_most_revised(table, IDENTITY)
    assert list(find_picked(picked, table).values()) == [row]


@given(st.lists(TIMES), st.one_of(st.none(), st.lists(TIMES)))
def test_a_shape_counts_every_row_that_has_a_start(
    newest: list[int | None], published: list[int | None] | None
) -> None:
    def table_of(starts: list[int | None]) -> pa.Table:
        return rows_of(*(("a", start, None, 0, 1, 1) for start in starts))

    seen = None if published is None else table_of(published)
    shape = draw_shape(table_of(newest), seen)
    known = [start for start in newest if start is not None]
    shown = [start for start in published or () if start is not None]
    if shape is None:
        assert known == shown == []
        return
    assert list(shape.starts_us) == sorted(
        {s // shape.width_us * shape.width_us for s in known + shown}
    )
    assert sum(shape.newest) == len(known)
    assert shape.published is None if published is None else sum(shape.published) == len(shown)
    for start, rows in zip(shape.starts_us, shape.newest, strict=True):
        assert rows == sum(start <= each < start + shape.width_us for each in known)


@given(st.integers(0, 10**18))
def test_a_shape_has_about_a_hundred_stretches(span: int) -> None:
    width = choose_width(span)
    assert span <= 100 * width
    assert width == MINUTE or span > 19 * width, "no width is much longer than it needs to be"
