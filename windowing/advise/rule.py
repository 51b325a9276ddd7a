"""Lengths and how often each occurred, and the settings that would have been enough for a share.

All of it is exact: a quantile is one of the lengths, and counts are of events.
"""

from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from windowing.grid.boundaries import Instants
from windowing.spec.duration import DAY, HOUR, MINUTE, SECOND

_MILLISECOND = 1_000
_UNITS = (
    *(_MILLISECOND * n for n in (1, 10, 100)),
    *(SECOND * n for n in (1, 5, 15, 30)),
    *(MINUTE * n for n in (1, 5, 15, 30)),
    *(HOUR * n for n in (1, 3, 6, 12)),
    DAY,
)
_NAMES = ((DAY, HOUR, "d", "h"), (HOUR, MINUTE, "h", "min"), (MINUTE, SECOND, "min", "s"))
_LEVELS = 16
"""Into how many steps a histogram divides each doubling."""


@dataclass(frozen=True)
class Step:
    """`count` lengths lie in [low, high) microseconds."""

    low_us: int
    high_us: int
    count: int


@dataclass(frozen=True)
class Lengths:
    """Different lengths in microseconds, ascending, and how many there are up to each."""

    values: Instants
    up_to: Instants

    @staticmethod
    def of(lengths: Instants) -> "Lengths":
        """Those of an array, in any order."""
        values, counts = np.unique(lengths, return_counts=True)
        return Lengths(values, np.cumsum(counts))

    @property
    def total(self) -> int:
        """How many there are."""
        return int(self.up_to[-1]) if len(self.up_to) else 0

    def quantile(self, share: Fraction) -> int:
        """The least of the lengths that so large a share of them does not exceed.

        The share is above 0 and at most 1. ValueError where there are no lengths.
        """
        if not self.total:
            raise ValueError("there is no length to choose")
        place = np.searchsorted(self.up_to, rank_of(share, self.total))
        return int(self.values[place])

    def count_from(self, us: int) -> int:
        """How many are at least so long."""
        place = int(np.searchsorted(self.values, us))
        return self.total - (int(self.up_to[place - 1]) if place else 0)

    def histogram(self) -> list[Step]:
        """How many lie in each step that has any.

        Steps are a millisecond up to 32 of them, and then a sixteenth of a doubling. Lengths below
        0 are one step that ends with 0.
        """
        if not self.total:
            return []
        counts = np.diff(self.up_to, prepend=0)
        steps: dict[tuple[int, int], int] = {}
        for value, count in zip(self.values.tolist(), counts.tolist(), strict=True):
            step = _find_step(value)
            steps[step] = steps.get(step, 0) + count
        return [Step(low, high, count) for (low, high), count in steps.items()]


