"""Functions of times: parts, truncation, the clock of a zone, and texts read by a pattern.

An instant is read in UTC, a local time on its own clock. What can't be read is null.
"""

from collections.abc import Callable
from datetime import UTC, datetime
from operator import itemgetter

from pyspark.sql import Column
from pyspark.sql import functions as F
from pyspark.sql import types as T

from windowing.expressions.values import (
    LONG,
    TIMES,
    Built,
    Values,
    literal_value,
    require_families,
)
from windowing.grid.frame import choose_last
from windowing.grid.zone import micros, transitions
from windowing.spec.expressions.forms import has_offset
from windowing.spec.expressions.tree import Call

INSTANT, LOCAL = T.TimestampType(), T.TimestampNTZType()
_FIRST_US = micros(datetime(1970, 1, 1, tzinfo=UTC))
_END_US = micros(datetime(2100, 1, 1, tzinfo=UTC))
"""From when to when the clocks of zones are known to expressions; the end is not included."""


def _build_part(call: Call, values: Values) -> Built:
    # A date has no hour.
    allowed = TIMES[:2] if call.operation in ("hour", "minute", "second") else TIMES
    require_families(allowed, call, values)
    read_part = _PARTS[call.operation]
    return LONG, read_part(values[0].column).cast(LONG)


def _build_truncation(call: Call, values: Values) -> Built:
    """The beginning of the unit that contains a time, on the same clock."""
    require_families(TIMES[:2], call, values[1:])
    kind = values[1].kind
    unit = str(literal_value(call.arguments[0]))
    # The session's zone is UTC, so a local time keeps the digits of its clock.
    return kind, F.date_trunc(unit, values[1].column.cast(INSTANT)).cast(kind)


def _build_parsed(call: Call, values: Values) -> Built:
    """A text as an instant where its pattern reads an offset, else as a local time."""
    require_families("a text", call, values)
    pattern = str(literal_value(call.arguments[1]))
    kind = INSTANT if has_offset(pattern) else LOCAL
    return kind, F.try_to_timestamp(values[0].column, F.lit(pattern)).cast(kind)


def _build_local_time(call: Call, values: Values) -> Built:
    """What the clock of a zone shows at an instant; null before 1970 and from 2100 on."""
    require_families(TIMES[0], call, values[1:])
    zone = str(literal_value(call.arguments[0]))
    stretches = transitions(zone, _FIRST_US, _END_US)

    def show(instant_us: Column) -> Column:
        offset = choose_last(
            stretches, instant_us, itemgetter(0), lambda each: F.lit(each[1]).cast(LONG)
        )
        is_known = (instant_us >= _FIRST_US) & (instant_us < _END_US)
        return F.when(is_known, F.timestamp_micros(instant_us + offset).cast(LOCAL))

    # By a lambda the instant is computed once, however often it is compared.
    return LOCAL, F.transform(F.array(F.unix_micros(values[1].column)), show).getItem(0)


_PARTS: dict[str, Callable[[Column], Column]] = {
    "year": F.year,
    "month": F.month,
    "day": F.day,
    "hour": F.hour,
    "minute": F.minute,
    "second": F.second,
}
TIME_FUNCTIONS: dict[str, Callable[[Call, Values], Built]] = {
    **dict.fromkeys(_PARTS, _build_part),
    "date_trunc": _build_truncation,
    "to_timestamp": _build_parsed,
    "convert_timezone": _build_local_time,
}
"""By function of times the function that builds its column from a call and its values."""
