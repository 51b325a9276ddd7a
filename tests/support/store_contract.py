"""What every store has to do. A class of tests inherits this, and gives a store and a directory."""

import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from windowing.location import Location
from windowing.storage.store import Store


class StoreContract:
    """Inherit it in a class whose fixtures are `store` and `home`, a directory without files."""

    def test_a_file_is_read_as_it_was_written(self, store: Store, home: Location) -> None:
        for content in (b"", b"\x00\r\n\xff", b"a" * 3_000_000):
            store.write(home / "a", content)
            assert store.read(home / "a") == content

    def test_what_is_not_there_has_no_content(self, store: Store, home: Location) -> None:
        store.write(home / "a", b"1")
        assert store.read(home / "b") is None
        assert store.read(home / "a" / "b") is None

    def test_a_name_may_have_odd_characters(self, store: Store, home: Location) -> None:
        names = [" a b", "100%", "%20", "a+b&c=d", "ä{}'\"", "#?*[x]", "~.draft"]
        for name in names:
            store.write(home / name, name.encode())
        assert [store.read(home / name) for name in names] == [name.encode() for name in names]
        assert list(store.list_files(home)) == sorted(names)

    def test_a_file_is_created_once(self, store: Store, home: Location) -> None:
        store.write(home / "log" / "0", b"first")
        assert store.create(home / "log" / "1", b"second")
        assert not store.create(home / "log" / "1", b"other")
        assert not store.create(home / "log" / "0", b"other")
        assert store.read(home / "log" / "1") == b"second"
        assert list(store.list_files(home / "log")) == ["0", "1"]

    def test_a_copy_is_a_file_of_its_own(self, store: Store, home: Location) -> None:
        store.write(home / "a" / "1", b"first")
        store.copy(home / "a" / "1", home / "b" / "1 %2")
        store.copy(home / "a" / "1", home / "b" / "1 %2")
        store.delete(home / "a")
        assert store.read(home / "b" / "1 %2") == b"first"
        with pytest.raises(FileNotFoundError):
            store.copy(home / "a" / "1", home / "b" / "2")
        assert list(store.list_files(home)) == ["b/1 %2"]

    def test_of_many_that_create_a_file_one_does(self, store: Store, home: Location) -> None:
        store.write(home / "log" / "0", b"")
        for n in range(20):
            file = home / "log" / f"{n + 1}"
            with ThreadPoolExecutor(8) as pool:
                contents = [f"{n} {each}".encode() for each in range(8)]
                done = list(pool.map(lambda c, file=file: store.create(file, c), contents))
            assert done.count(True) == 1
            assert store.read(file) == contents[done.index(True)]

    def test_readers_see_no_part_of_a_file(self, store: Store, home: Location) -> None:
        old, new = b"o" * 300_000, b"n" * 300_000
        store.write(home / "a", old)

        def write_often() -> None:
            for _ in range(10):
                store.write(home / "a", new)

        with ThreadPoolExecutor(1) as pool:
            writing = pool.submit(write_often)
            while not writing.done():
                assert store.read(home / "a") in (old, new)
        writing.result()
        assert store.read(home / "a") == new

    def test_files_are_listed_in_order_with_their_sizes(self, store: Store, home: Location) -> None:
        for name, size in {"b/2": 2, "a": 1, "b/10": 0, "b/c/.d": 4}.items():
            store.write(home / name, b"x" * size)
        assert [(name, file.bytes) for name, file in store.list_files(home).items()] == [
            ("a", 1),
            ("b/10", 0),
            ("b/2", 2),
            ("b/c/.d", 4),
        ]
        assert list(store.list_files(home / "b" / "c")) == [".d"]
        assert not store.list_files(home / "none")

    def test_a_listing_says_when_a_file_was_written(self, store: Store, home: Location) -> None:
        before = time.time()
        store.write(home / "a", b"1")
        # Some storage counts whole seconds.
        assert before - 1 < store.list_files(home)["a"].written_s < time.time() + 1

    def test_names_are_those_of_files_and_directories(self, store: Store, home: Location) -> None:
        for name in ("a", "b/1", "b/c/2", ".d/3"):
            store.write(home / name, b"1")
        assert sorted(store.list_names(home)) == [".d", "a", "b"]
        assert sorted(store.list_names(home / "b")) == ["1", "c"]
        assert not [*store.list_names(home / "none")]

    def test_parts_of_a_file_are_read(self, store: Store, home: Location) -> None:
        content = bytes(range(256)) * 100_000
        store.write(home / "a", content)
        with store.open(home / "a") as opened:
            assert opened.size() == len(content)
            opened.seek(len(content) - 3)
            assert opened.read() == content[-3:]
            opened.seek(1)
            assert opened.read(2) == content[1:3]
        with pytest.raises(FileNotFoundError):
            store.open(home / "none").read()

    def test_another_file_in_the_same_place_is_told_from_it(
        self, store: Store, home: Location
    ) -> None:
        assert store.identify(home / "a") is None
        store.write(home / "a", b"1")
        first = store.identify(home / "a")
        assert first is not None
        assert store.identify(home / "a") == first
        store.write(home / "a", b"2")
        assert store.identify(home / "a") not in (first, None)
        store.delete(home)
        assert store.identify(home / "a") is None

    def test_a_directory_is_not_one_whose_name_begins_alike(
        self, store: Store, home: Location
    ) -> None:
        store.write(home / "ab" / "1", b"1")
        store.write(home / "a" / "2", b"2")
        assert list(store.list_files(home / "a")) == ["2"]
        store.delete(home / "a")
        assert list(store.list_files(home)) == ["ab/1"]

    def test_what_is_deleted_is_not_there(self, store: Store, home: Location) -> None:
        store.write(home / "a" / "b" / "c", b"1")
        store.write(home / "d", b"2")
        store.delete(home / "a")
        store.delete(home / "none")
        assert list(store.list_files(home)) == ["d"]
