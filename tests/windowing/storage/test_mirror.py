"""Mirrors of versions of a table: rows for every reader, and a feed of just what differs.

The model is a dictionary of what each version had.
"""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import duckdb
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable, write_deltalake
from hypothesis import given, settings
from hypothesis import strategies as st

from windowing.crash import armed
from windowing.errors import Busy
from windowing.location import Location
from windowing.storage import plain_table, row_changes
from windowing.storage.arrow_merge import Clauses
from windowing.storage.control import TableError
from windowing.storage.mirror import (
    Mirror,
    has_rows,
    share_layout,
    show_version,
)
from windowing.storage.plain_table import PlainTable
from windowing.storage.version_files import list_version

SECOND = 1_000_000
INSTANT = pa.timestamp("us", "UTC")
COLUMNS = pa.schema(
    [
        ("key", pa.string()),
        ("window_start", INSTANT),
        ("n", pa.int64()),
        ("top", pa.list_(pa.string())),
    ]
)
STATISTICS = {
    "delta.dataSkippingStatsColumns": "window_start",
    "delta.enableChangeDataFeed": "true",
}
OP = pa.field("__op", pa.string())
Key = tuple[str, int]
Rows = dict[Key, int]


def rows_of(rows: Rows) -> pa.Table:
    """The rows of a version of the model."""
    keys = [key for key, _ in rows]
    begins = pa.array([begin * SECOND for _, begin in rows], pa.int64()).cast(INSTANT)
    tops = pa.array([[key] * (n % 3) for (key, _), n in rows.items()], pa.list_(pa.string()))
    return pa.table([keys, begins, pa.array(rows.values(), pa.int64()), tops], schema=COLUMNS)


def model_of(found: pa.Table) -> Rows:
    """Rows as the model has them; a list that is not the one of its number fails."""
    rows = {}
    for row in found.to_pylist():
        assert row["top"] == [row["key"]] * (row["n"] % 3)
        rows[row["key"], int(row["window_start"].timestamp())] = row["n"]
    assert len(rows) == found.num_rows
    return rows


@dataclass
class Lake:
    """A table with its versions, and a mirror of it."""

    home: Path
    rows: Rows = field(default_factory=dict)
    versions: dict[int, Rows] = field(default_factory=dict)
    shown: int | None = None
    number: int = 0

    def __post_init__(self) -> None:
        DeltaTable.create(str(self.home / "t"), COLUMNS, configuration=STATISTICS)
        self.note()

    @property
    def table(self) -> Location:
        """The original."""
        return Location(str(self.home / "t"))

    @property
    def mirror(self) -> Mirror:
        """The mirror."""
        return Mirror(
            Location(str(self.home / "published" / "t")), "p:published", ("key", "window_start")
        )

    @property
    def copy(self) -> DeltaTable:
        """The mirror as delta-rs opens it."""
        return DeltaTable(str(self.mirror.home))

    @property
    def noted(self) -> tuple[int | None, int | None]:
        """Under which number which version of the original is shown, as the log has it."""
        application, of_versions = self.mirror.application, self.mirror.of_versions
        noted = map(self.copy.transaction_version, (application, of_versions))
        return tuple(noted)

    def open(self) -> PlainTable:
        """The original, to commit to it."""
        found = plain_table.find_plain(self.table)
        assert found is not None
        return found

    def note(self) -> None:
        """Keeps what the newest version has."""
        self.versions[self.open().version] = dict(self.rows)

    def append(self, rows: Rows) -> None:
        """New rows in a commit of their own."""
        new = {key: n for key, n in rows.items() if key not in self.rows}
        plain_table.append(self.open(), rows_of(new))
        self.rows |= new
        self.note()

    def merge(self, changes: dict[Key, int | None]) -> None:
        """Rows that are inserted, updated or, without a number, deleted."""
        changed = {k: n for k, n in changes.items() if self.rows.get(k) != n}
        ops = [
            "I" if key not in self.rows else "D" if n is None else "U" for key, n in changed.items()
        ]
        values = {key: self.rows[key] if n is None else n for key, n in changed.items()}
        table = rows_of(values).append_column(OP, pa.array(ops, pa.string()))
        clauses = Clauses(["key", "window_start"], None)
        plain_table.merge(self.open(), table, clauses)
        for key, n in changed.items():
            self.rows.pop(key, None)
            self.rows |= {} if n is None else {key: n}
        self.note()

    def compact(self) -> None:
        """All files become one, and no row changes."""
        DeltaTable(self.table.text).optimize.compact()
        self.note()

    def show(self, version: int, number: int | None = None) -> None:
        """Makes the mirror show a version, under the next number unless one is given."""
        self.number = self.number + 1 if number is None else number
        show_version(self.mirror, list_version(self.table, version), self.number)
        self.shown = version

    def read_feed(self, since: int) -> list[dict[str, object]]:
        """What the feed of the mirror tells of the commits after a version."""
        if since == self.copy.version():
            return []
        found = self.copy.load_cdf(starting_version=since + 1)
        rows: list[dict[str, object]] = pa.table(found.read_all()).to_pylist()
        return rows


