"""The pointer `_published.json` as a file: which step of the ledger it is a copy of."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from json import JSONDecodeError, loads

from windowing.errors import Busy
from windowing.spec.pipeline import Pipeline
from windowing.storage.permission import check_permission
from windowing.storage.store import shared_store_of, store_of

POINTER = "_published.json"
_ATTEMPTS = 100
"""How often a pointer may be replaced by others before one that replaces it gives up."""


@dataclass(frozen=True)
class Pointed:
    """What the pointer says: which publish entry it copies, and by output the version.

    None and no version where it is missing or damaged.
    """

    step: int | None = None
    versions: Mapping[str, int] = field(default_factory=dict)


def read_pointer(pipeline: Pipeline) -> Pointed:
    """What the pointer says now."""
    pointer = pipeline.table(POINTER)
    return _parse(store_of(pointer).read(pointer))


def advance_pointer(pipeline: Pipeline, content: bytes, step: int) -> bool:
    """Writes the pointer as a copy of a publish entry; returns whether it names other versions now.

    Busy where it is a copy of a later one, or changes all the time, or the lock was lost: another
    command has taken over while this one slept, and may have reset the pipeline.
    """
    check_permission()
    pointer = pipeline.table(POINTER)
    shared = shared_store_of(pointer)
    if shared is None:
        before = read_pointer(pipeline)
        store_of(pointer).write(pointer, content)
        return _has_others(_parse(content), before)
    for _ in range(_ATTEMPTS):
        found = shared.read_tagged(pointer)
        before = _parse(None if found is None else found.content)
        if (before.step or 0) > step:
            raise Busy(f"{pipeline.name}: another command has published since; publish again")
        if shared.replace(pointer, content, None if found is None else found.tag) is not None:
            return _has_others(_parse(content), before)
    raise Busy(f"{pipeline.name}: {pointer} changes all the time; publish again")


def replace_pointer(pipeline: Pipeline, content: bytes) -> None:
    """Writes the pointer in place of whatever it is, as where somebody has edited it.

    Busy where it changes meanwhile, or the lock was lost: another command has taken over while this
    one slept, and may have published.
    """
    pointer = pipeline.table(POINTER)
    shared = shared_store_of(pointer)
    found = None if shared is None else shared.read_tagged(pointer)
    check_permission()
    if shared is None:
        store_of(pointer).write(pointer, content)
    elif shared.replace(pointer, content, None if found is None else found.tag) is None:
        raise Busy(f"{pipeline.name}: another command has published meanwhile; look again")


def _has_others(now: Pointed, before: Pointed) -> bool:
    """Whether a version of an output is named now that was not before."""
    return not now.versions.items() <= before.versions.items()


def _parse(content: bytes | None) -> Pointed:
    try:
        said = loads(content or b"")
    except (UnicodeDecodeError, JSONDecodeError):
        # The next publication writes it again, and until then no reader can follow it.
        return Pointed()
    step = said.get("seq") if isinstance(said, dict) else None
    if not isinstance(step, int):
        return Pointed()
    outputs = said.get("outputs")
    named = outputs.items() if isinstance(outputs, dict) else ()
    versions = {name: each.get("version") for name, each in named if isinstance(each, dict)}
    return Pointed(step, {name: each for name, each in versions.items() if isinstance(each, int)})
