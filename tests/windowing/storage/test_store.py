"""The stores keep their contract, and whoever uses one survives what may go wrong on it."""

import errno
import os
import re
from collections.abc import Iterator
from itertools import count
from pathlib import Path

import pytest

from tests.support.faulty_store import Fault, FaultyStore
from tests.support.store_contract import StoreContract
from windowing.errors import UsageError
from windowing.location import Location
from windowing.storage.store import LocalStore, Store, find_free, store_of


class TestLocalStore(StoreContract):
    """The file system of this machine."""

    @pytest.fixture
    def store(self) -> Store:
        """A store."""
        return LocalStore()

    @pytest.fixture
    def home(self, tmp_path: Path) -> Location:
        """A directory without files."""
        return Location(str(tmp_path / "lake"))


class TestStoreWithoutFaults(TestLocalStore):
    """The store that the tests use fails nowhere else than it is asked to."""

    @pytest.fixture
    def store(self) -> Store:
        """A store."""
        return FaultyStore(LocalStore(), Fault.LOST, at=-1)


def test_directories_without_files_are_none(tmp_path: Path) -> None:
    home = Location(str(tmp_path))
    store = store_of(home)
    (tmp_path / "a" / "b").mkdir(parents=True)
    assert not store.list_files(home / "a")


def test_a_link_that_leads_nowhere_is_no_file(tmp_path: Path) -> None:
    home = Location(str(tmp_path))
    store_of(home).write(home / "a", b"1")
    (tmp_path / "itself").symlink_to(tmp_path / "itself")
    (tmp_path / "nothing").symlink_to(tmp_path / "b")
    (tmp_path / "loop").symlink_to(tmp_path)
    (tmp_path / "same").symlink_to(tmp_path / "a")
    assert [*store_of(home).list_files(home)] == ["a", "same"]


def test_a_directory_that_may_not_be_listed_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = Location(str(tmp_path))
    store_of(home).write(home / "shut" / "a", b"1")
    store_of(home).write(home / "disk" / "lost+found" / "a", b"1")
    scan = os.scandir

    def refuse(path: str) -> Iterator[os.DirEntry[str]]:
        if Path(path).name in ("shut", "lost+found"):
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), path)
        return scan(path)

    # The user of the tests may list every directory.
    monkeypatch.setattr(os, "scandir", refuse)
    with pytest.raises(PermissionError, match=f"{re.escape(str(tmp_path))}/shut"):
        store_of(home).list_files(home)
    with pytest.raises(PermissionError, match=f"{re.escape(str(tmp_path))}/shut"):
        store_of(home).list_files(home / "shut")
    for nothing in ("none", "disk"):
        assert not store_of(home).list_files(home / nothing)


def test_the_first_place_without_files_is_free(tmp_path: Path) -> None:
    home = Location(str(tmp_path / "a{b}{}c"))
    assert find_free(home, ".old-") == home / ".old-1"
    for name in (".old-1", ".old-2", ".old-4"):
        store_of(home).write(home / name / "a", b"1")
    assert find_free(home, ".old-") == home / ".old-3"


def test_what_can_not_be_deleted_is_no_success(tmp_path: Path) -> None:
    home = Location(str(tmp_path))
    store_of(home).write(home / "a", b"1")
    with pytest.raises(NotADirectoryError):
        store_of(home).delete(home / "a")


def refuse_links(number: int, times: int | None, monkeypatch: pytest.MonkeyPatch) -> None:
    """So many links fail, without a number all, with an error of the system."""
    left, link = count(), os.link

    def make(source: Path, target: Path) -> None:
        if times is None or next(left) < times:
            raise OSError(number, os.strerror(number), str(source))
        link(source, target)

    monkeypatch.setattr(os, "link", make)


@pytest.mark.parametrize("number", [errno.EPERM, errno.ENOTSUP, errno.ENOSYS])
def test_a_file_system_without_links_is_refused(
    number: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store, file = LocalStore(), Location(str(tmp_path / "a"))
    store.write(file, b"1")
    refuse_links(number, None, monkeypatch)
    new = tmp_path / "b"
    said = f"{new}: this file system has no hard links ({os.strerror(number)}), by which commits "
    for write in (lambda to: store.create(to, b"1"), lambda to: store.copy(file, to)):
        with pytest.raises(UsageError, match=re.escape(f"{said}are made; use another disk")):
            write(Location(str(new)))
        assert [each.name for each in tmp_path.iterdir()] == ["a"]


@pytest.mark.parametrize("number", [errno.EPERM, errno.EXDEV, errno.EMLINK])
def test_a_file_that_can_have_no_other_name_is_copied(
    number: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store, file, copy = LocalStore(), *(Location(str(tmp_path / name)) for name in ("a", "b"))
    store.write(file, b"1")
    refuse_links(number, 1, monkeypatch)
    store.copy(file, copy)
    assert (store.read(file), store.read(copy)) == (b"1", b"1")


def test_a_name_of_the_catalog_is_no_place_for_files() -> None:
    with pytest.raises(ValueError, match="db.events is a table's name"):
        store_of(Location("db.events"))