def tell_difference(before: Rows, after: Rows) -> list[tuple[str, Key, int]]:
    """What a feed has to tell of two states."""
    found = [("delete", key, n) for key, n in before.items() if key not in after]
    found += [("insert", key, n) for key, n in after.items() if key not in before]
    for key in before.keys() & after.keys():
        if before[key] != after[key]:
            found += [("update_preimage", key, before[key]), ("update_postimage", key, after[key])]
    return sorted(found)


def told(feed: list[dict[str, object]]) -> list[tuple[str, Key, int]]:
    """A feed as the model tells it."""
    found = []
    for row in feed:
        key = (str(row["key"]), int(row["window_start"].timestamp()))  # type: ignore[attr-defined]
        found.append((str(row["_change_type"]), key, int(str(row["n"]))))
    return sorted(found)


def read_by_all(lake: Lake) -> list[Rows]:
    """The mirror by every reader there is, of which some filter."""
    copy = lake.copy
    files = [str(lake.mirror.home.local / name) for name in list_names(copy)]
    dataset = copy.to_pyarrow_dataset()  # noqa: F841 DuckDB finds it by its name
    found = [
        copy.to_pyarrow_table(),
        pa.Table.from_pandas(copy.to_pandas(), schema=COLUMNS),
        duckdb.sql("select * from dataset").to_arrow_table(),
        pq.ParquetDataset(files).read() if files else COLUMNS.empty_table(),
    ]
    filtered = [
        copy.to_pyarrow_table(filters=[("key", "=", "a")]),
        pa.Table.from_pandas(copy.to_pandas(filters=[("key", "=", "a")]), schema=COLUMNS),
        duckdb.sql("select * from dataset where key = 'a'").to_arrow_table(),
    ]
    others = copy.to_pyarrow_table(filters=pc.field("key") != "a")
    found += [pa.concat_tables([each.cast(COLUMNS), others]) for each in filtered]
    return [model_of(each.cast(COLUMNS)) for each in found]


def list_names(copy: DeltaTable) -> list[str]:
    """The files of a version."""
    added = pa.table(copy.get_add_actions(flatten=True))
    return added.column("path").to_pylist() if added.num_rows else []


KEYS = st.tuples(st.sampled_from("abc"), st.integers(0, 3))
ROWS = st.dictionaries(KEYS, st.integers(0, 4), min_size=1, max_size=6)
CHANGES = st.dictionaries(KEYS, st.none() | st.integers(0, 4), min_size=1, max_size=6)
STEPS = st.one_of(
    st.tuples(st.just("append"), ROWS),
    st.tuples(st.just("merge"), CHANGES),
    st.tuples(st.just("compact"), st.none()),
    st.tuples(st.just("show"), st.integers(0, 3)),
)


@pytest.mark.slow
@settings(max_examples=60, deadline=None)
@given(steps=st.lists(STEPS, min_size=2, max_size=14), forgets=st.booleans())
def test_a_mirror_has_the_rows_and_its_feed_the_difference(
    tmp_path_factory: pytest.TempPathFactory,
    steps: list[tuple[str, object]],
    forgets: bool,  # noqa: FBT001 drawn
) -> None:
    lake = Lake(tmp_path_factory.mktemp("mirror"))
    lake.show(0)
    summed: Rows = {}
    for step, value in [*steps, ("show", 0)]:
        if step == "append":
            lake.append({k: n for k, n in value.items() if k not in lake.rows})  # type: ignore[attr-defined]
        elif step == "merge":
            lake.merge(value)
        elif step == "compact":
            lake.compact()
        else:
            known = sorted(lake.versions)
            back = 0 if forgets else min(int(str(value)), len(known) - 1)
            chosen = known[-1 - back]
            before, since = lake.versions[lake.shown or 0], lake.copy.version()
            if forgets:
                forget_commits(lake.table)
            lake.show(chosen)
            feed = told(lake.read_feed(since))
            assert feed == tell_difference(before, lake.versions[chosen])
            summed = add_up(summed, feed)
            assert all(found == lake.versions[chosen] == summed for found in read_by_all(lake))


