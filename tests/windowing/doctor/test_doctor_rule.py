"""Which stories fit and which do not, one finding each, without files."""

from dataclasses import replace

import pytest

from tests.windowing.cases import pipeline
from windowing.doctor.rule import (
    RECOVER,
    REPAIRS,
    Finding,
    Stream,
    advice,
    advise_on,
    of_batches,
    of_pointer,
    of_runs,
    of_stream,
    of_tables,
    readable,
    same_cut,
)
from windowing.ledger.rule import (
    CLOSE,
    DONE,
    INTENT,
    OPEN,
    PUBLISH,
    SKIP,
    LedgerEntry,
    LedgerHistory,
)

OFFSETS = 'v1\n{"batchWatermarkMs":0}\n{"reservoirVersion":%d,"index":-1}'


def batches(*numbers: int) -> tuple[LedgerEntry, ...]:
    """A run for each batch."""
    return tuple(
        entry
        for n in numbers
        for entry in (
            LedgerEntry(OPEN, run=n + 1),
            LedgerEntry(INTENT, run=n + 1, batch=n, offsets=OFFSETS % n, note="q"),
            LedgerEntry(DONE, run=n + 1, batch=n, offsets=OFFSETS % n, note="q"),
            LedgerEntry(CLOSE, run=n + 1),
        )
    )


PAST = LedgerHistory(batches(0, 1, 2))
STREAM = Stream("q", {n: OFFSETS % n for n in (0, 1, 2)}, frozenset((0, 1, 2)))
BEGUN = LedgerHistory(
    (
        *PAST.entries,
        LedgerEntry(OPEN, run=4),
        LedgerEntry(INTENT, run=4, batch=3, offsets=OFFSETS % 3, note="q"),
    )
)
FOREIGN_CUT = {**STREAM.offsets, 2: OFFSETS % 9}


@pytest.mark.parametrize(
    ("stream", "past"),
    [
        (Stream(there=False), LedgerHistory()),
        (Stream(), LedgerHistory()),
        (Stream("q", {0: OFFSETS % 0}), LedgerHistory()),
        (Stream("q", {0: OFFSETS % 0}), LedgerHistory(BEGUN.entries[:2])),
        (Stream("q", {0: OFFSETS % 0}), LedgerHistory(BEGUN.entries[:3])),
        (STREAM, PAST),
        (replace(STREAM, commits=frozenset((0, 1))), PAST),
        (replace(STREAM, offsets={**STREAM.offsets, 3: OFFSETS % 3}), PAST),
        (replace(STREAM, offsets={**STREAM.offsets, 3: OFFSETS % 3}), BEGUN),
        (replace(STREAM, offsets={2: OFFSETS % 2}), PAST),
        (
            STREAM,
            LedgerHistory(
                (*PAST.entries[:-4], LedgerEntry(SKIP, batch=2, offsets=OFFSETS % 2, note="q"))
            ),
        ),
    ],
    ids=[
        "nothing",
        "empty",
        "first batch read",
        "first batch begun",
        "first batch done",
        "same",
        "not committed",
        "one more read",
        "one more begun",
        "old files gone",
        "skipped",
    ],
)
def test_what_a_run_can_go_on_from_is_no_finding(stream: Stream, past: LedgerHistory) -> None:
    assert of_stream(stream, past) == ()


@pytest.mark.parametrize(
    ("stream", "past", "code"),
    [
        (Stream(there=False), PAST, "CHECKPOINT_LOST"),
        (Stream(there=False), LedgerHistory(BEGUN.entries[-2:]), "CHECKPOINT_LOST"),
        (Stream(), PAST, "CHECKPOINT_OLDER"),
        (Stream("q", {0: OFFSETS % 0}, frozenset((0,))), PAST, "CHECKPOINT_OLDER"),
        (replace(STREAM, commits=frozenset((0,))), PAST, "CHECKPOINT_OLDER"),
        (STREAM, BEGUN, "CHECKPOINT_OLDER"),
        (replace(STREAM, query="other"), PAST, "CHECKPOINT_FOREIGN"),
        (replace(STREAM, offsets=FOREIGN_CUT), PAST, "CHECKPOINT_FOREIGN"),
        (replace(STREAM, query="other", commits=frozenset(range(9))), PAST, "CHECKPOINT_FOREIGN"),
        (replace(STREAM, query=None), PAST, "CHECKPOINT_DAMAGED"),
        (replace(STREAM, damaged=("offsets/2",)), PAST, "CHECKPOINT_DAMAGED"),
        (replace(STREAM, offsets={**STREAM.offsets, 5: OFFSETS % 5}), PAST, "CHECKPOINT_DAMAGED"),
        (STREAM, LedgerHistory(), "LEDGER_LOST"),
        (STREAM, LedgerHistory(batches(0, 1)), "LEDGER_OLDER"),
    ],
)
def test_what_does_not_fit_has_one_name(stream: Stream, past: LedgerHistory, code: str) -> None:
    (found,) = of_stream(stream, past)
    assert found.code == code
    assert found.repair == REPAIRS[code]


