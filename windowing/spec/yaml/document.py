"""The shape of a spec as a user writes it; what its texts mean is in load.py and its neighbours."""

from typing import Annotated, Any, Literal

from pydantic import Discriminator, Field, Tag

from windowing.spec.yaml.fields import (
    NAME_PATTERN,
    Bytes,
    Call,
    Column,
    Document,
    Expression,
    Factor,
    Length,
    LengthOrForever,
    Name,
    Place,
    RowCount,
    Share,
    Zone,
    require_text,
)
from windowing.spec.yaml.window_document import KINDS, AnyWindow


def _choose_tag(value: object) -> str:
    """The tag of a field that is either a mapping or one text."""
    if isinstance(value, dict):
        return ":mapping"
    return ":text"


class EventTimeDocument(Document):
    """A column of numbers since 1970-01-01T00:00Z."""

    column: Column = Field(description="the column that holds the numbers")
    unit: Literal["ms", "s", "us"] = Field(
        description="the unit of the numbers: milliseconds, seconds or microseconds since 1970"
    )


_TABLE_FORM = "a path, a file: URI or a catalog name such as db.events"
_AnyEventTime = Annotated[
    Annotated[Column, Tag(":text")] | Annotated[EventTimeDocument, Tag(":mapping")],
    Discriminator(_choose_tag),
]


class FilesDocument(Document):
    """The files that `tidemark ingest` appends to the source table, and how they are read."""

    folder: Place = Field(
        description="the directory in which files land, such as ../drop, relative to this file"
    )
    format: Literal["csv", "json", "parquet"] = Field(
        "csv", description="what the files are: csv, json (an object on each line) or parquet"
    )
    columns: Place | None = Field(
        None,
        description="the file that pins names and types of columns; "
        "by default columns/NAME.yaml beside this file",
        examples=["columns/departures.yaml"],
    )
    on_new_column: Literal["add", "rescue", "fail"] = Field(
        "rescue",
        description="a column that is not pinned: add it, keep its values in the column rescued, "
        "or fail",
    )
    on_unfit_value: Literal["quarantine", "rescue"] = Field(
        "quarantine",
        description="a value that is not of its column's type: quarantine the record, "
        "or keep the value in the column rescued",
    )
    header: bool = Field(
        True, description="whether the first line of a CSV file has the names of its columns"
    )
    delimiter: Annotated[str, require_text("a delimiter such as ',' or ';'", blank=True)] = Field(
        ",", description="what stands between the values of a line of CSV"
    )
    quote: Annotated[str, require_text("a quote such as '\"'")] = Field(
        '"', description="what stands around a value of CSV that contains a delimiter"
    )
    escape: Annotated[str, require_text("a character such as '\\'")] | None = Field(
        None, description="what stands before a quote inside quotes; by default quotes are doubled"
    )
    encoding: Literal["utf-8", "iso-8859-1", "windows-1252"] = Field(
        "utf-8", description="the encoding of CSV files"
    )
    multiline: bool = Field(
        False,
        description="whether a value in quotes may contain line breaks (CSV), or one record "
        "may span lines (JSON)",
    )
    records: Annotated[str, require_text("the name of a field such as features")] | None = Field(
        None,
        description="the field of a JSON document that has the list of its records, such as "
        "features of GeoJSON or data.items; each file is then one document",
        examples=["features"],
    )
    decimal: Literal[".", ","] = Field(
        ".", description="what stands before the decimals of a number in CSV"
    )
    thousands: Annotated[str, require_text("a character such as '.'", blank=True)] | None = Field(
        None, description="what stands between groups of three digits in CSV", examples=["."]
    )
    nulls: list[str] = Field(
        default=[], description="texts of CSV that stand for no value", examples=[["NA", "-"]]
    )


class BatchDocument(Document):
    """How much one batch of a run reads; it ends with the file that reaches a bound."""

    rows: RowCount | None = Field(
        None, description="the rows after which a batch ends", examples=[5_000_000]
    )
    bytes: Bytes | None = Field(
        None,
        description="the bytes of files after which a batch ends: a number, or a text with a unit",
        examples=["2 GB"],
    )


class SourceDocument(Document):
    """The Delta table events are read from."""

    table: Annotated[str, require_text(_TABLE_FORM)] = Field(
        description="the Delta table to read: a path relative to this file, a file: URI, "
        "or a catalog name such as db.events"
    )
    event_time: _AnyEventTime = Field(
        description="the timestamp column of the time at which an event happened, "
        "such as at or trip.at, or {column: ts, unit: ms|s|us}, or arrival"
    )
    key: list[Column] = Field(
        min_length=1,
        description="the columns that windows are grouped by, such as [origin]",
    )
    zone: Zone | None = Field(
        None,
        description="the zone of timestamps and text that name none",
        examples=["America/New_York"],
    )
    event_id: Column | None = Field(
        None,
        description="the column that identifies an event; without it no row is a duplicate",
    )
    order_by: list[Column] = Field(
        default=[], description="columns that break ties between events of one time"
    )
    columns: dict[str, Expression] | None = Field(
        None, description="columns computed from others", examples=[{"delay": "dep_delay + taxi"}]
    )
    where: Expression | None = Field(
        None, description="which rows of the table are events", examples=["distance > 0"]
    )
    changes: Literal["refuse", "feed"] = Field(
        "refuse",
        description="updates and deletes in the source: refuse them, or feed: "
        "reprocess the event times that they touch",
    )
    on_bad_value: Literal["quarantine", "null"] | None = Field(
        "quarantine",
        description="NaN or infinity where a number is needed: quarantine the row, "
        "or null to skip the value",
    )
    files: FilesDocument | None = Field(
        None, description="the files that `tidemark ingest` appends to the table"
    )
    batch: BatchDocument | None = Field(
        None,
        description="how much of a backlog one batch of a run reads; by default 50,000,000 rows "
        "or 8 GB, where several batches surely give the result of one",
    )


