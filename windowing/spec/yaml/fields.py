"""The types of fields in documents: wrong texts and lengths are refused in one sentence."""

from typing import Annotated

from pydantic import BaseModel, BeforeValidator, ConfigDict
from pydantic_core import PydanticCustomError

from windowing.spec.aggregates import FORM as CALL
from windowing.spec.duration import FORM as DURATION
from windowing.spec.times import ORIGIN_FORM, ZONE_FORM
from windowing.spec.words import quote_value

NAME_PATTERN = "[a-z][a-z0-9_]{0,63}"
ARRIVAL = "arrival"
"""What event_time says where events happen when they arrive."""


def require_text(form: str, *, blank: bool = False) -> BeforeValidator:
    """Lets only non-empty text through; the sentence for anything else says `form`.

    Text of blanks alone, such as a tab, counts as empty unless `blank` text is allowed.
    """

    def check_text(value: object) -> object:
        if isinstance(value, str) and (value if blank else value.strip()):
            return value
        raise PydanticCustomError(
            "sentence", "{given} is not {form}", {"given": quote_value(value), "form": form}
        )

    return BeforeValidator(check_text)


_NAME_FORM = "a name: a small letter, then small letters, digits and _, at most 64"

Name = Annotated[str, require_text(_NAME_FORM)]
Column = Annotated[str, require_text("the name of a column")]
Place = Annotated[str, require_text("a path such as ../lake or /data/lake")]


def _check_unit(value: object) -> object:
    """Lets all but whole numbers through, which lack a unit."""
    # bool is a subclass of int, but true is no number.
    if isinstance(value, int) and not isinstance(value, bool):
        raise PydanticCustomError(
            "sentence",
            "{given} is not {form}; write its unit, as in '{given} minutes'",
            {"given": quote_value(value), "form": DURATION},
        )
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


def _check_step(value: object) -> object:
    """Lets numbers and texts through."""
    # bool is a subclass of int, but true is no number.
    if isinstance(value, (int, float, str)) and not isinstance(value, bool):
        return value
    raise PydanticCustomError(
        "sentence", "{given} is not {form}", {"given": quote_value(value), "form": STEP}
    )


STEP = "a number such as 10, or a duration such as '5 minutes' for timestamps"
Step = Annotated[int | float | str, BeforeValidator(_check_step)]


def require_number(form: str, low: float, high: float) -> BeforeValidator:
    """Lets only numbers in [low, high] through; the sentence for anything else says `form`."""

    def check_number(value: object) -> object:
        # bool is a subclass of int, but true is no number.
        is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
        if is_number and low <= value <= high:  # type: ignore[operator]
            return value
        raise PydanticCustomError(
            "sentence", "{given} is not {form}", {"given": quote_value(value), "form": form}
        )

    return BeforeValidator(check_number)


_SHARE_FORM = "a share of the rows from 0 to 1, such as 0.1 for a tenth"
_FACTOR_FORM = "a number from 1 to 1,000,000, such as 10 for ten times as many"
Share = Annotated[float, require_number(_SHARE_FORM, 0, 1)]
Factor = Annotated[float, require_number(_FACTOR_FORM, 1, 1_000_000)]


ROW_COUNT = "a number of rows from 1 on, such as 5000000"
BYTES = "a number of bytes from 1 on, or a size such as '512 MB' or '2 GB'"


def _check_row_count(value: object) -> object:
    """Lets whole numbers from 1 on through."""
    if isinstance(value, int) and not isinstance(value, bool) and value >= 1:
        return value
    raise PydanticCustomError(
        "sentence", "{given} is not {form}", {"given": quote_value(value), "form": ROW_COUNT}
    )


def _check_bytes(value: object) -> object:
    """Lets whole numbers and texts through."""
    if isinstance(value, (int, str)) and not isinstance(value, bool):
        return value
    raise PydanticCustomError(
        "sentence", "{given} is not {form}", {"given": quote_value(value), "form": BYTES}
    )


RowCount = Annotated[int, BeforeValidator(_check_row_count)]
Bytes = Annotated[int | str, BeforeValidator(_check_bytes)]


class Document(BaseModel):
    """A mapping with known fields only."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)
