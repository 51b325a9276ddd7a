"""The only way to a Pipeline: a YAML file or a mapping, read, checked and turned into values.

name -> file (project/specs.py) -> text -> plain values (yaml/file.py)
-> PipelineDocument (yaml/document.py, yaml/findings.py)
-> Pipeline (windows.py, aggregates.py, times.py, places.py, project/placing.py)
"""

import os
import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from datetime import date
from typing import Any

from pydantic import ValidationError

from windowing.errors import SpecError
from windowing.location import Location
from windowing.spec.aggregates import parse_aggregate, read_columns
from windowing.spec.batches import build_bound, check_bound
from windowing.spec.duration import Duration
from windowing.spec.expressions.parse import parse_expression
from windowing.spec.files import build_files, check_apart
from windowing.spec.kinds import Aggregate, Expression, Window
from windowing.spec.pipeline import Alarms, EventTime, Pipeline, Retention, Source, Watermark
from windowing.spec.places import Base, resolve_table
from windowing.spec.project.placing import Placed, place_by_file, place_by_itself
from windowing.spec.project.specs import find_named
from windowing.spec.references import (
    Reference,
    advise_name,
    columns_of,
    name_parts,
    read_column,
    read_output_column,
)
from windowing.spec.reserved import (
    check_computed_columns,
    check_named_columns,
    check_output_columns,
    check_windows,
)
from windowing.spec.retention import check_state
from windowing.spec.schedule import check_schedule
from windowing.spec.times import check_zone, kept_us, not_negative_us, or_forever, positive_us
from windowing.spec.windows import build_window, read_window_columns
from windowing.spec.words import quote_value
from windowing.spec.yaml.document import (
    AggregateDocument,
    AlarmsDocument,
    EventTimeDocument,
    PipelineDocument,
    RetentionDocument,
    SourceDocument,
    WatermarkDocument,
)
from windowing.spec.yaml.fields import ARRIVAL, NAME_PATTERN
from windowing.spec.yaml.file import document
from windowing.spec.yaml.findings import first_sentence


def load_pipeline(
    spec: str | os.PathLike[str] | Mapping[str, Any], target: str | None = None
) -> Pipeline:
    """The pipeline that a YAML file or a mapping spells; every law of specs holds of it.

    A text such as `orders` names a pipeline of the project that the current directory is in, if
    there is one. Relative paths in a file start at the file's directory, and what its spec does not
    say is that of the `target` of its project, by default the one that the project means. A mapping
    has absolute paths and no target.

    SpecError, in one sentence, for a wrong spec or project, and UsageError for a name that is none.
    """
    if isinstance(spec, Mapping):
        written = _parse_document(_plain_value(spec))
        return _build_pipeline(written, place_by_itself(written.lake), None)
    if not isinstance(spec, (str, os.PathLike)):
        raise SpecError("spec", f"{quote_value(spec)} is neither a path nor a mapping")
    file = find_named(spec) if isinstance(spec, str) else os.fsdecode(spec)
    values = document(file)
    try:
        written = _parse_document(values)
        landed = None if written.source.files is None else written.source.files.folder
        places = (written.source.table, landed)
        return _build_pipeline(written, place_by_file(written.lake, places, file, target), file)
    except SpecError as error:
        raise SpecError(error.field, error.message, error.file or file) from None


def _plain_value(value: Any, depth: int = 0) -> Any:
    """A mapping's content as YAML would have given it."""
    # A mapping made in Python can contain itself, which a YAML file without aliases can't.
    if depth > 16:
        raise SpecError("spec", "is nested too deeply; a pipeline needs four levels")
    if isinstance(value, Mapping):
        return {key: _plain_value(inner, depth + 1) for key, inner in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain_value(inner, depth + 1) for inner in value]
    if isinstance(value, date):
        return value.isoformat()
    return value


def _parse_document(values: Any) -> PipelineDocument:
    if not isinstance(values, dict):
        found = f"{quote_value(values)} is not a pipeline"
        if values is None:
            found = "the file is empty"
        raise SpecError("line 1", f"{found}; write a mapping that begins with name and source")
    if "steps" in values and "windows" not in values:
        raise SpecError(
            "steps", "belongs to a transcript, which `tidemark test` plays; name the spec of it"
        )
    try:
        return PipelineDocument.model_validate(values)
    except ValidationError as error:
        field, sentence = first_sentence(error)
        raise SpecError(field, sentence) from None


