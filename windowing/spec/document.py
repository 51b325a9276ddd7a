"""The YAML document as a user writes it: shape only. What its texts mean is said in load.py and its neighbours."""

from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Discriminator, Field, Tag
from pydantic_core import PydanticCustomError

from windowing.spec.aggregates import FORM as CALL
from windowing.spec.duration import FORM as DURATION
from windowing.spec.times import ORIGIN_FORM, ZONE_FORM
from windowing.spec.words import shown

NAME_PATTERN = "[a-z][a-z0-9_]{0,63}"
LATER = "(not supported yet)"


def _text(form: str) -> BeforeValidator:
    """Lets only non-empty text through; the sentence for anything else says `form`."""

    def check(value: object) -> object:
        if isinstance(value, str) and value.strip():
            return value
        raise PydanticCustomError("sentence", "{given} is not {form}", {"given": shown(value), "form": form})

    return BeforeValidator(check)


def _tag(value: object) -> str:
    return ":mapping" if isinstance(value, dict) else ":text"


def _kind_tag(value: Any) -> str | None:
    kind = value.get("kind") if isinstance(value, dict) else None
    return f":{kind}" if isinstance(kind, str) and kind in KINDS else None


Name = Annotated[str, _text("a name: a small letter, then small letters, digits and _, at most 64")]
Column = Annotated[str, _text("the name of a column")]
Place = Annotated[str, _text("a path such as ../lake or /data/lake")]
Length = Annotated[str, _text(DURATION)]
LengthOrForever = Annotated[str, _text(f"{DURATION}, or forever")]
Zone = Annotated[str, _text(ZONE_FORM)]
Call = Annotated[str, _text(CALL)]
Expression = Annotated[str, _text("an expression such as 'distance > 0'")]


