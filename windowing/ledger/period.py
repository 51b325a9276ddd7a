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

    `until_us` is None where they are released. `frozen` are the rows by window.
    """

    until_us: int | None
    reason: str
    frozen: Mapping[str, Frozen] = field(default_factory=dict)

    def as_note(self) -> str:
        """The note of a ledger entry."""
        frozen = {name: asdict(each) for name, each in self.frozen.items()}
        return dumps({_UNTIL: self.until_us, _REASON: self.reason, _FROZEN: frozen})


def read_period(note: str | None) -> Period | None:
    """What `as_note` has written; None where there is no note.

    >>> period = Period(5, "invoiced", {"hourly": Frozen(2, "ab")})
    >>> read_period(period.as_note()) == period
    True
    """
    if note is None:
        return None
    fields = loads(note)
    frozen = {name: Frozen(**each) for name, each in fields[_FROZEN].items()}
    return Period(fields[_UNTIL], fields[_REASON], frozen)
