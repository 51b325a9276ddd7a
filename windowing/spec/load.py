"""The only way to a Pipeline: a YAML file or a mapping, read, checked and turned into values.

text -> plain values (yaml/file.py) -> PipelineDocument (yaml/document.py, yaml/findings.py)
-> Pipeline (windows.py, aggregates.py, times.py, places.py)
"""

import os
import re
from collections.abc import Mapping
from datetime import date
from typing import Any

from pydantic import ValidationError

from windowing.errors import SpecError
from windowing.spec.aggregates import parse_aggregate
from windowing.spec.expressions.parse import parse_expression
from windowing.spec.kinds import Aggregate, Expression
from windowing.spec.pipeline import EventTime, Pipeline, Retention, Source, Watermark
from windowing.spec.places import directory, table
from windowing.spec.reserved import check_computed_columns, check_output_columns, check_windows
from windowing.spec.retention import check_state
from windowing.spec.schedule import schedule
from windowing.spec.times import kept_us, not_negative_us, or_forever, zone
from windowing.spec.windows import build_window
from windowing.spec.words import quote_value
from windowing.spec.yaml.document import (
    AggregateDocument,
    EventTimeDocument,
    PipelineDocument,
    RetentionDocument,
    SourceDocument,
    WatermarkDocument,
)
from windowing.spec.yaml.fields import ARRIVAL, NAME_PATTERN
from windowing.spec.yaml.file import document
from windowing.spec.yaml.findings import first_sentence


def load_pipeline(spec: str | os.PathLike[str] | Mapping[str, Any]) -> Pipeline:
    """The pipeline that a YAML file or a mapping spells; every law of specs holds of it.

    Relative paths in a file start at the file's directory; a mapping has absolute ones.
    SpecError, in one sentence, for anything else.
    """
    if isinstance(spec, Mapping):
        return _pipeline(_written(_plain(spec)), None, None)
    if not isinstance(spec, (str, os.PathLike)):
        raise SpecError("spec", f"{quote_value(spec)} is neither a path nor a mapping")
    file = os.fsdecode(spec)
    values = document(file)
    try:
        return _pipeline(_written(values), os.path.dirname(os.path.abspath(file)), file)
    except SpecError as error:
        raise SpecError(error.field, error.message, file) from None


def _plain(value: Any, depth: int = 0) -> Any:
    """A mapping's content as YAML would have given it."""
    if depth > 16:
        raise SpecError("spec", "is nested too deeply; a pipeline needs four levels")
    if isinstance(value, Mapping):
        return {key: _plain(inner, depth + 1) for key, inner in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(inner, depth + 1) for inner in value]
    return value.isoformat() if isinstance(value, date) else value


def _written(values: Any) -> PipelineDocument:
    if not isinstance(values, dict):
        raise SpecError(
            "line 1",
            f"{quote_value(values)} is not a pipeline; "
            "write a mapping that begins with name, lake and source",
        )
    try:
        return PipelineDocument.model_validate(values)
    except ValidationError as error:
        field, sentence = first_sentence(error)
        raise SpecError(field, sentence) from None


def _pipeline(written: PipelineDocument, base: str | None, file: str | None) -> Pipeline:
    check_name("name", written.name)
    source, aggregates = _source(written.source, base), _aggregates(written)
    check_output_columns(source.key, tuple(a.name for a in aggregates))
    for name in written.windows:
        check_name(f"windows.{name}", name)
    check_windows(written.windows)
    windows = tuple(
        build_window(name, given, aggregates) for name, given in written.windows.items()
    )
    retention = _retention(written.retention)
    watermark = _watermark(written.watermark, retention)
    check_state(written.retention.state, watermark, retention, windows)
    if written.expectations:
        check_name("expectations.suite", written.expectations.suite)
    pipeline = Pipeline(
        name=written.name,
        lake=directory("lake", written.lake, base),
        source=source,
        watermark=watermark,
        windows=windows,
        schedule=schedule("schedule", written.schedule),
        suite=written.expectations.suite if written.expectations else None,
        retention=retention,
        file=file,
    )
    _check_source(pipeline, written.source.table)
    return pipeline


