"""Steps of the ledger and their times as plain JSON values."""

from windowing.report.text import plain
from windowing.revisions.rule import Period, Step


def tell_step(step: Step) -> dict[str, object]:
    """What a step was, and when it was recorded as finished."""
    return {
        "cause": str(step.cause),
        "run": step.run,
        "at": plain(step.at),
        "reprocessed": tell_period(step.reprocessed),
    }


def tell_period(period: Period | None) -> dict[str, object] | None:
    """From when until when."""
    return None if period is None else {"from": plain(period.start), "to": plain(period.end)}
