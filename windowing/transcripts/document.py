"""A transcript: steps that bring rows, move the watermark or backfill, and the tables they expect.

text -> plain values (spec/yaml/file.py) -> TranscriptDocument (shape) -> Transcript
What rows mean is in values.py for the source, and in expectations.py for the tables.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Annotated, Any

from pydantic import BeforeValidator, Field, ValidationError

from windowing.errors import SpecError
from windowing.ledger.erased import Erasing
from windowing.spec.places import Base, resolve_directory
from windowing.spec.times import INSTANT_FORM, instant
from windowing.spec.words import quote_value
from windowing.spec.yaml.document import Loc
from windowing.spec.yaml.fields import Document, Place, refused, require_text
from windowing.spec.yaml.file import document, find_lines
from windowing.spec.yaml.findings import first_sentence

LATEST = datetime(9000, 1, 1, tzinfo=UTC)
"""When rows arrive in a transcript that doesn't say: no event time is ahead of it."""
WATERMARK = "_watermark"
"""What `expect` calls the watermark."""
_ERASURE_FORM = "a key; write {origin: JFK}, or {where: {tailnum: N101}} for another column"

Row = Mapping[str, Any]
Times = tuple[datetime, datetime]


@dataclass(frozen=True)
class Step:
    """A run over `rows`, a `backfill` of event times [from, to) or an erasure, and what follows.

    At the end of the run the watermark is at least `watermark`. `expect` maps tables to all their
    rows. Times are aware.
    """

    line: int
    arrival: datetime
    rows: tuple[Row, ...] = ()
    watermark: datetime | None = None
    backfill: Times | None = None
    erase: Erasing | None = None
    expect: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Transcript:
    """One file: `spec` is an absolute path, `columns` the Spark types that the file names."""

    file: str
    name: str
    spec: str
    columns: Mapping[str, str]
    steps: tuple[Step, ...]


def _parse_time(value: object) -> datetime:
    found = instant(value) if isinstance(value, str) else None
    if found is None:
        raise refused(value, INSTANT_FORM)
    return found


def _parse_range(value: object) -> Times:
    """The two instants of a backfill."""
    if not isinstance(value, dict) or set(value) != {"from", "to"}:
        raise refused(value, "a range; write {from: 2013-03-10, to: 2013-03-11}")
    start = _parse_time(value["from"])
    end = _parse_time(value["to"])
    if start >= end:
        raise refused(value, "a range; from must be before to")
    return start, end


def _parse_erasure(value: object) -> Erasing:
    """A key, or the value of another column."""
    if not isinstance(value, dict) or not value:
        raise refused(value, _ERASURE_FORM)
    where = value.get("where")
    if not isinstance(where, dict):
        return Erasing({name: str(each) for name, each in value.items()})
    if len(value) != 1 or len(where) != 1:
        raise refused(value, _ERASURE_FORM)
    ((column, erased),) = where.items()
    return Erasing({column: str(erased)}, column)


def _check_row(value: object) -> object:
    if isinstance(value, dict):
        return value
    raise refused(
        value, "a row; write a mapping such as {origin: JFK, departed_at: 2013-03-10 05:10}"
    )


Time = Annotated[datetime, BeforeValidator(_parse_time)]
Range = Annotated[Times, BeforeValidator(_parse_range)]
Erasure = Annotated[Erasing, BeforeValidator(_parse_erasure)]
AnyRow = Annotated[dict[str, Any], BeforeValidator(_check_row)]
TypeName = Annotated[str, require_text("a type such as string, bigint, double or timestamp")]


class StepDocument(Document):
    """One run, one backfill or one erasure, and what the tables hold after it."""

    input: list[AnyRow] | None = Field(None, description="a list of rows of the source")
    watermark: Time | None = Field(
        None, description="the watermark moves on to here, as if events of other keys had moved it"
    )
    arrival: Time | None = Field(None, description="the clock of the run")
    backfill: Range | None = Field(
        None, description="the event times to count again, {from: ..., to: ...}"
    )
    erase: Erasure | None = Field(
        None,
        description="the key whose rows are deleted and kept out, such as {origin: JFK}, or "
        "{where: {tailnum: N101}} for a value of another column",
    )
    expect: dict[str, Any] | None = Field(
        None, description="tables and all their rows, such as {hourly: [{origin: JFK, flights: 2}]}"
    )


