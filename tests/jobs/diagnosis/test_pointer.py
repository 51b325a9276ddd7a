"""The pointer on a store that machines share: it goes forward alone. No Spark."""

import json
from pathlib import Path

import pytest

from jobs.diagnosis import pointer
from jobs.diagnosis.pointer import (
    POINTER,
    Pointed,
    advance_pointer,
    read_pointer,
    replace_pointer,
)
from jobs.publish import rebuild_pointer
from tests.support.leased_process import describe_trips, make_tables
from windowing.errors import Busy
from windowing.ledger.table import read_history
from windowing.location import Location
from windowing.spec.load import load_pipeline
from windowing.storage.permission import writing_while
from windowing.storage.s3_store import S3Store
from windowing.storage.store import store_of


def copy_of(step: int) -> bytes:
    return json.dumps({"seq": step}).encode()


def test_a_pointer_is_not_replaced_by_one_of_an_earlier_step(shared_home: Location) -> None:
    trips = load_pipeline(describe_trips(shared_home))
    advance_pointer(trips, copy_of(3), 3)
    advance_pointer(trips, copy_of(7), 7)
    with pytest.raises(Busy, match="another command has published since"):
        advance_pointer(trips, copy_of(5), 5)
    assert read_pointer(trips).step == 7
    # The same publication may be written again, and a damaged pointer is replaced.
    advance_pointer(trips, copy_of(7), 7)
    store_of(trips.root).write(trips.table(POINTER), b"{")
    advance_pointer(trips, copy_of(7), 7)
    assert read_pointer(trips).step == 7


def publish_before_the_next_write(monkeypatch: pytest.MonkeyPatch) -> None:
    """Another command writes publication 9 when the next pointer is to be replaced."""
    replace = S3Store.replace

    def replace_late(store: S3Store, file: Location, content: bytes, tag: str | None) -> str | None:
        monkeypatch.setattr(S3Store, "replace", replace)
        store.write(file, copy_of(9))
        return replace(store, file, content, tag)

    monkeypatch.setattr(S3Store, "replace", replace_late)


def test_a_pointer_that_changes_meanwhile_is_read_again(
    s3_home: Location, monkeypatch: pytest.MonkeyPatch
) -> None:
    trips = load_pipeline(describe_trips(s3_home))
    publish_before_the_next_write(monkeypatch)
    with pytest.raises(Busy, match="another command has published since"):
        advance_pointer(trips, copy_of(5), 5)
    assert read_pointer(trips).step == 9


def test_a_pointer_that_can_never_be_replaced_is_given_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Refusing:
        """A store that says of each replacement that another one was first."""

        def read_tagged(self, _: Location) -> None:
            """No file is there."""

        def replace(self, *_: object) -> None:
            """Nothing is written."""

    monkeypatch.setattr(pointer, "shared_store_of", lambda _: Refusing())
    trips = load_pipeline(describe_trips(Location(str(tmp_path))))
    with pytest.raises(Busy, match=f"{POINTER} changes all the time; publish again"):
        advance_pointer(trips, copy_of(5), 5)


def test_a_pointer_that_is_rebuilt_replaces_any_other(shared_home: Location) -> None:
    trips = load_pipeline(describe_trips(shared_home))
    replace_pointer(trips, copy_of(9))
    replace_pointer(trips, copy_of(5))
    store_of(trips.root).write(trips.table(POINTER), b"{")
    replace_pointer(trips, copy_of(5))
    assert read_pointer(trips).step == 5


def test_a_pointer_that_changes_while_it_is_rebuilt_stays(
    s3_home: Location, monkeypatch: pytest.MonkeyPatch
) -> None:
    trips = load_pipeline(describe_trips(s3_home))
    replace_pointer(trips, copy_of(5))
    publish_before_the_next_write(monkeypatch)
    with pytest.raises(Busy, match="another command has published meanwhile"):
        replace_pointer(trips, copy_of(5))
    assert read_pointer(trips).step == 9


def test_a_pointer_is_not_rebuilt_by_whoever_has_lost_the_lock(tmp_path: Path) -> None:
    trips = load_pipeline(describe_trips(Location(str(tmp_path))))
    make_tables(trips)
    advance_pointer(trips, copy_of(3), 3)

    def is_lost() -> None:
        raise Busy("the lease was taken over")

    with pytest.raises(Busy, match="taken over"), writing_while(is_lost):
        rebuild_pointer(trips, read_history(trips))
    assert read_pointer(trips).step == 3
    rebuild_pointer(trips, read_history(trips))
    assert read_pointer(trips).step is None


def test_what_a_pointer_names_is_read_leniently(tmp_path: Path) -> None:
    trips = load_pipeline(describe_trips(Location(str(tmp_path))))
    assert read_pointer(trips) == Pointed()
    contents = {
        b'{"seq": 3}': Pointed(3),
        b'{"seq": 3, "outputs": {"hourly": {"version": 7}}}': Pointed(3, {"hourly": 7}),
        b'{"seq": null, "outputs": {}}': Pointed(),
        b'{"seq": 3, "outputs": {"hourly": 7, "daily": {"version": "8"}}}': Pointed(3),
        b'{"seq": 3, "outputs": []}': Pointed(3),
        b"[]": Pointed(),
        b"\xff": Pointed(),
    }
    for content, expected in contents.items():
        store_of(trips.root).write(trips.table(POINTER), content)
        assert read_pointer(trips) == expected, content


def test_a_pointer_is_not_written_by_whoever_has_lost_the_lock(tmp_path: Path) -> None:
    trips = load_pipeline(describe_trips(Location(str(tmp_path))))
    advance_pointer(trips, copy_of(3), 3)

    def is_lost() -> None:
        raise Busy("the lease was taken over")

    with pytest.raises(Busy, match="taken over"), writing_while(is_lost):
        advance_pointer(trips, copy_of(7), 7)
    assert read_pointer(trips).step == 3
