"""A checkpoint is rebuilt and judged without a JVM, also on a store that fails."""

from dataclasses import replace
from itertools import count
from pathlib import Path

import pytest

from jobs.diagnosis import checkpoint
from tests.support.faulty_store import Fault, FaultyStore, LateStore
from tests.windowing.cases import pipeline
from windowing.doctor.rule import of_stream
from windowing.ledger.rule import CLOSE, DONE, INTENT, OPEN, LedgerEntry, LedgerHistory
from windowing.location import Location
from windowing.spec.pipeline import Pipeline
from windowing.storage.store import LocalStore

OFFSETS = 'v1\n{"batchWatermarkMs":0}\n{"reservoirVersion":%d,"index":-1}'


def past_of(batches: int) -> LedgerHistory:
    """The ledger of so many runs with a batch each."""
    entries = []
    for n in range(batches):
        of_batch = LedgerEntry(INTENT, run=n + 1, batch=n, offsets=OFFSETS % n, note="q")
        done = replace(of_batch, step=DONE)
        entries += [LedgerEntry(OPEN, run=n + 1), of_batch, done, LedgerEntry(CLOSE, run=n + 1)]
    return LedgerHistory(tuple(replace(entry, seq=n) for n, entry in enumerate(entries)))


@pytest.fixture
def shop(tmp_path: Path) -> Pipeline:
    """A pipeline in a lake of its own."""
    return replace(pipeline(), lake=Location(str(tmp_path)))


def test_a_rebuilt_checkpoint_stands_where_the_ledger_does(shop: Pipeline) -> None:
    assert of_stream(checkpoint.read_stream(shop), past_of(3)) != ()
    assert checkpoint.rebuild_checkpoint(shop, past_of(3)) is None
    assert of_stream(checkpoint.read_stream(shop), past_of(3)) == ()
    assert checkpoint.query(shop) == "q"
    assert [checkpoint.offsets(shop, batch) for batch in range(4)] == [
        None,
        OFFSETS % 1,
        OFFSETS % 2,
        None,
    ]


@pytest.mark.parametrize("name", ["metadata", "offsets/2", "commits/2", "offsets/.2.crc"])
@pytest.mark.parametrize("damage", [b"", b"v1\n{", b"\xff\xfe"])
def test_a_damaged_file_is_named(shop: Pipeline, name: str, damage: bytes) -> None:
    checkpoint.rebuild_checkpoint(shop, past_of(3))
    LocalStore().write(shop.table(checkpoint.CHECKPOINT) / name, damage)
    damaged = checkpoint.read_stream(shop).damaged
    assert damaged == (name.replace("/.2.crc", "/2"),)


def test_checksums_without_their_file_are_named(shop: Pipeline) -> None:
    checkpoint.rebuild_checkpoint(shop, past_of(3))
    (shop.table(checkpoint.CHECKPOINT) / "commits/2").local.unlink()
    assert checkpoint.read_stream(shop).damaged == ("commits/2",)


@pytest.mark.parametrize("fault", Fault)
def test_a_repair_that_failed_anywhere_is_made_by_the_next(
    shop: Pipeline, fault: Fault, monkeypatch: pytest.MonkeyPatch
) -> None:
    local = LocalStore()
    home = shop.table(checkpoint.CHECKPOINT)
    for at in count():
        local.delete(shop.root)
        local.write(home / "metadata", b"the old one")
        faulty = FaultyStore(local, fault, at)
        with monkeypatch.context() as patched:
            patched.setattr(checkpoint, "store_of", lambda place, faulty=faulty: faulty)
            try:
                checkpoint.rebuild_checkpoint(shop, past_of(3))
            except OSError:
                failed = True
            else:
                failed = False
        if not failed:
            break
        checkpoint.rebuild_checkpoint(shop, past_of(3))
        assert of_stream(checkpoint.read_stream(shop), past_of(3)) == (), at
        kept = [name for name in local.list_files(shop.root) if ".old-" in name]
        texts = [local.read(shop.root / name) for name in kept]
        assert texts.count(b"the old one") == 1, at
    # Every change of a repair has failed once: the draft's files, and two moves.
    assert at > len(local.list_files(home)) + 2


def test_a_listing_that_is_late_refuses_a_run_and_repeats_no_batch(
    shop: Pipeline, monkeypatch: pytest.MonkeyPatch
) -> None:
    late = LateStore(LocalStore())
    checkpoint.rebuild_checkpoint(shop, past_of(2))
    late.hold(shop.table(checkpoint.CHECKPOINT))
    checkpoint.rebuild_checkpoint(shop, past_of(5))
    monkeypatch.setattr(checkpoint, "store_of", lambda place: late)
    (finding,) = of_stream(checkpoint.read_stream(shop), past_of(5))
    assert finding.code.startswith("CHECKPOINT")
