"""The pointer `_published.json` as a file: which step of the ledger it is a copy of."""

from json import JSONDecodeError, loads

from windowing.errors import Busy
from windowing.spec.pipeline import Pipeline
from windowing.storage.store import shared_store_of, store_of

POINTER = "_published.json"


def read_pointed_step(pipeline: Pipeline) -> int | None:
    """The number of the publish entry that the pointer copies; None where it names none."""
    pointer = pipeline.table(POINTER)
    return _parse_step(store_of(pointer).read(pointer))


def advance_pointer(pipeline: Pipeline, content: bytes, step: int) -> None:
    """Writes the pointer as a copy of a publish entry.

    Busy where it is a copy of a later one: another command has taken over while this one slept.
    """
    pointer = pipeline.table(POINTER)
    shared = shared_store_of(pointer)
    if shared is None:
        store_of(pointer).write(pointer, content)
        return
    written = None
    while written is None:
        found = shared.read_tagged(pointer)
        if found is None:
            written = shared.replace(pointer, content, None)
            continue
        if (_parse_step(found.content) or 0) > step:
            raise Busy(f"{pipeline.name}: another command has published since; publish again")
        written = shared.replace(pointer, content, found.tag)


def _parse_step(content: bytes | None) -> int | None:
    if content is None:
        return None
    try:
        step = loads(content).get("seq")
    except (AttributeError, UnicodeDecodeError, JSONDecodeError):
        # The next publication writes it again, and until then no reader can follow it.
        return None
    return step if isinstance(step, int) else None