def test_tables_are_there_and_at_least_as_new_as_the_ledger() -> None:
    recorded = {"a": 3, "b": 4, "c": 5, "d": 6}
    assert list(of_tables(recorded, recorded, {})) == []
    found = list(
        of_tables(recorded, {"a": None, "b": 3, "c": 7, "d": 9}, {"c": "DELETE made version 6"})
    )
    assert [(f.code, f.found.split()[0]) for f in found] == [
        ("TABLE_LOST", "a"),
        ("TABLE_OLDER", "b"),
        ("TABLE_CHANGED", "c"),
    ]


@pytest.mark.parametrize(
    ("past", "newest"), [(PAST, 2), (BEGUN, 3), (LedgerHistory(), -1)], ids=["rest", "open", "new"]
)
def test_tables_contain_no_batch_that_the_ledger_has_not_begun(
    past: LedgerHistory, newest: int
) -> None:
    assert not [*of_batches({"_seen": newest, "_late": newest - 1}, past)]
    (found,) = of_batches({"_seen": newest + 1, "_late": newest}, past)
    assert found.code == "LEDGER_OLDER"
    assert found.found.startswith(f"_seen contains batch {newest + 1}, and the ledger ends with ")


def test_outputs_contain_no_run_that_the_ledger_has_not_begun() -> None:
    assert not [*of_runs({"hourly": 4, "daily": 0}, BEGUN)]
    (found,) = of_runs({"hourly": 5, "daily": 4}, BEGUN)
    expected = "hourly contains rows of run 5, and the ledger ends with run 4"
    assert (found.code, found.found) == ("LEDGER_OLDER", expected)


def test_the_pointer_is_at_most_as_new_as_the_ledger() -> None:
    published = LedgerHistory((*PAST.entries, LedgerEntry(PUBLISH, seq=12)))
    assert not [*of_pointer(None, PAST), *of_pointer(12, published), *of_pointer(11, published)]
    for step, past in ((13, published), (0, PAST)):
        (found,) = of_pointer(step, past)
        assert (found.code, found.repair) == ("POINTER_NEWER", RECOVER)


def test_two_cuts_are_the_same_by_the_place_of_the_source_alone() -> None:
    assert same_cut('v1\n{"a":1}\n{"v":2}', 'v1\n{"a":2}\n{"v":2}')
    assert same_cut(None, "v1")
    assert not same_cut('v1\n{}\n{"v":2}', 'v1\n{}\n{"v":3}')


@pytest.mark.parametrize("text", [OFFSETS % 1, "v1\n-\n{}"])
def test_a_file_of_the_checkpoint_is_whole(text: str) -> None:
    assert readable(text, 3)


@pytest.mark.parametrize("text", ["", "v1\n{}", OFFSETS % 1 + "}", "v1\n{}\n[]", "\x00" * 40])
def test_a_file_of_the_checkpoint_is_not_whole(text: str) -> None:
    assert not readable(text, 3)


def test_tables_of_another_pipeline_are_moved_by_whoever_put_them_there() -> None:
    told = pipeline()
    assert advice(told, REPAIRS["TABLE_FOREIGN"]) == (
        "move them away, or give the pipeline another name"
    )
    assert advice(told) == "`tidemark reset p` starts the pipeline over from its source"
    assert advise_on(told, Finding("TABLE_LOST", "hourly")) == (
        f"restore {told.root} as a whole from a backup, or {advice(told)}"
    )
    lost = Finding("CHECKPOINT_LOST", "there is no checkpoint")
    assert advise_on(told, lost) == "`tidemark recover p` rebuilds it from the ledger"
    assert advice(replace(told, file="shop.yaml"), REPAIRS["CHECKPOINT_LOST"]) == (
        "`tidemark recover shop.yaml` rebuilds it from the ledger"
    )