def _build_pipeline(written: PipelineDocument, placed: Placed, file: str | None) -> Pipeline:
    """The pipeline of a document; of several findings, the first in this order is raised."""
    check_name("name", written.name)
    aggregates = _parse_aggregates(written)
    source = _with_parts(_build_source(written, placed.base), written)
    _check_outputs(source, aggregates)
    windows = _build_windows(written, aggregates)
    retention = _parse_retention(written.retention)
    watermark = _parse_watermark(written.watermark, retention)
    check_state(written.retention.state, watermark, retention, windows)
    suite = None
    if written.expectations:
        suite = written.expectations.suite
        check_name("expectations.suite", suite)
    pipeline = Pipeline(
        name=written.name,
        lake=placed.lake,
        source=source,
        watermark=watermark,
        windows=windows,
        schedule=check_schedule(written.schedule),
        suite=suite,
        publish=written.publish,
        retention=retention,
        file=file,
        freshness_us=_parse_freshness(written.freshness, watermark),
        alarms=_parse_alarms(written.alarms),
        placed_by=placed.by,
    )
    _check_source(pipeline, written.source.table)
    return pipeline


def _check_outputs(source: Source, aggregates: tuple[Aggregate, ...]) -> None:
    try:
        check_output_columns(source.key, tuple(aggregate.name for aggregate in aggregates))
    except SpecError as error:
        for name, computed in source.columns:
            if source.field_of(name) == error.field:
                advice = f"{error.message}; {advise_name(computed)}"
                raise SpecError(error.field, advice) from None
        raise


def check_name(field: str, name: str) -> None:
    """Raises unless `name` can name a pipeline, a window's table or a suite."""
    if not re.fullmatch(NAME_PATTERN, name):
        raise SpecError(
            field,
            f"{quote_value(name)} is not a name; a name matches {NAME_PATTERN}, "
            f"as in {_propose_name(name)}",
        )


def _propose_name(given: str) -> str:
    """A name that is like what was given, as far as that has letters."""
    name = re.sub("[^a-z0-9]+", "_", given.lower()).strip("_0123456789")[:64]
    return name or "flights_hourly"


def _build_source(document: PipelineDocument, base: Base) -> Source:
    written = document.source
    columns = _parse_computed(written.columns or {}, written.changes)
    time, event_id, key, order_by = _read_time(written), *_read_columns(written)
    named, needed_by = columns_of([*time, *key, *event_id, *order_by], columns)
    check_named_columns(needed_by, written.changes)
    return Source(
        table=Location(resolve_table("source.table", written.table, base)),
        event_time=_read_event_time(written),
        key=tuple(column.name for column in key),
        zone=check_zone("source.zone", written.zone),
        event_id=next((column.name for column in event_id), None),
        order_by=_check_distinct([column.name for column in order_by]),
        changes=_check_changes(written),
        # In YAML null without quotes is no text, so what a spec writes as null arrives as None.
        on_bad_value=written.on_bad_value or "null",
        columns=columns + named,
        where=_parse_optional("source.where", written.where),
        files=None if written.files is None else build_files(written.files, document.name, base),
        needed_by=needed_by,
        batch=None if written.batch is None else build_bound(written.batch),
    )


def _with_parts(source: Source, written: PipelineDocument) -> Source:
    """The source with a column for each part of one that aggregates and windows read."""
    references: list[Reference] = []
    for name, given in written.aggregates.items():
        references += _read_aggregate_columns(f"aggregates.{name}", given)
    for name, window in written.windows.items():
        references += read_window_columns(name, window)
    parts, needed_by = columns_of(references, source.columns)
    check_named_columns(needed_by, source.changes)
    return replace(source, parts=parts, needed_by=source.needed_by + needed_by)


def _check_changes(written: SourceDocument) -> str:
    if written.changes == "feed" and written.event_time == ARRIVAL:
        raise SpecError(
            "source.changes",
            "'feed' counts events again, which can't be done with event_time: arrival; use refuse",
        )
    return written.changes


def _read_event_time(written: SourceDocument) -> EventTime:
    unit = written.event_time.unit if isinstance(written.event_time, EventTimeDocument) else None
    columns = _read_time(written)
    return EventTime(columns[0].name, unit) if columns else EventTime(None)


def _read_time(written: SourceDocument) -> tuple[Reference, ...]:
    """The column of event times; none where events happen when they arrive."""
    at = written.event_time
    if isinstance(at, EventTimeDocument):
        return (read_column("source.event_time.column", at.column),)
    return () if at == ARRIVAL else (read_column("source.event_time", at),)


def _read_columns(written: SourceDocument) -> Iterator[tuple[Reference, ...]]:
    """The columns of the event's id, those of the key, and those of the order."""
    ids = [] if written.event_id is None else [written.event_id]
    yield tuple(read_column("source.event_id", text) for text in ids)
    yield tuple(read_output_column(f"source.key[{i}]", c) for i, c in enumerate(written.key))
    yield tuple(read_column(f"source.order_by[{i}]", c) for i, c in enumerate(written.order_by))


def _parse_computed(columns: Mapping[str, str], changes: str) -> tuple[tuple[str, Expression], ...]:
    check_computed_columns(columns, changes)
    parsed = []
    for name, text in columns.items():
        parsed.append((name, parse_expression(f"source.columns.{name}", text)))
    return tuple(parsed)