def add_up(rows: Rows, feed: list[tuple[str, Key, int]]) -> Rows:
    """The rows after a feed."""
    gone = {key for change, key, _ in feed if change in ("delete", "update_preimage")}
    new = {key: n for change, key, n in feed if change in ("insert", "update_postimage")}
    return {key: n for key, n in rows.items() if key not in gone} | new


def forget_commits(table: Location) -> None:
    """Deletes the commits before the newest one, as maintenance does at last."""
    opened = DeltaTable(table.text)
    opened.create_checkpoint()
    for commit in (table.local / "_delta_log").glob("*.json"):
        if int(commit.stem) < opened.version():
            commit.unlink()


def test_files_are_shared_and_none_of_them_is_written_again(tmp_path: Path) -> None:
    lake = Lake(tmp_path)
    lake.append({("a", n): n for n in range(100)})
    lake.show(1)
    lake.append({("b", n): n for n in range(100)})
    lake.show(2)
    originals = {file.name: file.stat().st_ino for file in lake.table.local.glob("*.parquet")}
    shared = {file.name: file.stat().st_ino for file in lake.mirror.home.local.glob("*.parquet")}
    assert shared == originals
    assert len(shared) == 2
    assert not (lake.mirror.home.local / "_change_data").exists(), "appends tell of themselves"


def test_a_mirror_shows_what_it_showed_when_the_original_is_gone(tmp_path: Path) -> None:
    lake = Lake(tmp_path)
    lake.append({("a", 1): 1})
    lake.show(1)
    for file in lake.table.local.glob("*.parquet"):
        file.unlink()
    assert model_of(lake.copy.to_pyarrow_table()) == {("a", 1): 1}


def test_the_same_number_and_version_are_shown_once(tmp_path: Path) -> None:
    lake = Lake(tmp_path)
    lake.append({("a", 1): 1})
    lake.show(1)
    lake.show(1, lake.number)
    assert lake.copy.version() == 0
    lake.show(1)
    assert lake.copy.version() == 1, "another number is a commit of its own, without a row"
    assert lake.read_feed(0) == []
    assert lake.noted == (lake.number, 1)


@contextmanager
def ended_at(place: str) -> Iterator[None]:
    """Inside, the process ends at a place."""

    def end(name: str) -> None:
        if name == place:
            raise KeyboardInterrupt

    with armed(end), pytest.raises(KeyboardInterrupt):
        yield


@pytest.mark.parametrize("place", ["publish.shared", "publish.shown"])
def test_wherever_it_ends_it_is_shown_once_when_it_is_repeated(tmp_path: Path, place: str) -> None:
    lake = Lake(tmp_path)
    lake.append({("a", 1): 1, ("a", 2): 2})
    with ended_at(place):
        lake.show(1)
    lake.show(1, lake.number)
    lake.merge({("a", 1): 3, ("b", 0): 1})
    with ended_at(place):
        lake.show(2)
    lake.show(2, lake.number)
    assert lake.copy.version() == 1
    assert told(lake.read_feed(0)) == tell_difference(lake.versions[1], lake.versions[2])
    assert lake.noted == (lake.number, 2)


def test_a_commit_that_comes_second_is_refused(tmp_path: Path) -> None:
    lake = Lake(tmp_path)
    lake.append({("a", 1): 1})
    lake.show(1)
    lake.append({("a", 2): 1})

    def commit_first(name: str) -> None:
        if name == "publish.shared":
            lake.copy.alter.set_table_properties({"delta.logRetentionDuration": "interval 9 days"})

    with armed(commit_first), pytest.raises(Busy):
        lake.show(2)
    lake.show(2, lake.number)
    assert model_of(lake.copy.to_pyarrow_table()) == lake.versions[2]


