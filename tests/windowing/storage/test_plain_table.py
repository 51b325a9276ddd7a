"""Plain tables: which ones are, what is listed, appended and merged; the model is a dict."""

import errno
import os
import resource
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable, write_deltalake
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support.faulty_store import Fault, FaultyStore
from windowing.errors import Busy, TidemarkError
from windowing.location import Location
from windowing.storage import commit_file, plain_table
from windowing.storage.arrow_merge import Clauses
from windowing.storage.plain_table import PlainTable
from windowing.storage.store import LocalStore

SECOND = 1_000_000
STATISTICS_OF = "delta.dataSkippingStatsColumns"
STATISTICS = {STATISTICS_OF: "window_start", "delta.enableChangeDataFeed": "true"}
INSTANT = pa.timestamp("us", "UTC")
COLUMNS = pa.schema([("Key", pa.string()), ("window_start", INSTANT), ("n", pa.int64())])
OP = pa.field("__op", pa.string())
Stored = dict[tuple[str, int], int]


def make(path: Path, properties: Mapping[str, str] = STATISTICS) -> Location:
    """An empty table with the columns of COLUMNS."""
    DeltaTable.create(str(path), COLUMNS, configuration=dict(properties))
    return Location(str(path))


def open_plain(path: Location) -> PlainTable:
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


def append(path: Location, *rows: tuple[str, int, int]) -> None:
    """Appends rows in one file."""
    plain_table.append(open_plain(path), rows_of(list(rows)))


