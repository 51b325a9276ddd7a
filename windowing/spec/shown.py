"""Which windows an output shows: emit, having and empty as written -> OutputPolicy.

Combinations that can't mean anything are refused.
"""

from windowing.errors import SpecError
from windowing.spec.expressions.parse import parse_having
from windowing.spec.kinds import CHANGES, ON_CLOSE, Aggregate, OutputPolicy
from windowing.spec.words import quote_value as quoted
from windowing.spec.yaml.window_document import FilledDocument, WindowDocument

EMPTY_LIMIT = 1_000_000
_WRONG_EMISSIONS = {
    CHANGES: "'changes' is for sliding and cumulate windows only",
    ON_CLOSE: "'on_close' is not for global windows, which never close",
}
"""What is wrong with an emission that a kind does not have."""


def output_policy(
    field: str, written: WindowDocument, aggregates: tuple[Aggregate, ...]
) -> OutputPolicy:
    """What the output of a window with these `aggregates` shows."""
    _check_emit(field, written)
    condition = None
    if written.having is not None:
        names = [aggregate.name for aggregate in aggregates]
        condition = parse_having(f"{field}.having", written.having, names)
    limit = _find_empty_limit(field, written)
    return OutputPolicy(written.emit, condition, limit, written.change_feed)


def _check_emit(field: str, written: WindowDocument) -> None:
    if written.emit not in written.emissions:
        use = " or ".join(written.emissions)
        raise SpecError(f"{field}.emit", f"{_WRONG_EMISSIONS[written.emit]}; use {use}")
    if written.emit == CHANGES and written.having is not None:
        raise SpecError(
            f"{field}.having",
            f"{quoted(written.having)} can't be given with emit: changes; leave one of them out",
        )


def _find_empty_limit(field: str, written: WindowDocument) -> int | None:
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
