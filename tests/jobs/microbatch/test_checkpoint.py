"""The files of a checkpoint say where the ledger ends. No Spark."""

from collections.abc import Iterable
from dataclasses import replace
from json import dumps, loads

import pytest

from jobs.microbatch.checkpoint import (
    compose_files,
    compose_to_end_of,
    ends_inside_version,
)
from tests.windowing.cases import pipeline
from windowing.errors import StateRefused
from windowing.ledger.rule import CLOSE, DONE, INTENT, OPEN, SKIP, LedgerEntry, LedgerExcerpt

OFFSETS = 'v1\n{"batchWatermarkMs":0}\n{"reservoirVersion":%d,"index":-1}'
FOLLOWED = dumps({"ranges": [], "left_out": [], "rows": 1})


def past_of(*entries: LedgerEntry) -> LedgerExcerpt:
    """A ledger of these entries."""
    return LedgerExcerpt(tuple(replace(entry, seq=n) for n, entry in enumerate(entries)))


def runs(batches: Iterable[int], note: str | None = None) -> list[LedgerEntry]:
    """A run for each batch; the note is that of each batch that is done."""
    entries = []
    for n in batches:
        intent = LedgerEntry(INTENT, run=n + 1, batch=n, offsets=OFFSETS % n)
        done = replace(intent, step=DONE, note=note)
        entries += [LedgerEntry(OPEN, run=n + 1), intent, done, LedgerEntry(CLOSE, run=n + 1)]
    return entries


def begun(batch: int) -> list[LedgerEntry]:
    """A run that has begun its batch."""
    run = batch + 1
    return [LedgerEntry(OPEN, run=run), LedgerEntry(INTENT, batch=batch, offsets=OFFSETS % batch)]


def skipped(batch: int) -> LedgerEntry:
    """A batch without a row."""
    return LedgerEntry(SKIP, batch=batch, offsets=OFFSETS % batch)


@pytest.mark.parametrize(
    ("entries", "ends", "committed"),
    [
        (runs(range(1)), {0: 0}, 0),
        (runs(range(3)), {1: 1, 2: 2}, 2),
        (begun(0), {0: 0}, None),
        ([*runs(range(3)), *begun(3)], {2: 2, 3: 3}, 2),
        ([*runs(range(3)), skipped(3)], {2: 2, 3: 3}, 3),
        ([*runs(range(3)), skipped(3), *begun(4)], {3: 3, 4: 4}, 3),
        # What ends behind commits that removed rows ends where it begins.
        (runs(range(3), FOLLOWED), {1: 2, 2: 2}, 2),
        ([*runs(range(3), FOLLOWED), *begun(3)], {2: 2, 3: 3}, 2),
        ([*runs(range(3), FOLLOWED), skipped(3)], {2: 2, 3: 3}, 3),
    ],
    ids=[
        "one batch",
        "three",
        "first begun",
        "begun",
        "skipped",
        "begun behind a skipped one",
        "behind a rewrite",
        "begun behind a rewrite",
        "skipped behind a rewrite",
    ],
)
def test_a_stream_goes_on_where_the_ledger_ends(
    entries: list[LedgerEntry], ends: dict[int, int], committed: int | None
) -> None:
    files = dict(compose_files(pipeline(), past_of(*entries)))
    assert loads(files.pop("metadata"))["id"]
    found = {name: text for name, text in files.items() if name.startswith("offsets/")}
    assert found == {f"offsets/{batch}": OFFSETS % end for batch, end in ends.items()}
    commits = {*files} - {*found}
    assert commits == (set() if committed is None else {f"commits/{committed}"})


def test_before_the_first_batch_spark_begins_a_stream() -> None:
    assert compose_files(pipeline(), past_of()) == {}
    assert compose_files(pipeline(), past_of(LedgerEntry(OPEN, run=1))) == {}


@pytest.mark.parametrize("batch", [1, 2])
def test_a_ledger_that_does_not_say_where_it_ends_begins_no_stream_anew(batch: int) -> None:
    entries = runs(range(3))
    told = [replace(e, offsets=None) if e.batch == batch else e for e in entries]
    with pytest.raises(StateRefused, match=rf"TABLE_CHANGED: .*_ledger .*batch {batch} "):
        compose_files(pipeline(), past_of(*told))


INSIDE = 'v1\n{"batchWatermarkMs":0}\n%s'


def inside(version: int, index: int, *, first: bool = False) -> str:
    """Offsets inside a version, which may be the one that the stream began with."""
    return INSIDE % dumps(
        {"reservoirVersion": version, "index": index, "isStartingVersion": first, "id": "x"}
    )


def test_the_rest_of_a_version_is_a_batch_of_its_own() -> None:
    opening, *batch = begun(0)
    intent = replace(batch[0], run=1, offsets=inside(7, 3, first=True))
    unfinished = past_of(opening, intent)
    assert ends_inside_version(unfinished)
    # A batch that was begun is repeated first.
    files = compose_to_end_of(pipeline(), unfinished, 7)
    assert files["offsets/0"] == intent.offsets and "offsets/1" not in files

    past = past_of(opening, intent, replace(intent, step=DONE))
    assert ends_inside_version(past)
    files = compose_to_end_of(pipeline(), past, 7)
    assert (files["offsets/0"], "commits/0" in files) == (intent.offsets, True)
    assert files["offsets/1"] == inside(8, -1)

    read = replace(intent, batch=1, offsets=files["offsets/1"])
    assert not ends_inside_version(past_of(opening, intent, replace(intent, step=DONE), read))
    assert not ends_inside_version(past_of())
