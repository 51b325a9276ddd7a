"""Which windows an output shows: emit, having and empty as written -> Shown.

Combinations that can't mean anything are refused.
"""

from windowing.errors import SpecError
from windowing.spec.expressions.parse import parse_having
from windowing.spec.kinds import CHANGES, ON_CHANGE, ON_CLOSE, Aggregate, OutputPolicy
from windowing.spec.words import quote_value as quoted
from windowing.spec.yaml.window_document import (
    CumulateDocument,
    FilledDocument,
    GlobalDocument,
    SlidingDocument,
    WindowDocument,
)

EMPTY_LIMIT = 1_000_000


def output_policy(
    field: str, written: WindowDocument, aggregates: tuple[Aggregate, ...]
) -> OutputPolicy:
    """What the output of a window with these `aggregates` shows."""
    _check_emit(field, written)
    condition = (
        None
        if written.having is None
        else parse_having(f"{field}.having", written.having, [a.name for a in aggregates])
    )
    return OutputPolicy(written.emit, condition, _empty_limit(field, written), written.change_feed)


def _check_emit(field: str, written: WindowDocument) -> None:
    endless = isinstance(written, GlobalDocument)
    if written.emit == CHANGES and not isinstance(written, (SlidingDocument, CumulateDocument)):
        others = ON_CHANGE if endless else f"{ON_CHANGE} or {ON_CLOSE}"
        raise SpecError(
            f"{field}.emit", f"'changes' is for sliding and cumulate windows only; use {others}"
        )
    if written.emit == ON_CLOSE and endless:
        raise SpecError(
            f"{field}.emit",
            f"'on_close' is not for global windows, which never close; use {ON_CHANGE}",
        )
    if written.emit == CHANGES and written.having is not None:
        raise SpecError(
            f"{field}.having",
            f"{quoted(written.having)} can't be given with emit: changes; leave one of them out",
        )


def _empty_limit(field: str, written: WindowDocument) -> int | None:
    if not isinstance(written, FilledDocument):
        return None
    if not written.empty:
        if written.empty_limit is not None:
            raise SpecError(
                f"{field}.empty_limit",
                f"{quoted(written.empty_limit)} is given without empty: true; "
                "leave it out or add that",
            )
        return None
    if written.emit == CHANGES:
        raise SpecError(
            f"{field}.empty", "true can't be given with emit: changes; leave one of them out"
        )
    limit = EMPTY_LIMIT if written.empty_limit is None else written.empty_limit
    if limit < 1:
        raise SpecError(
            f"{field}.empty_limit",
            f"{quoted(limit)} is not a number of windows; it must be 1 or more",
        )
    return limit
