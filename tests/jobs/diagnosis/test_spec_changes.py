"""Which changes of source and spec a live pipeline refuses, told from schemas alone."""

from typing import Any

import pytest
from pyspark.sql import types as T

from jobs.diagnosis.spec_changes import check_source_types, check_spec_change, made_by
from tests.windowing.spec.specs import changed
from windowing.errors import StateRefused
from windowing.ledger.rule import OPEN, LedgerEntry, LedgerExcerpt
from windowing.spec.load import load_pipeline
from windowing.spec.pipeline import Pipeline

PLAIN = {"table": "/data/bronze/flights", "event_time": "departed_at", "key": ["origin"]}
INT, DOUBLE, TEXT = T.IntegerType(), T.DoubleType(), T.StringType()


def struct_of(**fields: T.DataType) -> T.StructType:
    return T.StructType([T.StructField(name, kind) for name, kind in fields.items()])


def source_of(**columns: T.DataType) -> T.StructType:
    """The columns of the source, with other types of some and with computed ones."""
    stored: dict[str, T.DataType] = {
        "departed_at": T.TimestampType(),
        "origin": TEXT,
        "store": INT,
        "delay": INT,
        "trip": struct_of(fare=INT, seats=INT),
        "tags": T.ArrayType(INT),
    }
    return struct_of(**{**stored, **columns})


def pipeline_of(aggregates: dict[str, str], **source: Any) -> Pipeline:
    return load_pipeline(changed(source={**PLAIN, **source}, aggregates=aggregates))


def made(pipeline: Pipeline, found: T.StructType) -> LedgerExcerpt:
    """A ledger whose state was made by this spec from such a source."""
    return LedgerExcerpt((LedgerEntry(OPEN, note=made_by(pipeline, found)),))


COUNTED = {"n": "count()"}
INPUTS: dict[str, tuple[dict[str, Any], dict[str, T.DataType], str]] = {
    "computed key": (
        {"columns": {"k": "cast(store as string)"}, "key": ["k"]},
        {"store": DOUBLE},
        "'store' was of type int when state was made and is double now",
    ),
    "computed id": (
        {"columns": {"k": "cast(store as string)"}, "event_id": "k"},
        {"store": DOUBLE},
        "'store' was of type int",
    ),
    "condition": (
        {"where": "cast(store as string) in ('5', '7')"},
        {"store": DOUBLE},
        "'store' was of type int",
    ),
    "field of a struct": (
        {"where": "cast(trip.fare as string) = '5'"},
        {"trip": struct_of(fare=DOUBLE, seats=INT)},
        "'`trip`.`fare`' was of type int",
    ),
    "element of an array": (
        {"where": "cast(tags[0] as string) = '5'"},
        {"tags": T.ArrayType(DOUBLE)},
        "'`tags`.`0`' was of type int",
    ),
}
"""What of a source reads a column, the column's later type, and the sentence about it."""


@pytest.mark.parametrize("used", INPUTS)
def test_what_expressions_of_the_source_read_keeps_its_type(used: str) -> None:
    source, later, sentence = INPUTS[used]
    pipeline = pipeline_of(COUNTED, **source)
    past = made(pipeline, source_of(k=TEXT))
    check_source_types(pipeline, source_of(k=TEXT), past)
    with pytest.raises(StateRefused, match=f"SOURCE_CHANGED: .*{sentence}"):
        check_source_types(pipeline, source_of(k=TEXT, **later), past)


@pytest.mark.parametrize("where", ["cast(trip.fare as string) = '5'", "trip is not null"])
def test_a_struct_that_expressions_read_may_get_fields_and_widen_others(where: str) -> None:
    pipeline = pipeline_of(COUNTED, where=where)
    past = made(pipeline, source_of())
    wider = struct_of(fare=INT, seats=T.LongType(), tip=INT)
    check_source_types(pipeline, source_of(trip=wider), past)


def test_ledgers_that_do_not_have_the_types_of_inputs_go_on() -> None:
    before = made(pipeline_of(COUNTED), source_of())
    pipeline = pipeline_of(COUNTED, where="cast(store as string) in ('5', '7')")
    check_source_types(pipeline, source_of(store=DOUBLE), before)


def test_a_column_that_the_spec_does_not_use_any_more_may_have_any_type() -> None:
    pipeline = pipeline_of({**COUNTED, "s": "sum(delay)"})
    past = made(pipeline, source_of())
    with pytest.raises(StateRefused, match="'delay' was of type int"):
        check_source_types(pipeline, source_of(delay=T.LongType()), past)
    check_source_types(pipeline_of(COUNTED), source_of(delay=T.LongType()), past)


@pytest.mark.parametrize("state", ["40 days", "forever"])
def test_a_changed_retention_of_state_is_named_where_ids_are_kept_as_long(state: str) -> None:
    lateness = {"watermark/allowed_lateness": "1 day"}
    windows = {"windows": {"hourly": {"kind": "tumbling", "size": "1 hour"}}}
    before = load_pipeline(changed(**lateness, **windows, **{"retention/state": "30 days"}))
    later = load_pipeline(changed(**lateness, **windows, **{"retention/state": state}))
    with pytest.raises(StateRefused, match=r"watermark \(or retention\.state, .*\) differ from"):
        check_spec_change(later, made(before, source_of()))


def test_a_retention_of_state_that_is_no_part_of_the_watermark_is_not_named() -> None:
    horizon = {"watermark/dedupe_horizon": "1 day"}
    before = load_pipeline(changed(**horizon))
    later = load_pipeline(changed(**horizon, **{"watermark/delay": "5 minutes"}))
    with pytest.raises(StateRefused, match="watermark differ from"):
        check_spec_change(later, made(before, source_of()))
