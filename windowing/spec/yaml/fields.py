"""The types of fields in documents: wrong texts and lengths are refused in one sentence."""

from collections.abc import Callable
from typing import Annotated, Any

from pydantic import BaseModel, BeforeValidator, ConfigDict
from pydantic_core import PydanticCustomError

from windowing.spec.aggregates import FORM as CALL
from windowing.spec.duration import FORM as DURATION
from windowing.spec.times import ORIGIN_FORM, ZONE_FORM
from windowing.spec.words import quote_value

NAME_PATTERN = "[a-z][a-z0-9_]{0,63}"
ARRIVAL = "arrival"
"""What event_time says where events happen when they arrive."""


def _require(form: str, fits: Callable[[Any], bool]) -> BeforeValidator:
    """Lets only values through that fit; the sentence for anything else says `form`."""

    def check_value(value: object) -> object:
        if fits(value):
            return value
        raise refused(value, form)

    return BeforeValidator(check_value)


def refused(value: object, form: str) -> PydanticCustomError:
    """What a validator raises for a value that is no `form`, as a finding with one sentence."""
    return PydanticCustomError(
        "sentence", "{given} is not {form}", {"given": quote_value(value), "form": form}
    )


def require_text(form: str, *, blank: bool = False) -> BeforeValidator:
    """Lets only non-empty text through; the sentence for anything else says `form`.

    Text of blanks alone, such as a tab, counts as empty unless `blank` text is allowed.
    """
    return _require(form, lambda value: _is(value, str) and bool(value if blank else value.strip()))


def _is(value: object, *kinds: type) -> bool:
    """Whether a value is of one of these types; true is no number, although bool is an int."""
    return isinstance(value, kinds) and not isinstance(value, bool)


_NAME_FORM = "a name: a small letter, then small letters, digits and _, at most 64"

Name = Annotated[str, require_text(_NAME_FORM)]
Column = Annotated[str, require_text("the name of a column")]
Place = Annotated[str, require_text("a path such as ../lake or /data/lake")]


def _check_unit(value: object) -> object:
    """Lets all but whole numbers through, which lack a unit."""
    if _is(value, int):
        raise refused(value, f"{DURATION}; write its unit, as in '{quote_value(value)} minutes'")
    return value


# Of two validators that come before, the last one is asked first.
Length = Annotated[str, require_text(DURATION), BeforeValidator(_check_unit)]
LengthOrForever = Annotated[
    str, require_text(f"{DURATION}, or forever"), BeforeValidator(_check_unit)
]
Zone = Annotated[str, require_text(ZONE_FORM)]
Origin = Annotated[str, require_text(ORIGIN_FORM)]
Call = Annotated[str, require_text(CALL)]
Expression = Annotated[str, require_text("an expression such as 'distance > 0'")]
Condition = Annotated[str, require_text("a condition such as 'flights >= 3'")]
Output = Annotated[str, require_text("the name of an aggregate")]


STEP = "a number such as 10, or a duration such as '5 minutes' for timestamps"
BYTES = "a number of bytes from 1 on, or a size such as '512 MB' or '2 GB'"
_SHARE_FORM = "a share of the rows from 0 to 1, such as 0.1 for a tenth"
_FACTOR_FORM = "a number from 1 to 1,000,000, such as 10 for ten times as many"
_ROW_COUNT_FORM = "a number of rows from 1 on, such as 5000000"

Step = Annotated[int | float | str, _require(STEP, lambda value: _is(value, int, float, str))]
Bytes = Annotated[int | str, _require(BYTES, lambda value: _is(value, int, str))]
Share = Annotated[
    float, _require(_SHARE_FORM, lambda value: _is(value, int, float) and 0 <= value <= 1)
]
Factor = Annotated[
    float, _require(_FACTOR_FORM, lambda value: _is(value, int, float) and 1 <= value <= 1_000_000)
]
RowCount = Annotated[int, _require(_ROW_COUNT_FORM, lambda value: _is(value, int) and value >= 1)]


class Document(BaseModel):
    """A mapping with known fields only."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)