class WatermarkDocument(Document):
    """How far event time is trusted."""

    delay: Length = Field(
        "0 seconds", description="how far the watermark stays behind the highest event time"
    )
    allowed_lateness: LengthOrForever = Field(
        "forever", description="how long after its end a window still accepts events, or forever"
    )
    max_future: Length = Field(
        "1 hour", description="events further ahead of their arrival are quarantined"
    )
    idle_after: Length | None = Field(
        None,
        description="after that long without accepted events the watermark advances with the clock",
    )
    dedupe_horizon: Length | None = Field(
        None, description="how long event ids are kept; without it, as long as state is"
    )


class AggregateDocument(Document):
    """An aggregate with its own condition."""

    call: Call = Field(description="a call such as count(), sum(delay) or quantile(delay, 0.95)")
    where: Expression | None = Field(
        None, description="which events count", examples=["delay > 60"]
    )


class ExpectationsDocument(Document):
    """What must hold of the outputs before they are published."""

    suite: Name = Field(description="the name of the suite")


class RetentionDocument(Document):
    """How long rows are kept; a month counts 31 days, a year 366."""

    state: LengthOrForever = Field("forever", description="how long state is kept, or forever")
    refused: LengthOrForever = Field(
        "1 year",
        description="how long the columns of refused rows are kept, or forever",
    )
    output: LengthOrForever = Field(
        "forever", description="how long output rows are kept, or forever"
    )
    revisions: LengthOrForever = Field(
        "forever",
        description="how long the values of windows are told that were replaced, or forever",
    )


class AlarmsDocument(Document):
    """Beyond which figures of a run its outputs are not published; without a field never."""

    quarantined: Share | None = Field(
        None, description="the most rows of a run that may be quarantined, as a share of those read"
    )
    lost_values: Share | None = Field(
        None,
        description="the most rows of a run for which a computed column may lose its value, "
        "as a share of those read",
    )
    max_age: Length | None = Field(
        None,
        description="how long before its arrival an event may have happened; "
        "a month counts 31 days, a year 366",
        examples=["2 years"],
    )
    rows_factor: Factor | None = Field(
        None,
        description="how many times more or fewer rows than the runs before it a run may read",
        examples=[20],
    )


_AnyAggregate = Annotated[
    Annotated[Call, Tag(":text")] | Annotated[AggregateDocument, Tag(":mapping")],
    Discriminator(_choose_tag),
]
_NAMED: dict[str, Any] = {"propertyNames": {"pattern": f"^{NAME_PATTERN}$"}}
_SCHEDULE_FORM = "a cron expression such as '*/15 * * * *' or a preset such as '@hourly'"


class PipelineDocument(Document):
    """A Tidemark pipeline: event-time windows over a Delta table."""

    name: Name = Field(
        description="the pipeline's name and the root of its tables' names",
        json_schema_extra={"pattern": f"^{NAME_PATTERN}$"},
    )
    lake: Place | None = Field(
        None,
        description="the directory that holds the pipeline's tables, relative to this file; "
        "without it, that of the project's target",
        examples=["../lake"],
    )
    source: SourceDocument = Field(description="the Delta table events are read from")
    watermark: WatermarkDocument = Field(
        default=WatermarkDocument.model_validate({}), description="how far event time is trusted"
    )
    aggregates: dict[str, _AnyAggregate] = Field(
        min_length=1, description="output columns and the calls that make them"
    )
    windows: dict[str, AnyWindow] = Field(
        min_length=1, description="output tables and their windows", json_schema_extra=_NAMED
    )
    schedule: Annotated[str, require_text(_SCHEDULE_FORM)] | None = Field(
        None,
        description="when to run, in UTC: five cron fields or a preset; without it by hand",
        examples=["*/15 * * * *", "@hourly"],
    )
    expectations: ExpectationsDocument | None = Field(
        None, description="what must hold of the outputs before they are published"
    )
    publish: Literal["together", "each"] = Field(
        "together",
        description="all outputs of a run or none, or each one that meets its expectations",
    )
    retention: RetentionDocument = Field(
        default=RetentionDocument.model_validate({}), description="how long rows are kept"
    )
    freshness: Length | None = Field(
        None,
        description="how far the watermark of what readers see may lie behind the clock, "
        "longer than watermark.delay; `tidemark status` says where it lies further behind",
        examples=["30 minutes"],
    )
    alarms: AlarmsDocument = Field(
        default=AlarmsDocument.model_validate({}),
        description="beyond which figures of a run its outputs are not published",
    )


Loc = tuple[int | str, ...]


def model_at(loc: Loc) -> type[Document] | None:
    """The model of the mapping at pydantic's location `loc`, if it is one.

    The location has pydantic's tags, which begin with a colon.
    """
    match loc:
        case ():
            return PipelineDocument
        case ("source", "event_time", ":mapping"):
            return EventTimeDocument
        case ("source", "files"):
            return FilesDocument
        case ("source", "batch"):
            return BatchDocument
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
    "alarms": AlarmsDocument,
}
