"""The pointer `_published.json` as a file: which step of the ledger it is a copy of."""

from json import JSONDecodeError, loads

from windowing.spec.pipeline import Pipeline
from windowing.storage.store import store_of

POINTER = "_published.json"


def read_pointed_step(pipeline: Pipeline) -> int | None:
    """The number of the publish entry that the pointer copies; None where it names none."""
    pointer = pipeline.table(POINTER)
    content = store_of(pointer).read(pointer)
    if content is None:
        return None
    try:
        step = loads(content).get("seq")
    except (AttributeError, UnicodeDecodeError, JSONDecodeError):
        # The next publication writes it again, and until then no reader can follow it.
        return None
    return step if isinstance(step, int) else None
