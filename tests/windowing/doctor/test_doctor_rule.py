"""Which stories fit and which do not, one finding each, without files."""

from dataclasses import replace

import pytest

from tests.windowing.cases import pipeline
from windowing.doctor.rule import (
    RECOVER,
    REPAIRS,
    Finding,
    advice,
    advise_on,
    of_batches,
    of_pointer,
    of_runs,
    of_tables,
)
from windowing.ledger.history import LedgerHistory
from windowing.ledger.rule import CLOSE, DONE, INTENT, OPEN, PUBLISH, LedgerEntry


def batches(*numbers: int) -> tuple[LedgerEntry, ...]:
    """A run for each batch."""
    return tuple(
        entry
        for n in numbers
        for entry in (
            LedgerEntry(OPEN, run=n + 1),
            LedgerEntry(INTENT, run=n + 1, batch=n),
            LedgerEntry(DONE, run=n + 1, batch=n),
            LedgerEntry(CLOSE, run=n + 1),
        )
    )


PAST = LedgerHistory(batches(0, 1, 2))
BEGUN = LedgerHistory(
    (*PAST.entries, LedgerEntry(OPEN, run=4), LedgerEntry(INTENT, run=4, batch=3))
)


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
    for step, past in ((None, PAST), (12, published), (11, published)):
        assert not [*of_pointer(step, {}, past)]
    for step, past in ((13, published), (0, PAST)):
        (found,) = of_pointer(step, {}, past)
        assert (found.code, found.repair) == ("POINTER_NEWER", RECOVER)


def test_the_pointer_names_the_versions_that_the_ledger_has_published() -> None:
    entry = LedgerEntry(PUBLISH, seq=12, versions={"hourly": 7, "daily": 3})
    published = LedgerHistory((*PAST.entries, entry))
    for step, versions in ((12, {"hourly": 7}), (11, {"hourly": 6}), (None, {})):
        assert not [*of_pointer(step, versions, published)]
    (found,) = of_pointer(12, {"hourly": 7, "daily": 4, "weekly": 1}, published)
    expected = "it names version 4 of daily, and step 12 of the ledger has published version 3"
    assert (found.code, found.repair, found.found) == ("POINTER_CHANGED", RECOVER, expected)
    (found,) = of_pointer(12, {"weekly": 1}, published)
    assert found.found.endswith("has published none")


def test_tables_of_another_pipeline_are_moved_by_whoever_put_them_there() -> None:
    told = pipeline()
    assert advice(told, REPAIRS["TABLE_FOREIGN"]) == (
        "move them away, or give the pipeline another name"
    )
    assert advice(told) == "`tidemark reset p` starts the pipeline over from its source"
    assert advise_on(told, Finding("TABLE_LOST", "hourly")) == (
        f"restore {told.root} as a whole from a backup, or {advice(told)}"
    )
    newer = Finding("POINTER_NEWER", "it copies step 3 of the ledger")
    assert advise_on(told, newer) == "`tidemark recover p` rebuilds it from the ledger"
    assert advice(replace(told, file="shop.yaml"), REPAIRS["POINTER_NEWER"]) == (
        "`tidemark recover shop.yaml` rebuilds it from the ledger"
    )