class TranscriptDocument(Document):
    """What goes into a pipeline step by step, and what must come out."""

    spec: Place = Field(description="the pipeline's file, relative to this one")
    name: Annotated[str, require_text("a text that says what is tested")] | None = Field(
        None, description="what is tested"
    )
    columns: dict[str, TypeName] | None = Field(
        None, description="types of columns of the source, such as {delay: bigint}"
    )
    steps: list[StepDocument] = Field(
        min_length=1,
        description="a list of steps, each with input, watermark, arrival, backfill or erase",
    )


def model_at(loc: Loc) -> type[Document] | None:
    """The model of the mapping at pydantic's location `loc`, if it is one."""
    match loc:
        case ():
            return TranscriptDocument
        case ("steps", int()):
            return StepDocument
    return None


def is_transcript(values: Any) -> bool:
    """Whether the values of a file mean to be a transcript."""
    return isinstance(values, dict) and "steps" in values


def load_transcript(file: str, base: str, name: str) -> Transcript:
    """The transcript in `file`, whose directory is `base`; `name` is its name if it has no own one.

    SpecError, in one sentence, for a file that is no transcript.
    """
    values = document(file)
    if not isinstance(values, dict):
        raise SpecError(
            "line 1",
            f"{quote_value(values)} is not a transcript; write a mapping with spec and steps",
            file,
        )
    if "windows" in values and "steps" not in values:
        raise SpecError(
            "windows", "belongs to the spec of a pipeline; a transcript has spec and steps", file
        )
    try:
        written = TranscriptDocument.model_validate(values)
        steps = _build_steps(written.steps, find_lines(file, "steps"))
        spec = resolve_directory("spec", written.spec, Base(base))
        return Transcript(file, written.name or name, spec, written.columns or {}, steps)
    except ValidationError as error:
        raise SpecError(*first_sentence(error, model_at), file) from None
    except SpecError as error:
        raise SpecError(error.field, error.message, file) from None


def _build_steps(written: Sequence[StepDocument], at: Sequence[int]) -> tuple[Step, ...]:
    """The steps, each with its arrival: its own, or else that of the step before."""
    arrival: datetime | None = None
    if all(step.arrival is None for step in written):
        arrival = LATEST
    steps: list[Step] = []
    for i, (step, line) in enumerate(zip(written, at, strict=True)):
        _check_one_thing(f"steps[{i}]", step)
        arrival = _choose_arrival(f"steps[{i}].arrival", step.arrival, arrival)
        rows = tuple(step.input or ())
        expect = step.expect or {}
        more = step.watermark, step.backfill, step.erase
        steps.append(Step(line, arrival, rows, *more, expect))
    return tuple(steps)


def _check_one_thing(where: str, step: StepDocument) -> None:
    """Raises unless the step is a run, a backfill or an erasure."""
    runs = [name for name in ("input", "watermark", "arrival") if getattr(step, name) is not None]
    others = [name for name in ("backfill", "erase") if getattr(step, name) is not None]
    if not runs and not others:
        raise SpecError(where, "does nothing; write input, watermark, arrival, backfill or erase")
    for name in others:
        more = [each for each in (*runs, *others) if each != name]
        if more:
            raise SpecError(where, f"has {more[0]} and {name}; give the {name} a step of its own")


def _choose_arrival(where: str, given: datetime | None, before: datetime | None) -> datetime:
    if given is None:
        if before is None:
            raise SpecError(
                where,
                "is missing; once a step says its arrival, the first one must, "
                "since arrivals never go back",
            )
        return before
    if before is not None and given < before:
        raise SpecError(
            where,
            f"{given.isoformat()} is before {before.isoformat()}, the arrival of an earlier step; "
            "arrivals never go back",
        )
    return given
