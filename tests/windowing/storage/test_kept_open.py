"""A table that stays open is opened again when it is not the same any more. No Spark."""

import shutil
from contextvars import copy_context
from pathlib import Path
from threading import Thread

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake

from windowing.location import Location
from windowing.storage.kept_open import (
    find_next_version,
    find_noted_version,
    forget_version,
    note_tables,
    note_version,
    reuse_table,
    tables_kept_open,
)


class Opener:
    """Opens tables and counts how often."""

    def __init__(self) -> None:
        self.opened = 0

    def __call__(self, path: Location) -> DeltaTable | None:
        self.opened += 1
        return DeltaTable(path.text) if path.local.exists() else None


@pytest.fixture
def path(tmp_path: Path) -> Location:
    """A table of one commit."""
    path = Location(str(tmp_path / "table"))
    commit(path)
    return path


def commit(path: Location) -> None:
    write_deltalake(path.text, pa.table({"n": [1]}), mode="append")


def version_seen(path: Location, opens: Opener) -> int:
    table = reuse_table(path, opens)
    assert table is not None
    return int(table.version())


def test_a_table_is_opened_once_for_each_version(path: Location) -> None:
    opens = Opener()
    with tables_kept_open():
        assert [version_seen(path, opens) for _ in range(3)] == [0, 0, 0]
        assert opens.opened == 1
        commit(path)
        assert [version_seen(path, opens) for _ in range(3)] == [1, 1, 1]
        assert opens.opened == 2


def test_outside_it_is_opened_each_time(path: Location) -> None:
    opens = Opener()
    with tables_kept_open():
        version_seen(path, opens)
    for _ in range(2):
        version_seen(path, opens)
    assert opens.opened == 3


def test_a_table_that_was_made_anew_is_opened_again(path: Location) -> None:
    opens = Opener()
    with tables_kept_open():
        first = reuse_table(path, opens)
        shutil.rmtree(path.local)
        commit(path)
        second = reuse_table(path, opens)
    assert first is not None and second is not None
    assert first.metadata().id != second.metadata().id


def test_a_table_that_was_put_back_is_opened_again(path: Location, tmp_path: Path) -> None:
    opens = Opener()
    with tables_kept_open():
        version_seen(path, opens)
        kept = shutil.copytree(path.local, tmp_path / "kept")
        shutil.rmtree(path.local)
        shutil.copytree(kept, path.local)
        version_seen(path, opens)
    assert opens.opened == 2


def test_a_table_that_is_gone_is_none_and_may_come_back(path: Location) -> None:
    opens = Opener()
    with tables_kept_open():
        version_seen(path, opens)
        shutil.rmtree(path.local)
        assert reuse_table(path, opens) is None
        commit(path)
        assert version_seen(path, opens) == 0


def test_threads_with_a_copy_of_the_context_share_what_is_open(path: Location) -> None:
    opens = Opener()
    with tables_kept_open():
        version_seen(path, opens)
        thread = Thread(target=copy_context().run, args=(version_seen, path, opens))
        thread.start()
        thread.join()
    assert opens.opened == 1


def test_a_command_begins_with_the_versions_that_are_there(path: Location) -> None:
    commit(path)
    note_tables(path.parent)
    assert find_noted_version(path) is None, "outside of a command nothing is remembered"
    with tables_kept_open():
        note_tables(path.parent)
        commit(path)
        assert find_noted_version(path) == 1, "what another program commits is not its own"
        with tables_kept_open():
            note_version(path, 5)
        assert find_noted_version(path) == 5
        forget_version(path)
        assert find_noted_version(path) is None


def test_on_shared_storage_a_command_commits_only_after_its_own_versions() -> None:
    path = Location("s3://bucket/lake/shop/hourly")
    assert find_next_version(path) is None, "outside of a command nobody says what is its own"
    with tables_kept_open():
        assert find_next_version(path) == 0
        note_version(path, 3)
        assert find_next_version(path) == 4
        note_version(path, 4)
        assert find_next_version(path) == 5
        local = Location("/lake/shop/hourly")
        assert find_next_version(local) is None, "its lock is one of the system"
