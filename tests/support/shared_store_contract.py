"""What every store has to do that several machines share, besides what all stores do."""

from concurrent.futures import ThreadPoolExecutor

from tests.support.store_contract import StoreContract
from windowing.location import Location
from windowing.storage.store import SharedStore, shared_store_of


def shared(place: Location, seconds: float | None = None) -> SharedStore:
    """The store of a place that machines share, which waits so long for an answer."""
    store = shared_store_of(place, seconds)
    assert store is not None
    return store


class SharedStoreContract(StoreContract):
    """Inherit it in a class whose fixtures are `store` and `home`, a directory without files."""

    CHANGES = 150
    """How often a file is replaced while it is read."""

    def test_a_tag_belongs_to_a_content(self, store: SharedStore, home: Location) -> None:
        assert store.read_tagged(home / "a") is None
        store.write(home / "a", b"1")
        first = store.read_tagged(home / "a")
        assert first is not None
        assert first.content == b"1"
        assert store.read_tagged(home / "a") == first
        store.write(home / "a", b"2")
        second = store.read_tagged(home / "a")
        assert second is not None
        assert (second.content, second.tag == first.tag) == (b"2", False)

    def test_a_file_is_replaced_while_it_is_unchanged(
        self, store: SharedStore, home: Location
    ) -> None:
        store.write(home / "a", b"1")
        first = store.read_tagged(home / "a")
        assert first is not None
        tag = store.replace(home / "a", b"2", first.tag)
        assert tag is not None
        read = store.read_tagged(home / "a")
        assert read is not None
        assert (read.content, read.tag) == (b"2", tag)
        assert store.replace(home / "a", b"3", first.tag) is None
        assert store.read(home / "a") == b"2"
        assert store.replace(home / "a", b"3", tag) is not None

    def test_what_is_not_there_is_not_replaced(self, store: SharedStore, home: Location) -> None:
        store.write(home / "a" / "b", b"1")
        tag = store.replace(home / "a" / "b", b"2", None)
        assert tag is None
        tag = store.replace(home / "a" / "c", b"2", None)
        assert tag is not None
        store.delete(home / "a")
        assert store.replace(home / "a" / "c", b"3", tag) is None
        assert not store.list_files(home)

    def test_a_file_is_deleted_alone(self, store: SharedStore, home: Location) -> None:
        for name in ("a", "ab", "b/a"):
            store.write(home / name, b"1")
        store.delete_file(home / "a")
        store.delete_file(home / "none")
        store.delete_file(home / "b")
        assert [*store.list_files(home)] == ["ab", "b/a"]

    def test_files_are_listed_in_order_with_their_tags(
        self, store: SharedStore, home: Location
    ) -> None:
        tags = {}
        for name in ("b", "a", "c/d", "_e"):
            tags[name] = store.create_listed(home / name, name.encode())
        assert store.create_listed(home / "a", b"again") is None
        listed = [*store.list_tags(home, "")]
        assert listed == sorted(tags.items())
        for name, tag in listed:
            read = store.read_listed(home / name)
            assert read is not None
            assert (read.content, read.tag) == (name.encode(), tag)
        assert store.read_listed(home / "none") is None
        assert store.read_listed(home / "c") is None
        store.write(home / "b", b"another")
        assert dict(store.list_tags(home, "a")) != {name: tags[name] for name in ("b", "c/d")}
        assert [name for name, _ in store.list_tags(home, "a")] == ["b", "c/d"]
        assert [*store.list_tags(home / "none", "")] == []
        assert [*store.list_directories(home)] == ["c"]
        assert [*store.list_directories(home / "none")] == []

    def test_content_and_tag_are_read_together(self, store: SharedStore, home: Location) -> None:
        """A content with the tag of a later one would be replaced as if it were that."""
        tags = {b"0": store.replace(home / "a", b"0", None)}

        def write() -> None:
            for n in range(1, self.CHANGES):
                before = b"%d" % (n - 1)
                tags[b"%d" % n] = store.replace(home / "a", b"%d" % n, tags[before])

        found = []
        with ThreadPoolExecutor(3) as pool:
            writing = pool.submit(write)
            while not writing.done():
                found += [store.read_tagged(home / "a") for _ in range(3)]
            writing.result()
        order = list(tags.values())
        assert None not in order
        for read in found:
            assert read is not None
            # On some servers the tag may be that of an earlier content, with which nothing is done.
            assert order.index(read.tag) <= int(read.content)

    def test_of_many_that_replace_a_file_one_does(self, store: SharedStore, home: Location) -> None:
        tag = store.replace(home / "a", b"0", None)
        for n in range(20):
            contents = [f"{n} {each}".encode() for each in range(8)]
            with ThreadPoolExecutor(8) as pool:
                tags = list(
                    pool.map(lambda c, tag=tag: store.replace(home / "a", c, tag), contents)
                )
            (tag,) = [each for each in tags if each is not None]
            assert store.read(home / "a") == contents[tags.index(tag)]