def _parse_optional(field: str, text: str | None) -> Expression | None:
    if text is None:
        return None
    return parse_expression(field, text)


def _check_distinct(order_by: list[str]) -> tuple[str, ...]:
    """The columns, if they differ by more than case, which Delta doesn't distinguish."""
    taken: set[str] = set()
    for i, name in enumerate(order_by):
        if name.lower() in taken:
            wrong = f"{name!r} is given twice; name each column once"
            raise SpecError(f"source.order_by[{i}]", wrong)
        taken.add(name.lower())
    return tuple(order_by)


def _parse_aggregates(written: PipelineDocument) -> tuple[Aggregate, ...]:
    parsed = []
    for name, given in written.aggregates.items():
        parsed.append(_parse_aggregate(f"aggregates.{name}", name, given))
    return tuple(parsed)


def _parse_aggregate(field: str, name: str, given: str | AggregateDocument) -> Aggregate:
    if isinstance(given, str):
        return parse_aggregate(field, name, given)
    where = _parse_optional(f"{field}.where", given.where)
    if where is not None:
        where, _ = name_parts(f"{field}.where", where)
    return parse_aggregate(f"{field}.call", name, given.call, where)


def _read_aggregate_columns(field: str, given: str | AggregateDocument) -> Iterator[Reference]:
    """The columns that an aggregate names, and the parts of columns."""
    if isinstance(given, str):
        yield from read_columns(field, given)
        return
    yield from read_columns(f"{field}.call", given.call)
    where = _parse_optional(f"{field}.where", given.where)
    if where is not None:
        _, parts = name_parts(f"{field}.where", where)
        yield from parts


def _build_windows(
    written: PipelineDocument, aggregates: tuple[Aggregate, ...]
) -> tuple[Window, ...]:
    for name in written.windows:
        check_name(f"windows.{name}", name)
    check_windows(written.windows)
    windows = []
    for name, given in written.windows.items():
        windows.append(build_window(name, given, aggregates))
    return tuple(windows)


def _parse_watermark(written: WatermarkDocument, retention: Retention) -> Watermark:
    delay_us = not_negative_us("watermark.delay", written.delay)
    allowed_lateness_us = or_forever(
        "watermark.allowed_lateness", written.allowed_lateness, not_negative_us
    )
    max_future_us = not_negative_us("watermark.max_future", written.max_future)
    # Without a horizon, event ids are kept as long as state.
    dedupe_horizon_us = retention.state_us
    if written.dedupe_horizon is not None:
        dedupe_horizon_us = not_negative_us("watermark.dedupe_horizon", written.dedupe_horizon)
    idle_after_us = None
    if written.idle_after is not None:
        idle_after_us = not_negative_us("watermark.idle_after", written.idle_after)
    return Watermark(
        delay_us=delay_us,
        allowed_lateness_us=allowed_lateness_us,
        max_future_us=max_future_us,
        dedupe_horizon_us=dedupe_horizon_us,
        idle_after_us=idle_after_us,
    )


def _parse_retention(written: RetentionDocument) -> Retention:
    return Retention(
        state_us=or_forever("retention.state", written.state, kept_us),
        refused_us=or_forever("retention.refused", written.refused, kept_us),
        output_us=or_forever("retention.output", written.output, kept_us),
        revisions_us=or_forever("retention.revisions", written.revisions, kept_us),
    )


def _parse_freshness(text: str | None, watermark: Watermark) -> int | None:
    if text is None:
        return None
    freshness_us = positive_us("freshness", text)
    if freshness_us <= watermark.delay_us:
        raise SpecError(
            "freshness",
            f"{text!r} is not longer than watermark.delay, {Duration(watermark.delay_us)}; the "
            "watermark stays that far behind events, so the pipeline would always be stale",
        )
    return freshness_us


def _parse_alarms(written: AlarmsDocument) -> Alarms:
    max_age_us = None
    if written.max_age is not None:
        max_age_us = kept_us("alarms.max_age", written.max_age)
    return Alarms(written.quarantined, written.lost_values, max_age_us, written.rows_factor)


def _check_source(pipeline: Pipeline, given: str) -> None:
    table, root = pipeline.source.table, pipeline.root
    if root.contains(table):
        raise SpecError(
            "source.table",
            f"{quote_value(given)} lies among this pipeline's own tables in {root}; "
            "use another table or name",
        )
    if table.contains(root) and not _is_hidden(pipeline.lake, table):
        raise SpecError(
            "lake",
            f"{quote_value(str(pipeline.lake))} lies in source.table, where a VACUUM deletes what "
            f"is not its own; move {root} to a directory elsewhere, and name that",
        )
    check_bound(pipeline)
    if pipeline.source.files is not None:
        check_apart(pipeline.source.files, table, root)


def _is_hidden(lake: Location, table: Location) -> bool:
    """Whether a directory between table and lake is one that every VACUUM leaves alone."""
    return re.search("/[_.]", lake.text.removeprefix(table.text)) is not None
