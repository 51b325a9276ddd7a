"""How much a run has to read, and after how many bytes one of its batches ends."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from windowing.source.backlog import Backlog, find_byte_limit, gather_backlog
from windowing.spec.pipeline import BatchBound
from windowing.storage.file_figures import FileFigures


def file(rows: int | None, size: int, low_us: int | None = 0) -> FileFigures:
    return FileFigures(rows, low_us, low_us, size)


def taken(files: list[FileFigures], limit: int) -> list[list[FileFigures]]:
    """The batches that Delta makes: each ends with the file that reaches the limit."""
    batches: list[list[FileFigures]] = [[]]
    for each in files:
        if sum(f.bytes for f in batches[-1]) >= limit:
            batches.append([])
        batches[-1].append(each)
    return batches


sizes = st.integers(1, 10**6)
files = st.lists(st.builds(file, st.integers(0, 10**5), sizes), min_size=1, max_size=30)


@given(files, st.integers(1, 10**6))
def test_no_batch_goes_on_once_it_has_the_rows(found: list[FileFigures], rows: int) -> None:
    limit = find_byte_limit(Backlog(tuple(found)), BatchBound(rows=rows))
    if limit is None:
        assert not any(f.rows for f in found)
        return
    for batch in taken(found, limit):
        assert sum(f.rows or 0 for f in batch[:-1]) < rows


@given(files, st.integers(1, 10**9), st.integers(1, 10**9))
def test_the_bound_that_is_reached_first_counts(
    found: list[FileFigures], rows: int, size: int
) -> None:
    backlog = Backlog(tuple(found))
    both = find_byte_limit(backlog, BatchBound(rows, size))
    alone = [find_byte_limit(backlog, b) for b in (BatchBound(rows), BatchBound(bytes=size))]
    assert both == min(limit for limit in alone if limit is not None)


def test_equal_files_make_equal_batches() -> None:
    found = [file(200, 1_000 + n % 3) for n in range(15)]
    for rows, batches in ((200, 15), (400, 8), (600, 5), (3_000, 1)):
        limit = find_byte_limit(Backlog(tuple(found)), BatchBound(rows=rows))
        assert limit is not None
        assert len(taken(found, limit)) == batches


def test_rows_bind_nothing_where_a_file_does_not_tell_its_own() -> None:
    unknown = Backlog((file(5, 10), file(None, 10)))
    assert find_byte_limit(unknown, BatchBound(rows=1)) is None
    assert find_byte_limit(unknown, BatchBound(rows=1, bytes=7)) == 7
    assert not unknown.fits(BatchBound(rows=10**9))
    assert unknown.fits(BatchBound(bytes=20))
    assert not unknown.fits(BatchBound(bytes=19))


@pytest.mark.parametrize(
    ("lows", "low"), [([3, 1], 1), ([3, None], None), ([], None), ([None], None)]
)
def test_a_time_is_the_first_if_each_file_tells_its_own(
    lows: list[int | None], low: int | None
) -> None:
    empty = FileFigures(0, None, None, 5)
    assert Backlog((*(file(2, 1, low_us) for low_us in lows), empty)).low_us == low


def add(rows: int, size: int, **more: Any) -> dict[str, Any]:
    stats = {"numRecords": rows, "minValues": {"at": "1970-01-01T00:00:01.000Z"}}
    stats["maxValues"] = {"at": "1970-01-01T00:00:02.000Z"}
    found = {"path": f"{rows}", "size": size, "stats": json.dumps(stats), "dataChange": True}
    return {"add": {**found, **more}}


def test_commits_tell_what_they_added() -> None:
    removed = {"remove": {"path": "a", "dataChange": True}}
    texts = [[add(1, 10), add(2, 20)], [add(99, 5, dataChange=False)], [add(3, 30)]]
    lines = ["\n".join(map(json.dumps, actions)) for actions in texts]
    plain = gather_backlog(lines, "at")
    assert (plain.bytes, plain.rows, plain.low_us, plain.rewrites) == (60, 6, 10**6, False)
    assert gather_backlog([*lines, json.dumps(removed)], "at").rewrites
    both = plain + gather_backlog([json.dumps(removed)], "at")
    assert (both.rows, both.rewrites) == (6, True)