@pytest.mark.parametrize("is_first", [True, False], ids=["the first one", "a later one"])
@pytest.mark.parametrize("later", [1, 2], ids=["the same rows", "other rows"])
def test_a_publication_that_slept_changes_nothing_behind_a_later_one(
    is_first: object, later: int, tmp_path: Path
) -> None:
    lake = Lake(tmp_path)
    lake.append({("a", 1): 1})
    lake.append({("a", 2): 1})
    if not is_first:
        lake.show(0)
    awake = []

    def publish_later(name: str) -> None:
        if name == "publish.shared" and not awake:
            awake.append(name)
            lake.show(later, 9)

    with armed(publish_later), pytest.raises(Busy):
        lake.show(1, 5)
    assert awake
    assert lake.noted == (9, later)
    assert model_of(lake.copy.to_pyarrow_table()) == lake.versions[later]


def test_rows_that_others_have_changed_are_right_again_and_told(tmp_path: Path) -> None:
    lake = Lake(tmp_path)
    lake.append({("a", n): n for n in range(4)})
    lake.show(1)
    lake.copy.delete("n = 3")
    since = lake.copy.version()
    lake.merge({("a", 0): 9})
    lake.show(2)
    assert model_of(lake.copy.to_pyarrow_table()) == lake.versions[2]
    here = {key: n for key, n in lake.versions[1].items() if n != 3}
    assert told(lake.read_feed(since)) == tell_difference(here, lake.versions[2])


def test_files_with_types_that_few_readers_take_are_written_anew(tmp_path: Path) -> None:
    lake = Lake(tmp_path)
    lake.append({("a", 1): 1})
    source = rows_of({("a", 1): 2, ("b", 2): 2})
    table = DeltaTable(lake.table.text)
    merge = table.merge(source, "t.key = s.key and t.window_start = s.window_start", "s", "t")
    merge.when_matched_update_all().when_not_matched_insert_all().execute()
    lake.rows = {("a", 1): 2, ("b", 2): 2}
    lake.note()
    (viewed,) = DeltaTable(lake.table.text).file_uris()
    if "view" not in str(pq.read_schema(viewed)):
        pytest.skip("a MERGE of delta-rs writes plain texts by now")
    lake.show(2)
    assert all(found == lake.rows for found in read_by_all(lake))
    lake.append({("c", 3): 3})
    lake.show(3)
    assert all(found == lake.rows for found in read_by_all(lake))
    assert len(list_names(lake.copy)) == 2, "the file that was written anew stays"


def test_a_mirror_takes_the_files_of_a_compaction_where_no_row_differs(tmp_path: Path) -> None:
    lake = Lake(tmp_path)
    for n in range(4):
        lake.append({("a", n): n})
    lake.show(4)
    lake.compact()
    assert share_layout(lake.mirror, list_version(lake.table, 5))
    assert len(list_names(lake.copy)) == 1
    assert lake.read_feed(0) == []
    assert lake.noted == (lake.number, 5)
    lake.show(4, lake.number)
    assert len(list_names(lake.copy)) == 1, "nothing is left to be done for this number"
    lake.merge({("a", 0): 7})
    assert not share_layout(lake.mirror, list_version(lake.table, 6))
    lake.show(6)
    assert told(lake.read_feed(1)) == tell_difference(lake.versions[5], lake.versions[6])


def test_columns_that_are_added_are_shown(tmp_path: Path) -> None:
    lake = Lake(tmp_path)
    lake.append({("a", 1): 1})
    lake.show(1)
    more = rows_of({("a", 2): 2}).append_column("more", pa.array([1], pa.int64()))
    write_deltalake(lake.table.text, more, mode="append", schema_mode="merge")
    lake.note()
    lake.show(2)
    found = lake.copy.to_pyarrow_table().sort_by("n")
    assert found["more"].to_pylist() == [None, 1]
    assert told(lake.read_feed(0)) == [("insert", ("a", 2), 2)]
    ids = {json.loads(line)["metaData"]["id"] for line in list_lines(lake) if "metaData" in line}
    assert len(ids) == 1, "it stays the table that it was"