def rank_of(share: Fraction, total: int) -> int:
    """How many of `total` are at least the share of them.

    >>> rank_of(Fraction("0.99"), 100), rank_of(Fraction("0.99"), 101)
    (99, 100)
    """
    return -(-total * share.numerator // share.denominator)


def _find_step(us: int) -> tuple[int, int]:
    """The step of a histogram that contains a length."""
    if us < 0:
        return -1, 0
    milliseconds = us // _MILLISECOND
    shift = max(0, milliseconds.bit_length() - _LEVELS.bit_length())
    low = milliseconds >> shift << shift
    return low * _MILLISECOND, (low + (1 << shift)) * _MILLISECOND


def round_up(us: int) -> int:
    """The next length that reads well, at most a tenth longer; a millisecond at least.

    >>> round_up(743 * SECOND) // SECOND, round_up(61 * SECOND) // SECOND
    (780, 65)
    >>> round_up(0), round_up(-5)
    (0, 0)
    """
    if us <= 0:
        return 0
    unit = max((unit for unit in _UNITS if unit * 10 <= us), default=_MILLISECOND)
    return -(-us // unit) * unit


def describe_length(us: int) -> str:
    """A length by its two largest units, the second one rounded up.

    >>> describe_length(26 * HOUR + 59 * MINUTE), describe_length(743 * SECOND)
    ('1 d 3 h', '12 min 23 s')
    >>> describe_length(1_500_000), describe_length(0), describe_length(-90 * SECOND)
    ('1.5 s', '0 s', '-1 min 30 s')
    """
    if us < 0:
        return f"-{describe_length(-us)}"
    for large_us, small_us, large, small in _NAMES:
        if us >= large_us:
            many, few = divmod(-(-us // small_us) * small_us, large_us)
            shown = f"{many:,} {large}"
            return f"{shown} {few // small_us} {small}" if few else shown
    return f"{-(-us // _MILLISECOND) / _MILLISECOND:g} s"


@dataclass(frozen=True)
class Settings:
    """A delay of the watermark, and how long after its end a window accepts events."""

    delay_us: int
    lateness_us: int

    @property
    def reach_us(self) -> int:
        """How long windows accept events, after the highest event time has reached their ends."""
        return self.delay_us + self.lateness_us


@dataclass(frozen=True)
class Margins:
    """How far, when each event arrived, the highest event time was past the ends of its windows.

    `first` is past the end of the window that ends first, `last` past that of the one that ends
    last; below 0 before the end. An event misses a window exactly if its margin there is at least
    the delay and the lateness together. `windows` has a margin for each row of an output that some
    commit changed: the first window, by key, of events that arrived together.
    """

    first: Lengths
    last: Lengths
    windows: Lengths

    def need_for(self, share: Fraction) -> int:
        """The least delay and lateness together with which so many events miss no window."""
        return max(0, self.first.quantile(share) + 1)

    def count_missed(self, settings: Settings) -> int:
        """How many events miss at least one of their windows."""
        return self.first.count_from(settings.reach_us)

    def count_refused(self, settings: Settings) -> int:
        """How many events miss all of their windows."""
        return self.last.count_from(settings.reach_us)

    def count_correcting(self, settings: Settings) -> int:
        """How many events are accepted by a window that has closed before."""
        return self.first.count_from(settings.delay_us) - self.count_missed(settings)

    def count_corrections(self, settings: Settings) -> int:
        """How many rows of outputs are changed after their windows have closed."""
        closed = self.windows.count_from(settings.delay_us)
        return closed - self.windows.count_from(settings.reach_us)


def propose(margins: Margins, on_time: Fraction, counted: Fraction) -> Settings:
    """Settings that read well, with at most as many late events as are allowed.

    At least the share `on_time` of events arrives before any of its windows has closed, and at
    least the share `counted` misses no window.
    """
    delay_us = round_up(margins.need_for(on_time))
    return Settings(delay_us, round_up(margins.need_for(counted) - delay_us))


def read_share(text: str) -> Fraction:
    """A share that is written in percent; ValueError for what is none above 0 and up to 100.

    >>> read_share("99.9")
    Fraction(999, 1000)
    """
    share = Fraction(text.strip().removesuffix("%").strip()) / 100
    if not 0 < share <= 1:
        raise ValueError(f"{text} % is not above 0 and up to 100")
    return share


def write_share(share: Fraction) -> str:
    """A share in percent, as it is given.

    >>> write_share(Fraction(999, 1000)), write_share(Fraction(1))
    ('99.9 %', '100 %')
    """
    return f"{float(share * 100):g} %"


def describe_part(part: int, whole: int) -> str:
    """How large a part is in percent: two digits at least of it, or of what it lacks.

    >>> describe_part(1, 3), describe_part(11, 11_943), describe_part(9_999_999, 10_000_000)
    ('33.3 %', '0.092 %', '99.99999 %')
    >>> describe_part(0, 5), describe_part(5, 5), describe_part(0, 0)
    ('0 %', '100 %', '0 %')
    """
    percent = 100 * part / whole if whole else 0.0
    least = min(percent, 100 - percent)
    digits = 1
    while least and least * 10**digits < 10:
        digits += 1
    return f"{percent:.{digits}f}".rstrip("0").rstrip(".") + " %"
