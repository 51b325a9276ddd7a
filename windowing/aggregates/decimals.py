"""Sums of wide decimals, exact in whatever order they are added.

A decimal of more than 28 digits leaves room for few of its kind in the 38 that Spark has, so that a
sum could leave them on the way although its end fits. Such a value is kept in two parts, as digits
of a number with two places:

    value of decimal(p, s)  =  carry * 10^(28 - s)  +  rest        |rest| < 10^(28 - s)

    {name}__lost   the sum of the carries, bigint: room for 900 million values of 38 digits
    {name}__sum    the sum of the rests, decimal(38, s): room for ten billion

Release 0.1 kept whole values in `{name}__sum`. Once they had left 38 digits, it kept a number above
0 in `{name}__lost` and null in the sum. Whole values are split here when they are merged. A sum
that was lost can't be computed again, so whatever it is merged with is lost, too.
"""

from dataclasses import dataclass

from pyspark.sql import Column
from pyspark.sql import functions as F
from pyspark.sql import types as T

from windowing.aggregates.algebra import Part

NARROW = 28
"""The sum of ten billion values of that many digits has no more than 38."""

_MOST = 38
_HALF = 14
_LOST = 1 << 62
"""A carry that no sum of values reaches: it stands for a sum that is not known."""


@dataclass(frozen=True)
class WideSum:
    """The two parts of a sum of decimals of `scale`; `name` is what they are called after."""

    name: str
    scale: int

    def parts(self, value: Column) -> tuple[Part, Part]:
        """What is kept of the sum of `value`, which is null where nothing is to be added."""
        total = Part(self._rest, self._rests(value), self._rests)
        carries = F.try_sum(self._carry(value))
        lifted = F.coalesce(carries, F.lit(0).cast("bigint"))
        carried = Part(self._carries, lifted, lambda c: F.try_sum(self._carried(c)))
        return total, carried

    def value(self) -> Column:
        """The sum as decimal(38, scale); null where it does not fit, or is not known."""
        carry = self._carried(F.col(self._carries))
        units = self._units(carry, self._within_carry(F.col(self._rest)))
        written = F.concat(units.cast("string"), F.lit(f"E-{self.scale}"))
        return written.try_cast(T.DecimalType(_MOST, self.scale))

    @property
    def _rest(self) -> str:
        return f"{self.name}__sum"

    @property
    def _carries(self) -> str:
        return f"{self.name}__lost"

    def _rests(self, value: Column) -> Column:
        """The sum of what is below the carry."""
        rest = value % self._power(NARROW)
        return F.try_sum(rest.cast(T.DecimalType(_MOST, self.scale)))

    def _carry(self, value: Column) -> Column:
        return F.call_function("div", value, self._power(NARROW))

    def _carried(self, carries: Column) -> Column:
        """The carry of a stored partial, whose rest may be a whole value.

        A sum that was lost has one of the two parts without the other.
        """
        rest = F.col(self._rest)
        no_rest = rest.isNull() & (carries != 0)
        no_carry = rest.isNotNull() & carries.isNull()
        moved = F.coalesce(self._carry(rest), F.lit(0))
        return F.when(no_rest | no_carry, F.lit(_LOST)).otherwise(carries + moved)

    def _within_carry(self, rest: Column) -> Column:
        """What is left of `rest` below the carry, in units of its last digit, as decimal(38, 0)."""
        below = rest % self._power(NARROW)
        upper = F.call_function("div", below, self._power(_HALF))
        lower = F.call_function("div", below % self._power(_HALF), self._power(0))
        units = _cast_whole(upper, 19) * _integer_literal(10**_HALF) + _cast_whole(lower, 19)
        return _cast_whole(units, _MOST)

    def _units(self, carry: Column, below: Column) -> Column:
        """The whole sum in units of its last digit, as decimal(38, 0); null where it has more.

        Both get the same sign first: then neither is greater than the sum.
        """
        up = (carry < 0) & (below > 0)
        down = (carry > 0) & (below < 0)
        one = F.lit(1).cast("bigint")
        full = _integer_literal(10**NARROW)
        upper = F.when(up, carry + one).when(down, carry - one).otherwise(carry)
        lower = F.when(up, below - full).when(down, below + full).otherwise(below)
        carried = F.try_multiply(_cast_whole(upper, 19), full)
        return F.try_add(carried, _cast_whole(lower, _MOST))

    def _power(self, digits: int) -> Column:
        """The value whose last `digits` digits, of a decimal of this scale, are 0 behind a 1."""
        exponent = digits - self.scale
        if exponent >= 0:
            return _integer_literal(10**exponent)
        return F.lit(f"1E{exponent}").cast(T.DecimalType(-exponent, -exponent))


def is_wide(kind: T.DecimalType) -> bool:
    """Whether sums of this type may leave 38 digits on the way."""
    return kind.precision > NARROW


def _integer_literal(value: int) -> Column:
    return F.lit(str(value)).cast(T.DecimalType(len(str(value)), 0))


def _cast_whole(value: Column, digits: int) -> Column:
    return value.cast(T.DecimalType(digits, 0))
