"""Which keys were erased, as the notes of ledger entries say it: salted digests, never a key."""

from collections.abc import Iterable
from dataclasses import dataclass
from json import dumps, loads

_SALT, _ERASED, _LIFTED = "salt", "erased", "lifted"


@dataclass(frozen=True)
class ErasedKeys:
    """The digests of the keys whose rows are kept out, and the salt that they are made with.

    The salt is None before the first key was erased.
    """

    salt: str | None = None
    digests: frozenset[str] = frozenset()


def note_erased(salt: str, digest: str) -> str:
    """The note of an entry from which on a key is erased."""
    return dumps({_SALT: salt, _ERASED: digest})


def note_lifted(salt: str, digest: str) -> str:
    """The note of an entry from which on a key is erased no more."""
    return dumps({_SALT: salt, _LIFTED: digest})


def read_erased(note: str | None) -> str | None:
    """The digest of the key that an entry erases; None where an earlier release has noted none."""
    return None if note is None else loads(note).get(_ERASED)


def find_erased_keys(notes: Iterable[str | None]) -> ErasedKeys:
    """What is erased after entries with these notes, oldest first."""
    salt = None
    digests: set[str] = set()
    for note in notes:
        if note is None:
            continue
        found = loads(note)
        salt = found[_SALT]
        if _ERASED in found:
            digests.add(found[_ERASED])
        else:
            digests.discard(found[_LIFTED])
    return ErasedKeys(salt, frozenset(digests))
