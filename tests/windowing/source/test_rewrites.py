"""What the log tells of commits that removed rows."""

import json
from typing import Any

from windowing.grid.range import Range
from windowing.source.rewrites import Rewrite, cover_rewrites, find_rewrites
from windowing.storage.file_figures import FileFigures

OF_HOUR = 3_600_000_000
"""Microseconds."""


def stats(rows: int, low: str, high: str) -> str:
    return json.dumps({"numRecords": rows, "minValues": {"at": low}, "maxValues": {"at": high}})


def add(path: str, rows: int, low: str, high: str, **more: Any) -> dict[str, Any]:
    return {"add": {"path": path, "dataChange": True, "stats": stats(rows, low, high), **more}}


def remove(path: str, **more: Any) -> dict[str, Any]:
    return {"remove": {"path": path, "dataChange": True, **more}}


def commit(operation: str, *actions: dict[str, Any]) -> str:
    info = {"commitInfo": {"operation": operation}}
    return "\n".join(json.dumps(action) for action in (info, *actions))


def at(hour: int) -> str:
    return f"1970-01-01T{hour:02}:00:00.000Z"


def test_a_removed_file_is_known_from_the_version_before_or_from_a_commit_since() -> None:
    texts = [
        (5, commit("WRITE", add("b%20c", 3, at(5), at(6)))),
        (6, commit("DELETE", remove("a"), add("a2", 8, at(1), at(2)))),
        (7, commit("UPDATE", remove("b%20c"), add("b2", 3, at(5), at(9)))),
    ]
    before = {"a": FileFigures(10, 0, 2 * OF_HOUR)}
    assert find_rewrites(texts, before, "at") == (
        Rewrite(6, "DELETE", 2, Range(0, 2 * OF_HOUR)),
        Rewrite(7, "UPDATE", 0, Range(5 * OF_HOUR, 9 * OF_HOUR)),
    )


def test_a_file_without_statistics_may_be_of_any_time() -> None:
    texts = [(1, commit("DELETE", remove("a"), add("b", 1, at(1), at(1))))]
    (found,) = find_rewrites(texts, {}, "at")
    assert (found.fewer, found.within) == (None, None)
    assert cover_rewrites([found]) is None
    known = Rewrite(2, "DELETE", 1, Range(0, 5))
    assert cover_rewrites([known, found]) is None
    # Statistics name times to the millisecond.
    assert cover_rewrites([known, Rewrite(3, "DELETE", 1, Range(7, 9))]) == Range(0, 1_009)


def test_marked_rows_are_not_counted_and_optimize_rewrites_nothing() -> None:
    marks = {"deletionVector": {"cardinality": 4}}
    more = {"deletionVector": {"cardinality": 6}}
    unchanged = {"dataChange": False}
    texts = [
        (1, commit("DELETE", remove("a"), add("a", 10, at(0), at(2), **marks))),
        (2, commit("OPTIMIZE", remove("a", **unchanged), add("o", 6, at(0), at(2), **unchanged))),
        (3, commit("DELETE", remove("o"), add("o", 6, at(0), at(2), **more))),
    ]
    before = {"a": FileFigures(10, 0, 2 * OF_HOUR)}
    found = find_rewrites(texts, before, "at")
    assert [(each.version, each.fewer) for each in found] == [(1, 4), (3, 6)]


def test_local_times_and_texts_show_no_instant() -> None:
    texts = [(1, commit("DELETE", remove("a"), add("b", 1, "1970-01-01T01:00:00", "x")))]
    (found,) = find_rewrites(texts, {"a": FileFigures(1, 0, 0)}, "at")
    assert found.within is None