def check_name(field: str, name: str) -> None:
    """Raises unless `name` can name a pipeline, a window's table or a suite."""
    if not re.fullmatch(NAME_PATTERN, name):
        raise SpecError(
            field,
            f"{quote_value(name)} is not a name; a name matches {NAME_PATTERN}, "
            "as in flights_hourly",
        )


def _source(written: SourceDocument, base: str | None) -> Source:
    return Source(
        table=table("source.table", written.table, base),
        event_time=_event_time(written),
        key=tuple(written.key),
        zone=zone("source.zone", written.zone),
        event_id=written.event_id,
        order_by=_once("source.order_by", written.order_by),
        changes=_changes(written),
        on_bad_value=written.on_bad_value or "null",
        columns=_computed(written.columns or {}, written.changes),
        where=None if written.where is None else parse_expression("source.where", written.where),
    )


def _changes(written: SourceDocument) -> str:
    if written.changes == "feed" and written.event_time == ARRIVAL:
        raise SpecError(
            "source.changes",
            "'feed' counts events again, which can't be done with event_time: arrival; use refuse",
        )
    return written.changes


def _event_time(written: SourceDocument) -> EventTime:
    at = written.event_time
    if isinstance(at, EventTimeDocument):
        return EventTime(at.column, at.unit)
    return EventTime(None if at == ARRIVAL else at)


def _computed(columns: Mapping[str, str], changes: str) -> tuple[tuple[str, Expression], ...]:
    check_computed_columns(columns, changes)
    return tuple(
        (name, parse_expression(f"source.columns.{name}", text)) for name, text in columns.items()
    )


def _once(field: str, columns: list[str]) -> tuple[str, ...]:
    for i, name in enumerate(columns):
        if name.lower() in [other.lower() for other in columns[:i]]:
            raise SpecError(f"{field}[{i}]", f"{name!r} is given twice; name each column once")
    return tuple(columns)


def _aggregates(written: PipelineDocument) -> tuple[Aggregate, ...]:
    return tuple(
        _aggregate(f"aggregates.{name}", name, given) for name, given in written.aggregates.items()
    )


def _aggregate(field: str, name: str, given: str | AggregateDocument) -> Aggregate:
    if isinstance(given, str):
        return parse_aggregate(field, name, given)
    where = None if given.where is None else parse_expression(f"{field}.where", given.where)
    return parse_aggregate(f"{field}.call", name, given.call, where)


def _watermark(written: WatermarkDocument, retention: Retention) -> Watermark:
    horizon = written.dedupe_horizon
    return Watermark(
        delay_us=not_negative_us("watermark.delay", written.delay),
        allowed_lateness_us=or_forever(
            "watermark.allowed_lateness", written.allowed_lateness, not_negative_us
        ),
        max_future_us=not_negative_us("watermark.max_future", written.max_future),
        dedupe_horizon_us=retention.state_us
        if horizon is None
        else not_negative_us("watermark.dedupe_horizon", horizon),
        idle_after_us=None
        if written.idle_after is None
        else not_negative_us("watermark.idle_after", written.idle_after),
    )


def _retention(written: RetentionDocument) -> Retention:
    return Retention(
        state_us=or_forever("retention.state", written.state, kept_us),
        refused_us=or_forever("retention.refused", written.refused, kept_us),
        output_us=or_forever("retention.output", written.output, kept_us),
    )


def _check_source(pipeline: Pipeline, given: str) -> None:
    if f"{pipeline.source.table}/".startswith(f"{pipeline.root}/"):
        raise SpecError(
            "source.table",
            f"{quote_value(given)} lies among this pipeline's own tables in {pipeline.root}; "
            "use another table or name",
        )
