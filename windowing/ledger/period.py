"""Which period is closed, as the notes of ledger entries say it."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from json import dumps, loads

_UNTIL, _REASON, _FROZEN = "until_us", "reason", "frozen"


@dataclass(frozen=True)
class Frozen:
    """The frozen rows of an output: how many there are, and a digest of all of them."""

    rows: int
    digest: str


@dataclass(frozen=True)
class Period:
    """Rows of outputs that end until an instant, itself included, do not change.

    `frozen` are the rows by window.
    """

    until_us: int
    reason: str
    frozen: Mapping[str, Frozen] = field(default_factory=dict)

    def as_note(self) -> str:
        """The note of a ledger entry."""
        frozen = {name: asdict(each) for name, each in self.frozen.items()}
        return dumps({_UNTIL: self.until_us, _REASON: self.reason, _FROZEN: frozen})


@dataclass(frozen=True)
class Reopening:
    """All rows that are frozen are released."""

    reason: str

    def as_note(self) -> str:
        """The note of a ledger entry."""
        return dumps({_UNTIL: None, _REASON: self.reason, _FROZEN: {}})


def read_step(note: str) -> Period | Reopening:
    """What `as_note` has written.

    >>> steps = Period(5, "invoiced", {"hourly": Frozen(2, "ab")}), Reopening("a bill was wrong")
    >>> tuple(read_step(step.as_note()) for step in steps) == steps
    True
    """
    fields = loads(note)
    if fields[_UNTIL] is None:
        return Reopening(fields[_REASON])
    frozen = {name: Frozen(**each) for name, each in fields[_FROZEN].items()}
    return Period(fields[_UNTIL], fields[_REASON], frozen)


def read_period(note: str | None) -> Period | None:
    """The period that is closed by what `as_note` has written; None where it says of none."""
    step = None if note is None else read_step(note)
    return step if isinstance(step, Period) else None
