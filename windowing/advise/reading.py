"""Which events of a source are asked for, and what was read of them. Values only."""

from collections.abc import Sequence
from dataclasses import dataclass

from windowing.advise.history import Batches, Events


@dataclass(frozen=True)
class Asked:
    """Which events to read: at most so many `rows`, of commits from `since_us` on, if it is given.

    `by` are the columns by which events are grouped besides.
    """

    rows: int = 5_000_000
    by: tuple[str, ...] = ()
    since_us: int | None = None


@dataclass(frozen=True)
class LeftOut:
    """So many commits, with so many rows if that is known, were left out for a reason."""

    commits: int
    rows: int | None
    reason: str


@dataclass(frozen=True)
class Reading:
    """What was read, in batches of one commit each, from version `first` to version `last`.

    `keys` and `groups` are their values as text, by number. `invalid` rows had no event time or no
    key. `reach` is why the history begins where it does, and `cut_by` the option that leaves out
    older commits, if one does. All that arrived at `complete_from_us` or later was read; it is None
    where that is all that ever arrived.
    """

    first: int
    last: int
    batches: Batches
    events: Events
    keys: Sequence[tuple[str, ...]]
    groups: Sequence[tuple[str, ...]]
    invalid: int
    left_out: tuple[LeftOut, ...]
    reach: str
    cut_by: str | None = None
    complete_from_us: int | None = None


class NeedsSpark(Exception):
    """Raised where a table can be read by Spark alone; its text is the reason."""
