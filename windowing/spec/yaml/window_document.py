"""Windows as a user writes them: the fields of each kind. What they mean is said in windows.py."""

from typing import Annotated, Any, ClassVar, Literal

from pydantic import Discriminator, Field, Tag

from windowing.spec.yaml.fields import (
    Column,
    Condition,
    Document,
    Length,
    Origin,
    Output,
    Step,
    Zone,
)


class WindowDocument(Document):
    """What every kind of window has."""

    emissions: ClassVar[tuple[str, ...]] = ("on_change", "on_close")
    """What `emit` can be for this kind."""

    aggregates: list[Output] | None = Field(
        None, min_length=1, description="which of the pipeline's aggregates; without it all of them"
    )
    change_feed: bool = Field(
        default=True, description="whether the output table records a change feed"
    )
    emit: Literal["on_change", "on_close", "changes"] = Field(
        "on_change",
        description="when rows appear: with every change, once the watermark passed their end, "
        "or (sliding, cumulate) where values change",
    )
    having: Condition | None = Field(
        None,
        description="shows only windows whose aggregate compares so with a number",
        examples=["flights >= 3"],
    )


class GridDocument(WindowDocument):
    """What windows on a clock have."""

    zone: Zone | None = Field(
        None,
        description="whose wall clock windows are laid on; without it UTC",
        examples=["America/New_York", "Asia/Kolkata"],
    )
    offset: Length | None = Field(
        None, description="shifts every window; may be negative", examples=["23 hours 59 minutes"]
    )


class FilledDocument(GridDocument):
    """What windows have that can be shown without events."""

    empty: bool = Field(
        default=False,
        description="whether windows without events are shown, "
        "between a key's first and last event",
    )
    empty_limit: int | None = Field(
        None, description="the most windows without events that a run may add; without it 1,000,000"
    )


class TumblingDocument(FilledDocument):
    """Windows of one size, end to end."""

    kind: Literal["tumbling"] = Field(description="tumbling")
    size: Length = Field(
        description="how long a window is", examples=["1 hour", "1 day", "1 month"]
    )
    origin: Origin | None = Field(
        None,
        description="a local time at which a window begins; instead of offset",
        examples=["2024-01-01", "2024-01-01 06:00"],
    )


class SlidingDocument(FilledDocument):
    """Windows of one size that overlap."""

    emissions: ClassVar[tuple[str, ...]] = ("on_change", "on_close", "changes")
    kind: Literal["sliding"] = Field(description="sliding")
    size: Length = Field(description="how long a window is", examples=["3 hours"])
    slide: Length = Field(
        description="how far apart windows begin; at most size", examples=["15 minutes"]
    )


class CumulateDocument(GridDocument):
    """Windows that begin together and end step by step, until the period is over."""

    emissions: ClassVar[tuple[str, ...]] = ("on_change", "on_close", "changes")
    kind: Literal["cumulate"] = Field(description="cumulate")
    max_size: Length = Field(
        description="how long the period is, which is its longest window",
        examples=["1 day", "1 month"],
    )
    step: Length = Field(
        description="how far apart windows end; at most max_size", examples=["1 hour", "1 day"]
    )
    origin: Origin | None = Field(
        None,
        description="a local time at which a period begins; instead of offset",
        examples=["2024-01-01"],
    )


class SessionDocument(WindowDocument):
    """Windows that last as long as events keep coming."""

    kind: Literal["session"] = Field(description="session")
    gap: Length = Field(
        description="events of a key at most that far apart are one session",
        examples=["30 minutes"],
    )
    max_duration: Length | None = Field(
        None,
        description="a session that would be longer is cut; at least gap",
        examples=["12 hours"],
    )


class RecordSlidingDocument(WindowDocument):
    """For every event the window that ends with it and the one that begins after it."""

    kind: Literal["record_sliding"] = Field(description="record_sliding")
    difference: Length = Field(
        description="how far apart the first and last event of a window can be",
        examples=["10 seconds"],
    )
    tick: Length = Field(
        "1 millisecond", description="times are rounded down to it; difference is a multiple of it"
    )


class CountDocument(WindowDocument):
    """Windows of so many events of a key."""

    kind: Literal["count"] = Field(description="count")
    count: int = Field(description="how many events a window holds", examples=[100])
    every: int | None = Field(
        None, description="how many events after one another windows begin; without it count"
    )


class DeltaDocument(WindowDocument):
    """Windows that end when an attribute has grown by more than delta."""

    kind: Literal["delta"] = Field(description="delta")
    attribute: Column = Field(
        description="the column whose growth ends windows: a number or a timestamp"
    )
    delta: Step = Field(
        description="the growth beyond which the next window begins", examples=[10, "5 minutes"]
    )


class PunctuationDocument(WindowDocument):
    """Windows that end at marked rows."""

    kind: Literal["punctuation"] = Field(description="punctuation")
    marker: Column = Field(description="the boolean column that marks the rows that end a window")


class GlobalDocument(WindowDocument):
    """One window for each key, for all time, which never closes."""

    emissions: ClassVar[tuple[str, ...]] = ("on_change",)
    kind: Literal["global"] = Field(description="global")


def _choose_tag(value: Any) -> str | None:
    """The tag of the document for a window's kind; None if the kind is missing or unknown."""
    if not isinstance(value, dict):
        return None
    kind = value.get("kind")
    if not isinstance(kind, str) or kind not in KINDS:
        return None
    return f":{kind}"


KINDS: dict[str, type[WindowDocument]] = {
    "tumbling": TumblingDocument,
    "sliding": SlidingDocument,
    "cumulate": CumulateDocument,
    "session": SessionDocument,
    "record_sliding": RecordSlidingDocument,
    "count": CountDocument,
    "delta": DeltaDocument,
    "punctuation": PunctuationDocument,
    "global": GlobalDocument,
}
AnyWindow = Annotated[
    Annotated[TumblingDocument, Tag(":tumbling")]
    | Annotated[SlidingDocument, Tag(":sliding")]
    | Annotated[CumulateDocument, Tag(":cumulate")]
    | Annotated[SessionDocument, Tag(":session")]
    | Annotated[RecordSlidingDocument, Tag(":record_sliding")]
    | Annotated[CountDocument, Tag(":count")]
    | Annotated[DeltaDocument, Tag(":delta")]
    | Annotated[PunctuationDocument, Tag(":punctuation")]
    | Annotated[GlobalDocument, Tag(":global")],
    Discriminator(_choose_tag),
]
