"""Plain tables: which ones are, what is listed, appended and merged; the model is a dict."""

import os
from collections.abc import Mapping
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable, write_deltalake
from hypothesis import given, settings
from hypothesis import strategies as st

from windowing import plain_table
from windowing.errors import Busy
from windowing.plain_table import Clauses, File, PlainTable

SECOND = 1_000_000
STATISTICS = {"delta.dataSkippingStatsColumns": "begin", "delta.enableChangeDataFeed": "true"}
INSTANT = pa.timestamp("us", "UTC")
COLUMNS = pa.schema([("Key", pa.string()), ("begin", INSTANT), ("n", pa.int64())])
OP = pa.field("op", pa.string())
Stored = dict[tuple[str, int], int]


def make(path: Path, properties: Mapping[str, str] = STATISTICS) -> str:
    """An empty table with the columns of COLUMNS."""
    DeltaTable.create(str(path), COLUMNS, configuration=dict(properties))
    return str(path)


def open_plain(path: str) -> PlainTable:
    """The table, which has to be a plain one."""
    found = plain_table.find_plain(path)
    assert found is not None
    return found


def rows_of(rows: list[tuple[str, int, int]]) -> pa.Table:
    """Rows of (key, second of begin, n)."""
    keys = [key for key, _, _ in rows]
    begins = pa.array([second * SECOND for _, second, _ in rows], pa.int64()).cast(INSTANT)
    return pa.table([keys, begins, pa.array([n for _, _, n in rows], pa.int64())], schema=COLUMNS)


def changes_of(rows: list[tuple[str, str, int, int]]) -> pa.Table:
    """Changes of (operation, key, second of begin, n)."""
    plain_rows = rows_of([(key, second, n) for _, key, second, n in rows])
    return plain_rows.append_column(OP, pa.array([op for op, *_ in rows], pa.string()))


def append(path: str, *rows: tuple[str, int, int]) -> None:
    """Appends rows in one file."""
    plain_table.append(open_plain(path), rows_of(list(rows)))


