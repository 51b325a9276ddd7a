"""A spec as plain data under stored names: digests, which identify a live pipeline, are made of it.

Stored names never change, whatever Python calls the class or the field:

- a kind of window is stored under the name that description.py gives it;
- a field is stored under its own name or, once it was renamed, under the name that
  `field(metadata={STORED: "old name"})` gives it;
- a field that equals its default is left out, so a field that is added with a default changes the
  description of no spec that was written before. A default is stored by that: it never changes.
"""

from collections.abc import Collection, Iterator
from dataclasses import MISSING, Field, dataclass, fields, is_dataclass
from typing import Any

from windowing.spec.description import describe_window
from windowing.spec.kinds import Aggregate, Window
from windowing.spec.pipeline import Pipeline

STORED = "stored"
"""The metadata of a renamed field that holds the name it is stored under."""

SOURCE, WATERMARK, WINDOW, AGGREGATE = "source", "watermark", "window", "aggregate"

_FREE_OF_PIPELINE = (
    "file",
    "lake",
    "schedule",
    "suite",
    "publish",
    "retention",
    "freshness_us",
    "alarms",
    "placed_by",
)
_FREE_OF_SOURCE = ("table", "changes", "files", "parts", "needed_by", "batch")
_FREE_OF_SHOWN = ("change_feed", "empty_limit")
"""What may change in a live pipeline: where tables lie, when it runs, what is kept how long."""


@dataclass(frozen=True)
class Part:
    """One part of a spec, `described` as plain data under stored names.

    `kind` is source, watermark, window or aggregate; `window` and `aggregate` are the names of
    what it belongs to, None where that is nothing.
    """

    kind: str
    described: dict[str, Any]
    window: str | None = None
    aggregate: str | None = None


def described_parts(pipeline: Pipeline) -> Iterator[Part]:
    """Every part of the spec that state and outputs depend on."""
    whole = _without(describe_stored_form(pipeline), *_FREE_OF_PIPELINE, "windows", "watermark")
    source = _without(whole.pop("source"), *_FREE_OF_SOURCE)
    yield Part(WATERMARK, describe_stored_form(pipeline.watermark))
    yield Part(SOURCE, {"source": source, "pipeline": whole})
    for window in pipeline.windows:
        read = [column.name for column in describe_window(window).read_columns]
        described = {**_described_window(window), **_describe_parts(pipeline, read)}
        yield Part(WINDOW, described, window.name)
        for aggregate in window.aggregates:
            described = {
                **describe_stored_form(aggregate),
                **_describe_parts(pipeline, _columns_of(aggregate)),
            }
            yield Part(AGGREGATE, described, window.name, aggregate.name)


def _columns_of(aggregate: Aggregate) -> tuple[str | None, ...]:
    conditions = () if aggregate.where is None else aggregate.where.columns
    return (aggregate.column, aggregate.by, *conditions)


def _describe_parts(pipeline: Pipeline, names: Collection[str | None]) -> dict[str, Any]:
    """The paths of the parts of columns that are among `names`; nothing where there are none."""
    parts = [(name, expression.sql) for name, expression in pipeline.source.parts if name in names]
    return {"parts": parts} if parts else {}


def describe_stored_form(value: Any) -> Any:
    """A value of the spec as plain data: stored names, without fields at their default."""
    if isinstance(value, tuple):
        return tuple(describe_stored_form(each) for each in value)
    if not is_dataclass(value):
        return value
    given = {field: getattr(value, field.name) for field in fields(value)}
    return {stored_name(f): describe_stored_form(v) for f, v in given.items() if v != default_of(f)}


def stored_name(field: "Field[Any]") -> str:
    """The name that `field` is stored under."""
    return str(field.metadata.get(STORED, field.name))


def default_of(field: "Field[Any]") -> Any:
    """What `field` is when a spec does not say; MISSING where it has to."""
    return field.default if field.default_factory is MISSING else field.default_factory()


def _described_window(window: Window) -> dict[str, Any]:
    """A window without its aggregates; whether it shows windows without events, not how many."""
    found = _without(describe_stored_form(window), "aggregates", "shown")
    shown = _without(describe_stored_form(window.shown), *_FREE_OF_SHOWN)
    if window.shown.empty_limit is not None:
        shown["empty"] = True
    return {"kind": describe_window(window).kind, **found, **({"shown": shown} if shown else {})}


def _without(described_as: dict[str, Any], *names: str) -> dict[str, Any]:
    return {name: value for name, value in described_as.items() if name not in names}
