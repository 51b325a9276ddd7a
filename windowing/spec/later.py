"""What the spec language has but this version doesn't carry out: refused by name, never ignored."""

from collections.abc import Iterator

from windowing.errors import SpecError
from windowing.spec.document import AggregateDocument, GridDocument, PipelineDocument, SessionDocument, WindowDocument
from windowing.spec.words import shown

ARRIVAL = "arrival"
Given = tuple[str, object, str]


def refuse_what_comes_later(written: PipelineDocument) -> None:
    """Raises for the first field that asks for something not supported yet."""
    for field, value, instead in _asked(written):
        raise SpecError(field, f"{shown(value)} is not supported yet; {instead}")


def _asked(written: PipelineDocument) -> Iterator[Given]:
    source = written.source
    if source.event_time == ARRIVAL:
        yield "source.event_time", ARRIVAL, "name a column of the source"
    if source.changes == "feed":
        yield "source.changes", source.changes, "use refuse"
    yield from _fields("source", {"columns": source.columns, "where": source.where})
    yield from _fields("watermark", {"idle_after": written.watermark.idle_after})
    for name, aggregate in written.aggregates.items():
        if isinstance(aggregate, AggregateDocument):
            yield from _fields(f"aggregates.{name}", {"where": aggregate.where})
    for name, window in written.windows.items():
        yield from _window(f"windows.{name}", window)


def _window(field: str, window: WindowDocument) -> Iterator[Given]:
    if window.emit != "on_change":
        yield f"{field}.emit", window.emit, "use on_change"
    yield from _fields(field, {"having": window.having})
    if isinstance(window, GridDocument):
        yield from _fields(field, {"empty": window.empty or None, "empty_limit": window.empty_limit})
    if isinstance(window, SessionDocument):
        yield from _fields(field, {"max_duration": window.max_duration})


def _fields(section: str, given: dict[str, object]) -> Iterator[Given]:
    for name, value in given.items():
        if value is not None:
            yield f"{section}.{name}", value, f"leave {name} out"
