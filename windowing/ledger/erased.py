"""What is to be erased, and what was, as the notes of ledger entries say it.

The notes have salted digests, never a value.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from json import dumps, loads

_SALT, _ERASED, _LIFTED = "salt", "erased", "lifted"
_COLUMN, _COMPUTED = "column", "computed"


@dataclass(frozen=True)
class Erasing:
    """What is erased: the `values` of a key by column, or that of one other `column`; texts."""

    values: Mapping[str, str]
    column: str | None = None


@dataclass(frozen=True)
class Erasure:
    """The digest of a key, or of a value of one `column`, whose rows are kept out.

    `column` is None for a key. Where the column was `computed`, that is its expression.
    """

    digest: str
    column: str | None = None
    computed: str | None = None


@dataclass(frozen=True)
class Erasures:
    """The keys and values whose rows are kept out, and the salt of their digests.

    The salt is None before anything was erased. `any_lifted` is whether any is kept out no more, of
    whose rows nothing shows which were accepted or refused before.
    """

    salt: str | None = None
    found: frozenset[Erasure] = frozenset()
    any_lifted: bool = False

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns of which a value is erased, in order."""
        return tuple(sorted({each.column for each in self.found if each.column is not None}))

    def digests_of(self, column: str | None) -> list[str]:
        """The digests of values of a column, or of keys where it is None, in order."""
        return sorted(each.digest for each in self.found if each.column == column)

    def select(self, columns: Iterable[str | None]) -> "Erasures":
        """What is erased of these columns; None among them stands for keys."""
        chosen = set(columns)
        kept = frozenset(each for each in self.found if each.column in chosen)
        return Erasures(self.salt, kept, self.any_lifted)


def note_erased(salt: str, erasure: Erasure) -> str:
    """The note of an entry from which on a key or a value is erased."""
    return _write_note(salt, _ERASED, erasure)


def note_lifted(salt: str, erasure: Erasure) -> str:
    """The note of an entry from which on a key or a value is erased no more."""
    return _write_note(salt, _LIFTED, erasure)


def _write_note(salt: str, what: str, erasure: Erasure) -> str:
    note = {_SALT: salt, what: erasure.digest}
    if erasure.column is not None:
        note[_COLUMN] = erasure.column
    if erasure.computed is not None:
        note[_COMPUTED] = erasure.computed
    return dumps(note)


def read_erased(note: str | None) -> Erasure | None:
    """What an entry erases; None where an earlier release has noted nothing."""
    if note is None:
        return None
    fields = loads(note)
    return _read_erasure(fields, _ERASED) if _ERASED in fields else None


def is_lifted(note: str | None) -> bool:
    """Whether an entry with this note lifts an erasure."""
    return note is not None and _LIFTED in loads(note)


def _read_erasure(fields: Mapping[str, str], what: str) -> Erasure:
    return Erasure(fields[what], fields.get(_COLUMN), fields.get(_COMPUTED))


def find_erasures(notes: Iterable[str | None]) -> Erasures:
    """What is erased after entries with these notes, oldest first."""
    salt, any_lifted = None, False
    found: set[Erasure] = set()
    for note in notes:
        if note is None:
            continue
        fields = loads(note)
        salt = fields[_SALT]
        if _ERASED in fields:
            found.add(_read_erasure(fields, _ERASED))
        else:
            found.discard(_read_erasure(fields, _LIFTED))
            any_lifted = True
    return Erasures(salt, frozenset(found), any_lifted)