def read(path: str) -> list[tuple[str, int, int]]:
    """All rows in order."""
    table = DeltaTable(path).to_pyarrow_table()
    begins = table["begin"].cast(pa.int64()).to_pylist()
    found = zip(table["Key"].to_pylist(), begins, table["n"].to_pylist(), strict=True)
    return sorted((key, begin // SECOND, n) for key, begin, n in found)


def read_feed(path: str) -> list[tuple[str, str, int, int]]:
    """The changes that the newest version made, in order."""
    newest = DeltaTable(path).version()
    feed = pa.table(DeltaTable(path).load_cdf(starting_version=newest).read_all())
    begins = feed["begin"].cast(pa.int64()).to_pylist()
    columns = (feed["_change_type"].to_pylist(), feed["Key"].to_pylist(), begins)
    found = zip(*columns, feed["n"].to_pylist(), strict=True)
    return sorted((kind, key, begin // SECOND, n) for kind, key, begin, n in found)


def clauses(extent: tuple[int, int] | None) -> Clauses:
    """Rows are the same with equal key and begin; `extent` is in seconds."""
    within = None if extent is None else (extent[0] * SECOND, extent[1] * SECOND)
    return Clauses(("Key", "begin"), "op", "I", "D", "begin", within)


@pytest.mark.parametrize(
    "properties",
    [
        {"delta.enableDeletionVectors": "true"},
        {"delta.columnMapping.mode": "name", "delta.minReaderVersion": "2"},
        {"delta.appendOnly": "true"},
        {"someone.else": "1"},
        {"delta.deletedFileRetentionDuration": "90 days"},
        {"delta.logRetentionDuration": "interval 1 week 3 days"},
    ],
    ids=str,
)
def test_a_table_that_asks_more_of_a_writer_is_not_plain(
    tmp_path: Path, properties: Mapping[str, str]
) -> None:
    table = {"a": pa.array([1])}
    write_deltalake(str(tmp_path / "t"), pa.table(table))
    assert plain_table.find_plain(str(tmp_path / "t")) is not None
    log = tmp_path / "t" / "_delta_log" / f"{0:020}.json"
    pairs = ",".join(f'"{name}":"{value}"' for name, value in properties.items())
    log.write_text(log.read_text().replace('"configuration":{}', f'"configuration":{{{pairs}}}'))
    assert plain_table.find_plain(str(tmp_path / "t")) is None


def test_a_table_with_partitions_or_constraints_is_not_plain(tmp_path: Path) -> None:
    write_deltalake(str(tmp_path / "parts"), rows_of([("a", 0, 1)]), partition_by=["Key"])
    assert plain_table.find_plain(str(tmp_path / "parts")) is None
    path = make(tmp_path / "checked")
    DeltaTable(path).alter.add_constraint({"small": "n < 9"})
    assert plain_table.find_plain(path) is None


def test_what_is_no_table_is_not_plain(tmp_path: Path) -> None:
    assert plain_table.find_plain(str(tmp_path / "none")) is None
    assert plain_table.find_plain("catalog.schema.table") is None
    path = make(tmp_path / "damaged")
    (tmp_path / "damaged" / "_delta_log" / f"{0:020}.json").write_text("{")
    assert plain_table.find_plain(path) is None


def files_within(path: str, low: int | None, high: int | None) -> list[str]:
    """The names of the files that may have a begin from `low` to `high`, in microseconds."""
    found = plain_table.list_files(open_plain(path), {"begin": (low, high)})
    assert found is not None
    assert all(file.bytes == Path(file.path).stat().st_size for file in found)
    return sorted(file.path for file in found)


def test_files_are_chosen_by_their_statistics(tmp_path: Path) -> None:
    path = make(tmp_path / "my lake*{a}?" / "100%")
    append(path, ("a", 0, 1), ("a", 10, 1))
    (early,) = files_within(path, None, None)
    append(path, ("a", 20, 1), ("a", 30, 1))
    (late,) = (file for file in files_within(path, None, None) if file != early)
    assert files_within(path, 10 * SECOND, 20 * SECOND) == sorted([early, late])
    assert files_within(path, 11 * SECOND, 20 * SECOND) == [late]
    assert files_within(path, 10 * SECOND, 20 * SECOND - 1) == [early]
    assert files_within(path, None, 0) == [early]
    assert files_within(path, 30 * SECOND, None) == [late]
    # Statistics are cut to milliseconds, so the last time may be almost one later than they say.
    assert files_within(path, 30 * SECOND + 999, None) == [late]
    assert files_within(path, 30 * SECOND + 1_001, None) == []


def test_a_file_that_lies_elsewhere_is_not_listed(tmp_path: Path) -> None:
    path = make(tmp_path / "t")
    append(path, ("a", 0, 1))
    log = tmp_path / "t" / "_delta_log" / f"{1:020}.json"
    log.write_text(log.read_text().replace('"path":"part', '"path":"elsewhere/part'))
    assert plain_table.list_files(open_plain(path), {}) is None


def test_a_transaction_is_committed_once(tmp_path: Path) -> None:
    path = make(tmp_path / "t")
    assert not plain_table.has_committed(open_plain(path), "app", 0)
    plain_table.append(open_plain(path), rows_of([("a", 0, 1)]), ("app", 3))
    assert plain_table.has_committed(open_plain(path), "app", 3)
    assert plain_table.has_committed(open_plain(path), "app", 2)
    assert not plain_table.has_committed(open_plain(path), "app", 4)
    assert not plain_table.has_committed(open_plain(path), "other", 0)


def test_a_commit_that_comes_second_is_refused(tmp_path: Path) -> None:
    path = make(tmp_path / "t")
    append(path, ("a", 0, 1))
    first, second, third = (open_plain(path) for _ in range(3))
    plain_table.append(first, rows_of([("a", 1, 1)]))
    with pytest.raises(Busy, match="another writer committed first"):
        plain_table.append(second, rows_of([("a", 2, 1)]))
    with pytest.raises(Busy, match="another writer committed first"):
        plain_table.merge(third, changes_of([("U", "a", 0, 9)]), clauses(None))
    assert read(path) == [("a", 0, 1), ("a", 1, 1)]


def test_a_merge_updates_deletes_and_inserts(tmp_path: Path) -> None:
    path = make(tmp_path / "t")
    append(path, ("a", 0, 1), ("a", 1, 1), ("b", 1, 1))
    append(path, ("a", 2, 1), ("b", 9, 1))
    # A row to insert is never taken for a stored one, even where an equal one is deleted.
    changed = [("U", "a", 0, 5), ("D", "b", 1, 1), ("I", "b", 1, 7), ("I", "c", 3, 2)]
    plain_table.merge(open_plain(path), changes_of(changed), clauses((0, 3)))
    assert read(path) == [
        ("a", 0, 5), ("a", 1, 1), ("a", 2, 1), ("b", 1, 7), ("b", 9, 1), ("c", 3, 2),
    ]  # fmt: skip
    assert read_feed(path) == [
        ("delete", "b", 1, 1),
        ("insert", "b", 1, 7),
        ("insert", "c", 3, 2),
        ("update_postimage", "a", 0, 5),
        ("update_preimage", "a", 0, 1),
    ]


KEYS = st.sampled_from(["a", "A", "it's", 'say "x"', "", "ä", "a%"])
PLACES = st.tuples(KEYS, st.sampled_from([-5, 0, 1, 2, 250_000_000_000]))


@given(
    files=st.lists(st.dictionaries(PLACES, st.integers(0, 9), max_size=6), max_size=4),
    changed=st.dictionaries(PLACES, st.tuples(st.sampled_from("UD"), st.integers(10, 19))),
)
@settings(max_examples=60, deadline=None)
def test_a_merge_does_what_a_dict_does(
    tmp_path_factory: pytest.TempPathFactory,
    files: list[Stored],
    changed: Mapping[tuple[str, int], tuple[str, int]],
) -> None:
    path = make(tmp_path_factory.mktemp("merge") / "t")
    stored: Stored = {}
    for file in files:
        fresh = {place: n for place, n in file.items() if place not in stored}
        if fresh:
            append(path, *((key, second, n) for (key, second), n in fresh.items()))
            stored |= fresh
    before = dict(stored)
    changes: list[tuple[str, str, int, int]] = []
    for (key, second), (op, n) in changed.items():
        place = key, second
        if place not in before:
            changes.append(("I", key, second, n))
            stored[place] = n
        elif op == "U":
            changes.append(("U", key, second, n))
            stored[place] = n
        else:
            changes.append(("D", key, second, before[place]))
            del stored[place]
    touched = [second for op, _, second, _ in changes if op != "I"]
    extent = (min(touched), max(touched)) if touched else None
    if changes:
        plain_table.merge(open_plain(path), changes_of(changes), clauses(extent))
    assert read(path) == sorted((key, second, n) for (key, second), n in stored.items())


def can_merge(path: str, most_bytes: int = 1_000_000, identity: tuple[str, ...] = ("Key",)) -> bool:
    """Whether rows that are the same by `identity` may be merged."""
    by = Clauses(identity, "op", "I", "D", "begin", (0, SECOND))
    return plain_table.can_merge(open_plain(path), by, most_bytes)


def test_only_files_within_the_extent_count_as_rewritten(tmp_path: Path) -> None:
    path = make(tmp_path / "t")
    append(path, ("a", 0, 1))
    append(path, ("a", 5, 1))
    files = plain_table.list_files(open_plain(path), {})
    assert files is not None
    (near,) = (file for file in files if read_begin(file) == 0)
    assert can_merge(path, near.bytes)
    assert not can_merge(path, near.bytes - 1)


def read_begin(file: File) -> int:
    """The begin of the only row of a file."""
    (begin,) = pq.read_table(file.path)["begin"].cast(pa.int64()).to_pylist()
    return int(begin)


def test_numbers_with_a_point_are_left_to_spark(tmp_path: Path) -> None:
    """Spark takes NaN for equal to itself."""
    columns = pa.schema([("Key", pa.float64()), ("begin", INSTANT), ("n", pa.int64())])
    DeltaTable.create(str(tmp_path / "t"), columns)
    assert not can_merge(str(tmp_path / "t"))
    assert can_merge(str(tmp_path / "t"), identity=("n", "begin"))


def test_files_with_times_as_nanoseconds_are_left_to_spark(tmp_path: Path) -> None:
    path = make(tmp_path / "t")
    append(path, ("a", 0, 1))
    assert can_merge(path)
    files = plain_table.list_files(open_plain(path), {})
    assert files is not None
    old = pq.read_table(files[0].path)
    pq.write_table(old, files[0].path, use_deprecated_int96_timestamps=True)
    assert not can_merge(path)


def test_the_log_gets_checkpoints_and_loses_nothing(tmp_path: Path) -> None:
    """A version may have been published, however old it is."""
    path = make(tmp_path / "t", {**STATISTICS, "delta.checkpointInterval": "10"})
    plain_table.append(open_plain(path), rows_of([("a", 1, 1)]), ("app", 3))
    log = tmp_path / "t" / "_delta_log"
    for number in range(2, 22):
        for file in log.iterdir():
            # Older than any retention of logs.
            os.utime(file, times=(0, 0))
        append(path, ("a", number, 1))
    assert len(list(log.glob("*.checkpoint.parquet"))) == 2
    assert plain_table.has_committed(open_plain(path), "app", 3)
    assert [second for _, second, _ in read(path)] == list(range(1, 22))
    for version in range(22):
        assert DeltaTable(path, version=version).to_pyarrow_table().num_rows == version