def test_columns_that_are_never_null_are_shown_again_and_again(tmp_path: Path) -> None:
    part = pa.struct([pa.field("n", pa.int64(), nullable=False)])
    strict = pa.schema(
        [
            pa.field("key", pa.string(), nullable=False),
            pa.field("parts", pa.list_(pa.field("element", part, nullable=False))),
            pa.field("sums", pa.map_(pa.string(), pa.field("value", pa.int64(), nullable=False))),
        ]
    )
    table = Location(str(tmp_path / "t"))
    DeltaTable.create(table.text, strict, configuration=STATISTICS)
    mirror = Mirror(Location(str(tmp_path / "published" / "t")), "p:published", ("key",))
    rows = [{"key": key, "parts": [{"n": 1}], "sums": [("a", 1)]} for key in "abc"]
    for n, row in enumerate(rows):
        write_deltalake(table.text, pa.Table.from_pylist([row], schema=strict), mode="append")
        show_version(mirror, list_version(table, n + 1), n + 1)
    DeltaTable(table.text).optimize.compact()
    show_version(mirror, list_version(table, 4), 4)
    found = DeltaTable(mirror.home.text).to_pyarrow_table().sort_by("key")
    assert found.to_pylist() == rows


def list_lines(lake: Lake) -> list[str]:
    """All lines of the mirror's log."""
    log = lake.mirror.home.local / "_delta_log"
    return [line for file in sorted(log.glob("*.json")) for line in file.read_text().splitlines()]


def test_too_many_rows_are_told_by_their_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lake = Lake(tmp_path)
    lake.append({("a", n): n for n in range(4)})
    lake.show(1)
    lake.merge({("a", 0): 9})
    monkeypatch.setattr(row_changes, "MOST_ROWS", 1)
    lake.show(2)
    feed = told(lake.read_feed(0))
    assert [change for change, *_ in feed] == ["delete"] * 4 + ["insert"] * 4
    assert add_up(lake.versions[1], feed) == lake.versions[2]
    monkeypatch.undo()
    lake.merge({("a", 1): 9})
    lake.show(3)
    assert told(lake.read_feed(1)) == tell_difference(lake.versions[2], lake.versions[3])


def test_a_damaged_mirror_is_named(tmp_path: Path) -> None:
    lake = Lake(tmp_path)
    lake.append({("a", 1): 1})
    lake.show(1)
    (lake.mirror.home.local / "_delta_log" / f"{0:020}.json").write_text("{")
    with pytest.raises(TableError, match="published/t"):
        lake.show(1)


@pytest.mark.parametrize("step", ["append", "merge"])
def test_a_file_that_the_original_has_lost_is_missed_there(tmp_path: Path, step: str) -> None:
    lake = Lake(tmp_path)
    lake.append({("a", 1): 1, ("a", 2): 1})
    lake.show(1)
    before = {file.name for file in lake.table.local.glob("*.parquet")}
    if step == "append":
        lake.append({("a", 3): 1})
    else:
        lake.merge({("a", 1): 2})
        forget_commits(lake.table)
    for file in lake.table.local.glob("*.parquet"):
        if file.name not in before:
            file.unlink()
    with pytest.raises(TableError) as raised:
        lake.show(2)
    assert raised.value.path == lake.table
    assert model_of(lake.copy.to_pyarrow_table()) == lake.versions[1]


def test_no_file_of_other_rows_is_brought_for_a_layout(tmp_path: Path) -> None:
    lake = Lake(tmp_path)
    for n in range(3):
        lake.append({("a", n): n})
    lake.show(3)
    before = {file.name for file in lake.mirror.home.local.iterdir()}
    lake.merge({("a", 0): 7})
    assert not share_layout(lake.mirror, list_version(lake.table, 4))
    lake.compact()
    assert not share_layout(lake.mirror, list_version(lake.table, 5))
    forget_commits(lake.table)
    assert not share_layout(lake.mirror, list_version(lake.table, 5))
    assert {file.name for file in lake.mirror.home.local.iterdir()} == before


def test_whether_a_mirror_has_the_rows_of_a_version_is_known(tmp_path: Path) -> None:
    lake = Lake(tmp_path)
    assert not has_rows(lake.mirror, list_version(lake.table, 0)), "there is no mirror yet"
    lake.append({("a", 1): 1, ("a", 2): 2})
    lake.append({("b", 1): 1})
    lake.show(2)
    lake.merge({("a", 1): 3})
    lake.merge({("a", 1): 1})
    lake.compact()
    lake.append({("c", 1): 1})
    found = [has_rows(lake.mirror, list_version(lake.table, version)) for version in range(7)]
    assert found == [lake.versions[version] == lake.versions[2] for version in range(7)]
    assert sum(found) == 3
