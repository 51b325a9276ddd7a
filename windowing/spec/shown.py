"""Which windows an output shows: emit, having and empty as written -> Shown; combinations that can't mean anything are refused."""

from windowing.errors import SpecError
from windowing.spec.expression import having
from windowing.spec.kinds import CHANGES, ON_CHANGE, ON_CLOSE, Aggregate, Shown
from windowing.spec.window_document import CumulateDocument, FilledDocument, GlobalDocument, SlidingDocument, WindowDocument

EMPTY_LIMIT = 1_000_000


def shown(field: str, written: WindowDocument, aggregates: tuple[Aggregate, ...]) -> Shown:
    """What the output of a window with these `aggregates` shows."""
    _check_emit(field, written)
    condition = None if written.having is None else having(f"{field}.having", written.having, [a.name for a in aggregates])
    return Shown(written.emit, condition, _empty_limit(field, written), written.change_feed)


def _check_emit(field: str, written: WindowDocument) -> None:
    if written.emit == CHANGES and not isinstance(written, (SlidingDocument, CumulateDocument)):
        raise SpecError(f"{field}.emit", f"'changes' is for sliding and cumulate windows; use {ON_CHANGE} or {ON_CLOSE}")
    if written.emit == ON_CLOSE and isinstance(written, GlobalDocument):
        raise SpecError(f"{field}.emit", f"'on_close' can't be: a global window never closes; use {ON_CHANGE}")
    if written.emit == CHANGES and written.having is not None:
        raise SpecError(f"{field}.having", "can't be given with emit: changes, which shows where values change; leave one of them out")


def _empty_limit(field: str, written: WindowDocument) -> int | None:
    if not isinstance(written, FilledDocument):
        return None
    if not written.empty:
        if written.empty_limit is not None:
            raise SpecError(f"{field}.empty_limit", f"{written.empty_limit} is given without empty: true; leave it out or add empty: true")
        return None
    if written.emit == CHANGES:
        raise SpecError(f"{field}.empty", "can't be true with emit: changes, which shows where values become 0; leave one of them out")
    limit = EMPTY_LIMIT if written.empty_limit is None else written.empty_limit
    if limit < 1:
        raise SpecError(f"{field}.empty_limit", f"{limit} is not a number of windows; it must be 1 or more")
    return limit