class Document(BaseModel):
    """A mapping with known fields only."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)


class EventTimeDocument(Document):
    """A column of numbers since 1970-01-01T00:00Z."""

    column: Column = Field(description="the column that holds the numbers")
    unit: Literal["ms", "s", "us"] = Field(description="what one of them counts: milliseconds, seconds or microseconds")


class SourceDocument(Document):
    """The Delta table events are read from."""

    table: Annotated[str, _text("a path, a file: URI or a catalog name such as db.events")] = Field(
        description="the Delta table to read: a path relative to this file, a file: URI, or a catalog name such as db.events"
    )
    event_time: Annotated[
        Annotated[Column, Tag(":text")] | Annotated[EventTimeDocument, Tag(":mapping")],
        Discriminator(_tag),
    ] = Field(description="the timestamp column that says when an event happened, or {column: ts, unit: ms|s|us}")
    key: list[Column] = Field(min_length=1, description="the columns windows are kept apart by, such as [origin]")
    zone: Zone | None = Field(None, description="the zone of timestamps and text that name none", examples=["America/New_York"])
    event_id: Column | None = Field(None, description="the column that tells copies of one event; without it none are looked for")
    order_by: list[Column] = Field(default=[], description="columns that break ties between events of one time")
    columns: dict[str, Expression] | None = Field(None, description=f"columns computed from others {LATER}")
    where: Expression | None = Field(None, description=f"which rows of the table are events {LATER}")
    changes: Literal["refuse", "feed"] = Field("refuse", description=f"updates and deletes in the source: refuse, or feed {LATER}")
    on_bad_value: Literal["quarantine", "null"] | None = Field(
        "quarantine", description="NaN or infinity where a number is needed: quarantine the row, or null to skip the value"
    )


class WatermarkDocument(Document):
    """How far event time is trusted."""

    delay: Length = Field("0 seconds", description="how far the watermark stays behind the highest event time")
    allowed_lateness: LengthOrForever = Field("forever", description="how long after its end a window still takes events in, or forever")
    max_future: Length = Field("1 hour", description="events further ahead of their arrival are quarantined")
    idle_after: Length | None = Field(None, description=f"after that long without events the watermark goes on alone {LATER}")
    dedupe_horizon: Length | None = Field(None, description="how long event ids are remembered; without it, as long as state is kept")


class AggregateDocument(Document):
    """An aggregate with its own condition."""

    call: Call = Field(description="a call such as count(), sum(delay) or quantile(delay, 0.95)")
    where: Expression | None = Field(None, description=f"which events count {LATER}")


class WindowDocument(Document):
    """What every kind of window has."""

    aggregates: list[Name] | None = Field(None, min_length=1, description="which of the pipeline's aggregates; without it all of them")
    change_feed: bool = Field(default=True, description="whether the output table records a change feed")
    emit: Literal["on_change", "on_close", "changes"] = Field(
        "on_change", description=f"when rows appear: on_change; on_close and changes {LATER}"
    )
    having: Expression | None = Field(None, description=f"show only windows such as 'flights >= 3' {LATER}")


class GridDocument(WindowDocument):
    """What windows on a clock have."""

    zone: Zone | None = Field(
        None, description="whose wall clock windows are laid on; without it UTC", examples=["America/New_York", "Asia/Kolkata"]
    )
    offset: Length | None = Field(None, description="shifts every window; may be negative", examples=["23 hours 59 minutes"])
    empty: bool = Field(default=False, description=f"whether windows without events are shown {LATER}")
    empty_limit: int | None = Field(None, description=f"most empty windows a run may add {LATER}")


class TumblingDocument(GridDocument):
    """Windows of one size, end to end."""

    kind: Literal["tumbling"] = Field(description="tumbling")
    size: Length = Field(description="how long a window is", examples=["1 hour", "1 day", "1 month"])
    origin: Annotated[str, _text(ORIGIN_FORM)] | None = Field(
        None, description="a local time at which a window begins; instead of offset", examples=["2024-01-01", "2024-01-01 06:00"]
    )


class SlidingDocument(GridDocument):
    """Windows of one size that overlap."""

    kind: Literal["sliding"] = Field(description="sliding")
    size: Length = Field(description="how long a window is", examples=["3 hours"])
    slide: Length = Field(description="how far apart windows begin; at most size", examples=["15 minutes"])


class SessionDocument(WindowDocument):
    """Windows that last as long as events keep coming."""

    kind: Literal["session"] = Field(description="session")
    gap: Length = Field(description="events of a key at most that far apart are one session", examples=["30 minutes"])
    max_duration: Length | None = Field(None, description=f"no session is longer {LATER}")


class ExpectationsDocument(Document):
    """What must hold of the outputs before they are published."""

    suite: Name = Field(description="the name of the suite")


class RetentionDocument(Document):
    """How long rows are kept; a month counts 31 days, a year 366."""

    state: LengthOrForever = Field("forever", description="how long state is kept, or forever")
    refused: LengthOrForever = Field("1 year", description="how long late, duplicate and quarantined rows are kept, or forever")
    output: LengthOrForever = Field("forever", description="how long output rows are kept, or forever")


KINDS: dict[str, type[WindowDocument]] = {"tumbling": TumblingDocument, "sliding": SlidingDocument, "session": SessionDocument}
AnyWindow = Annotated[
    Annotated[TumblingDocument, Tag(":tumbling")]
    | Annotated[SlidingDocument, Tag(":sliding")]
    | Annotated[SessionDocument, Tag(":session")],
    Discriminator(_kind_tag),
]
_AnyAggregate = Annotated[Annotated[Call, Tag(":text")] | Annotated[AggregateDocument, Tag(":mapping")], Discriminator(_tag)]
_NAMED: dict[str, Any] = {"propertyNames": {"pattern": f"^{NAME_PATTERN}$"}}


class PipelineDocument(Document):
    """A Tidemark pipeline: event-time windows over a Delta table."""

    name: Name = Field(
        description="the pipeline's name and the root of its tables' names", json_schema_extra={"pattern": f"^{NAME_PATTERN}$"}
    )
    lake: Place = Field(description="the directory that holds the pipeline's tables, relative to this file")
    source: SourceDocument = Field(description="the Delta table events are read from")
    watermark: WatermarkDocument = Field(default=WatermarkDocument.model_validate({}), description="how far event time is trusted")
    aggregates: dict[str, _AnyAggregate] = Field(min_length=1, description="output columns and the calls that make them")
    windows: dict[str, AnyWindow] = Field(min_length=1, description="output tables and their windows", json_schema_extra=_NAMED)
    schedule: Annotated[str, _text("a cron expression such as '*/15 * * * *' or a preset such as '@hourly'")] | None = Field(
        None, description="when to run: five cron fields or a preset; without it by hand", examples=["*/15 * * * *", "@hourly"]
    )
    expectations: ExpectationsDocument | None = Field(None, description="what must hold of the outputs before they are published")
    retention: RetentionDocument = Field(default=RetentionDocument.model_validate({}), description="how long rows are kept")


Loc = tuple[int | str, ...]


def model_at(loc: Loc) -> type[Document] | None:
    """The model of the mapping at pydantic's location `loc` (with its tags, which begin with a colon), if it is one."""
    match loc:
        case ():
            return PipelineDocument
        case ("source", "event_time", ":mapping"):
            return EventTimeDocument
        case ("aggregates", _, ":mapping"):
            return AggregateDocument
        case ("windows", _, str() as tag):
            return KINDS.get(tag[1:])
        case (str() as section,):
            return _SECTIONS.get(section)
    return None


_SECTIONS: dict[str, type[Document]] = {
    "source": SourceDocument,
    "watermark": WatermarkDocument,
    "expectations": ExpectationsDocument,
    "retention": RetentionDocument,
}