def read(path: Location) -> list[tuple[str, int, int]]:
    """All rows in order."""
    table = DeltaTable(path.text).to_pyarrow_table()
    begins = table["window_start"].cast(pa.int64()).to_pylist()
    found = zip(table["Key"].to_pylist(), begins, table["n"].to_pylist(), strict=True)
    return sorted((key, begin // SECOND, n) for key, begin, n in found)


def read_feed(path: Location) -> list[tuple[str, str, int, int]]:
    """The changes that the newest version made, in order."""
    newest = DeltaTable(path.text).version()
    feed = pa.table(DeltaTable(path.text).load_cdf(starting_version=newest).read_all())
    begins = feed["window_start"].cast(pa.int64()).to_pylist()
    columns = (feed["_change_type"].to_pylist(), feed["Key"].to_pylist(), begins)
    found = zip(*columns, feed["n"].to_pylist(), strict=True)
    return sorted((kind, key, begin // SECOND, n) for kind, key, begin, n in found)


def clauses(extent: tuple[int, int] | None) -> Clauses:
    """Rows are the same with equal key and begin; `extent` is in seconds."""
    within = None if extent is None else (extent[0] * SECOND, extent[1] * SECOND)
    return Clauses(("Key", "window_start"), within)


@pytest.mark.parametrize(
    "properties",
    [
        {"delta.enableDeletionVectors": "true"},
        {"delta.enableDeletionVectors": "TRUE"},
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
    assert plain_table.find_plain(Location(str(tmp_path / "t"))) is not None
    log = tmp_path / "t" / "_delta_log" / f"{0:020}.json"
    pairs = ",".join(f'"{name}":"{value}"' for name, value in properties.items())
    log.write_text(log.read_text().replace('"configuration":{}', f'"configuration":{{{pairs}}}'))
    assert plain_table.find_plain(Location(str(tmp_path / "t"))) is None


def test_a_table_with_partitions_or_constraints_is_not_plain(tmp_path: Path) -> None:
    write_deltalake(str(tmp_path / "parts"), rows_of([("a", 0, 1)]), partition_by=["Key"])
    assert plain_table.find_plain(Location(str(tmp_path / "parts"))) is None
    path = make(tmp_path / "checked")
    DeltaTable(path.text).alter.add_constraint({"small": "n < 9"})
    assert plain_table.find_plain(path) is None


def test_what_is_no_table_is_not_plain(tmp_path: Path) -> None:
    assert plain_table.find_plain(Location(str(tmp_path / "none"))) is None
    assert plain_table.find_plain(Location("catalog.schema.table")) is None
    path = make(tmp_path / "damaged")
    (tmp_path / "damaged" / "_delta_log" / f"{0:020}.json").write_text("{")
    assert plain_table.find_plain(path) is None


def files_within(path: Location, low: int | None, high: int | None) -> list[str]:
    """The names of the files that may have a begin from `low` to `high`, in microseconds."""
    found = plain_table.list_files(open_plain(path), {"window_start": (low, high)})
    assert found is not None
    assert all(file.bytes == (path / file.name).local.stat().st_size for file in found)
    return sorted(file.name for file in found)


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


@pytest.mark.parametrize(
    ("value", "files"), [("true", 1), ("TRUE", 1), ("True", 1), ("false", 0), ("FALSE", 0)]
)
def test_a_change_feed_is_kept_where_delta_keeps_one(
    tmp_path: Path, value: str, files: int
) -> None:
    path = make(tmp_path / "t")
    append(path, ("a", 0, 1))
    log = tmp_path / "t" / "_delta_log" / f"{0:020}.json"
    on = '"delta.enableChangeDataFeed":'
    assert f'{on}"true"' in log.read_text()
    log.write_text(log.read_text().replace(f'{on}"true"', f'{on}"{value}"'))
    plain_table.merge(open_plain(path), changes_of([("U", "a", 0, 5)]), clauses((0, 3)))
    assert len([*(tmp_path / "t").glob("_change_data/*.parquet")]) == files


KEYS = st.sampled_from(["a", "A", "it's", 'say "x"', "", "ä", "a%"])
PLACES = st.tuples(KEYS, st.sampled_from([-5, 0, 1, 2, 250_000_000_000]))


@pytest.mark.slow
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


def add_file(path: Location, number: int) -> PlainTable:
    """Adds a file with a row of this number, and one without rows; returns the table before it."""
    before = open_plain(path)
    files = [path / f"part-{number}.parquet", path / f"empty-{number}.parquet"]
    for file, rows in zip(files, ([("a", number, number)], []), strict=True):
        pq.write_table(rows_of(rows), file.local)
    plain_table.add_files(before, files, ("app", number))
    assert [file.local.exists() for file in files] == [True, False]
    return before


def test_the_number_under_which_files_were_added_outlives_the_commit(tmp_path: Path) -> None:
    path = make(tmp_path / "t", {**STATISTICS, "delta.checkpointInterval": "3"})
    for number in range(5):
        before = add_file(path, number)
    for version in range(3):
        (path.local / f"_delta_log/{version:020}.json").unlink()
    assert read(path) == [("a", number, number) for number in range(5)]
    assert plain_table.has_committed(open_plain(path), "app", 4)
    assert not plain_table.has_committed(open_plain(path), "app", 5)
    with pytest.raises(Busy, match="another writer committed first"):
        plain_table.add_files(before, [], ("app", 5))


def can_merge(
    path: Location, most_bytes: int = 1_000_000, identity: tuple[str, ...] = ("Key",)
) -> bool:
    """Whether rows that are the same by `identity` may be merged."""
    by = Clauses(identity, (0, SECOND))
    return plain_table.can_merge(open_plain(path), by, most_bytes)


def test_only_files_within_the_extent_count_as_rewritten(tmp_path: Path) -> None:
    path = make(tmp_path / "t")
    append(path, ("a", 0, 1))
    append(path, ("a", 5, 1))
    files = plain_table.list_files(open_plain(path), {})
    assert files is not None
    (near,) = (file for file in files if read_begin(path / file.name) == 0)
    assert can_merge(path, near.bytes)
    assert not can_merge(path, near.bytes - 1)


def read_begin(file: Location) -> int:
    """The begin of the only row of a file."""
    (begin,) = pq.read_table(file.local)["window_start"].cast(pa.int64()).to_pylist()
    return int(begin)


def test_numbers_with_a_point_are_left_to_spark(tmp_path: Path) -> None:
    """Spark takes NaN for equal to itself."""
    columns = pa.schema([("Key", pa.float64()), ("window_start", INSTANT), ("n", pa.int64())])
    DeltaTable.create(str(tmp_path / "t"), columns)
    assert not can_merge(Location(str(tmp_path / "t")))
    assert can_merge(Location(str(tmp_path / "t")), identity=("n", "window_start"))


def test_files_with_times_as_nanoseconds_are_merged_too(tmp_path: Path) -> None:
    path = make(tmp_path / "t")
    append(path, ("a", 0, 1), ("a", 250_000_000_000, 1))
    files = plain_table.list_files(open_plain(path), {})
    assert files is not None
    (file,) = ((path / file.name).local for file in files)
    old = pq.read_table(file)
    pq.write_table(old, file, use_deprecated_int96_timestamps=True)
    plain_table.merge(open_plain(path), changes_of([("U", "a", 0, 5)]), clauses((0, 0)))
    assert read(path) == [("a", 0, 5), ("a", 250_000_000_000, 1)]


@pytest.mark.parametrize(
    "properties", [STATISTICS, {}, {STATISTICS_OF: "window_start,Key"}], ids=str
)
def test_texts_stay_texts_that_readers_filter_by(
    tmp_path: Path, properties: Mapping[str, str]
) -> None:
    path = make(tmp_path / "t", properties)
    append(path, ("a", 0, 1), ("b", 1, 1))
    plain_table.merge(open_plain(path), changes_of([("U", "a", 0, 5)]), clauses((0, 0)))
    assert read(path) == [("a", 0, 5), ("b", 1, 1)]
    whole = DeltaTable(path.text).to_pyarrow_dataset()
    assert whole.to_table(filter=ds.field("Key") == "b")["n"].to_pylist() == [1]
    assert whole.to_table(filter=ds.field("Key") == "a")["n"].to_pylist() == [5]


YEAR_5138 = 100_000_851_129_789_623
"""Microseconds since 1970, between two milliseconds."""


@pytest.mark.parametrize("begin", [YEAR_5138, 1_700_000_000_789_623, -1, -1_001])
def test_rows_between_two_milliseconds_are_found(tmp_path: Path, begin: int) -> None:
    path = make(tmp_path / "t")
    begins = pa.array([begin, begin + 1], pa.int64()).cast(INSTANT)
    for n in (1, 2):
        rows = pa.table([["a", "b"], begins, pa.array([n, n])], schema=COLUMNS)
        if n == 1:
            plain_table.append(open_plain(path), rows)
        else:
            within = Clauses(("Key", "window_start"), (begin, begin + 1))
            changed = rows.append_column(OP, pa.array(["U", "D"]))
            plain_table.merge(open_plain(path), changed, within)
    table = DeltaTable(path.text).to_pyarrow_table()
    assert table["window_start"].cast(pa.int64()).to_pylist() == [begin]
    assert table["n"].to_pylist() == [2]


@pytest.mark.parametrize("op", ["U", "D"])
def test_a_change_of_a_row_that_is_not_stored_is_refused(tmp_path: Path, op: str) -> None:
    path = make(tmp_path / "t")
    append(path, ("a", 0, 1))
    changed = changes_of([("U", "a", 0, 5), (op, "b", 0, 5)])
    with pytest.raises(TidemarkError, match="2 stored rows were to change, and 1 were found"):
        plain_table.merge(open_plain(path), changed, clauses((0, 0)))
    assert read(path) == [("a", 0, 1)]
    assert DeltaTable(path.text).version() == 1


def test_a_change_of_a_row_that_is_stored_twice_is_refused(tmp_path: Path) -> None:
    path = make(tmp_path / "t")
    append(path, ("a", 0, 1))
    append(path, ("a", 0, 2))
    with pytest.raises(TidemarkError, match="1 stored rows were to change, and 2 were found"):
        plain_table.merge(open_plain(path), changes_of([("U", "a", 0, 5)]), clauses((0, 0)))


@contextmanager
def full_disk() -> Iterator[None]:
    """Inside, no file of this process gets longer than 64 bytes."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (64, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


def test_a_merge_onto_a_full_disk_is_no_damage_of_the_table(tmp_path: Path) -> None:
    path = make(tmp_path / "t")
    append(path, ("a", 0, 1))
    before = sorted(path.local.rglob("*"))
    with pytest.raises(OSError, match="File too large") as refused, full_disk():
        plain_table.merge(open_plain(path), changes_of([("U", "a", 0, 5)]), clauses((0, 0)))
    assert refused.value.errno == errno.EFBIG
    assert sorted(path.local.rglob("*")) == before


def test_a_commit_onto_a_full_disk_leaves_nothing(tmp_path: Path) -> None:
    path = make(tmp_path / "t")
    before = sorted(path.local.rglob("*"))
    with pytest.raises(OSError, match="File too large"), full_disk():
        commit_file.commit(path, 1, "MERGE", [])
    assert sorted(path.local.rglob("*")) == before


CALLS = ("file", "change feed", "commit")
"""What a MERGE asks of a store, in order."""


@pytest.mark.parametrize("fault", Fault)
@pytest.mark.parametrize("call", CALLS)
def test_a_commit_without_an_answer_is_there_as_a_whole_or_not_at_all(
    tmp_path: Path, call: str, fault: Fault, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = make(tmp_path / "t")
    append(path, ("a", 0, 1))
    change, bounds = changes_of([("U", "a", 0, 5)]), clauses((0, 0))
    before = open_plain(path)
    with monkeypatch.context() as patched:
        faulty = FaultyStore(LocalStore(), fault, at=CALLS.index(call))
        patched.setattr(commit_file, "store_of", lambda place: faulty)
        with pytest.raises(OSError, match="Input/output error"):
            plain_table.merge(before, change, bounds)
    if (call, fault) == ("commit", Fault.UNANSWERED):
        with pytest.raises(Busy):
            plain_table.merge(before, change, bounds)
    else:
        assert read(path) == [("a", 0, 1)]
        plain_table.merge(before, change, bounds)
    assert read(path) == [("a", 0, 5)]


def test_merges_make_checkpoints_of_the_log(tmp_path: Path) -> None:
    path = make(tmp_path / "t", {**STATISTICS, "delta.checkpointInterval": "10"})
    append(path, ("a", 0, 0))
    for n in range(2, 22):
        plain_table.merge(open_plain(path), changes_of([("U", "a", 0, n)]), clauses((0, 0)))
    log = tmp_path / "t" / "_delta_log"
    assert len(list(log.glob("*.checkpoint.parquet"))) == 2
    assert not list(log.glob(".*.tmp"))
    assert read(path) == [("a", 0, 21)]


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
        assert DeltaTable(path.text, version=version).to_pyarrow_table().num_rows == version
