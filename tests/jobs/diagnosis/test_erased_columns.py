"""A column of which values are erased has to stay there, and to stay what it is."""

from collections.abc import Mapping
from typing import Any

import pytest
from pyspark.sql import types as T

from jobs.diagnosis.spec_changes import check_erased_columns
from windowing.errors import StateRefused
from windowing.ledger.erased import Erasure, note_erased, note_lifted
from windowing.ledger.rule import ERASE_LIST, LedgerEntry, LedgerExcerpt
from windowing.spec.load import load_pipeline
from windowing.spec.pipeline import Pipeline

PART = Erasure("digest", "customer", "trip.customer")
PLAIN = Erasure("digest", "customer")


def pipeline_with(aggregates: Mapping[str, str], columns: Mapping[str, str]) -> Pipeline:
    """A pipeline whose spec computes these columns."""
    return load_pipeline(
        {
            "name": "trips",
            "lake": "/lake",
            "source": {"table": "/rides", "event_time": "ts", "key": ["city"], "columns": columns},
            "aggregates": {"n": "count()", **aggregates},
            "windows": {"hourly": {"kind": "tumbling", "size": "1 hour"}},
        }
    )


def check(
    erasures: LedgerExcerpt,
    stored: str = "city",
    aggregates: Mapping[str, str] | None = None,
    columns: Mapping[str, str] | None = None,
) -> None:
    """Checks a source with a stored column, and what its spec computes, behind these erasures."""
    pipeline = pipeline_with(aggregates or {}, columns or {})
    names = (stored, *pipeline.source.computed)
    found = T.StructType([T.StructField(name, T.StringType()) for name in names])
    check_erased_columns(pipeline, found, erasures)


def erased(*notes: str) -> LedgerExcerpt:
    """The ledger of a pipeline with entries of these notes."""
    return LedgerExcerpt(tuple(LedgerEntry(ERASE_LIST, note=note) for note in notes))


def test_a_column_that_is_what_it_was_may_be_read_by_another_aggregate() -> None:
    past = erased(note_erased("s", PART), note_erased("s", Erasure("digest")))
    check(past, aggregates={"who": "collect(trip.customer)"})
    check(past, aggregates={"renamed": "first(trip.customer)"})
    check(erased(note_erased("s", PLAIN)), stored="customer")


@pytest.mark.parametrize(
    ("erasure", "spec", "message"),
    [
        (PART, {}, "SPEC_CHANGED: trips: .* was 'trip.customer' and is not there any more"),
        (
            PART,
            {"aggregates": {"who": "collect(driver.customer)"}},
            "SPEC_CHANGED: trips: .* was 'trip.customer' and is 'driver.customer' now",
        ),
        (
            PART,
            {"stored": "customer"},
            "SPEC_CHANGED: trips: .* was 'trip.customer' and is a column of the source now",
        ),
        (
            PLAIN,
            {"columns": {"customer": "upper(name)"}},
            r"SPEC_CHANGED: trips: .* was a column of the source and is 'upper\(name\)' now",
        ),
        (
            PLAIN,
            {},
            "SOURCE_CHANGED: /rides: .* was a column of the source and is not there any more",
        ),
    ],
)
def test_a_column_that_is_gone_or_another_one_is_refused_until_its_values_are_lifted(
    erasure: Erasure, spec: dict[str, Any], message: str
) -> None:
    note = note_erased("s", erasure)
    with pytest.raises(StateRefused, match=message) as refused:
        check(erased(note), **spec)
    assert "`tidemark erase trips --where customer=VALUE --lift`" in str(refused.value)
    check(erased(note, note_lifted("s", erasure)), **spec)
