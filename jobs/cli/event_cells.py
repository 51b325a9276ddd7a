"""How commands ask for the events that steps have accepted, and show them."""

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import click

from windowing.report.text import instant_us, interval
from windowing.spec.duration import Duration

if TYPE_CHECKING:
    from jobs.evidence.accepted_events import AcceptedEvents
    from windowing.revisions.evidence import Untold
    from windowing.revisions.rule import Step

EVENT_COLUMNS = ("accepted", "latest behind W", "the first of them")
_EVENTS = 20


def events_option(what: str) -> Callable[[Any], Any]:
    """The option --events, which tells `what`."""
    return click.option(
        "--events",
        type=click.IntRange(min=1),
        is_flag=False,
        flag_value=_EVENTS,
        metavar="[N]",
        help=f"{what}, and how late they were; at most the first N of each, {_EVENTS} if not "
        f"given. This reads the source. Give it last, or as --events={_EVENTS}, because a name "
        "behind it would be taken for N.",
    )


def list_cells_of_events(events: "AcceptedEvents | Untold") -> list[Any]:
    """The cells below `EVENT_COLUMNS`."""
    from windowing.revisions.evidence import Untold

    if isinstance(events, Untold):
        return ["not known", None, f"because {events.reason}"]
    behind = str(Duration(events.behind_us)) if events.behind_us else "0"
    return [events.count, behind, "; ".join(_describe_events(events))]


def _describe_events(events: "AcceptedEvents") -> Iterator[str]:
    for event_id, at_us in events.first:
        name = "" if event_id is None else f"{event_id} at "
        yield f"{name}{instant_us(at_us)}"
    left = events.count - len(events.first)
    if left:
        yield f"and {left:,} more"


def describe_step(step: "Step | None") -> str | None:
    """A step as the cause of something."""
    if step is None:
        return None
    if step.reprocessed is not None:
        return f"{step.cause} {interval(step.reprocessed.start, step.reprocessed.end)}"
    return f"{step.cause} {step.run}" if step.cause == "run" else str(step.cause)
