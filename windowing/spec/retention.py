"""How long state must live: as long as an event can still change a window."""

from windowing.errors import SpecError
from windowing.spec.description import describe_window
from windowing.spec.duration import Duration
from windowing.spec.kinds import Window
from windowing.spec.pipeline import Retention, Watermark


def check_state(
    given: str, watermark: Watermark, retention: Retention, windows: tuple[Window, ...]
) -> None:
    """Raises SpecError unless state is kept for allowed lateness + what the windows need."""
    if retention.state_us is None:
        return
    lateness = watermark.allowed_lateness_us
    if lateness is None:
        raise SpecError(
            "retention.state",
            f"{given!r} is given, but allowed_lateness: forever needs state: forever; "
            "change one of them",
        )
    needs: list[tuple[int, str]] = []
    for window in windows:
        needed_us = describe_window(window).needed_us
        if needed_us is None:
            raise SpecError(
                "retention.state",
                f"{given!r} is given, but windows.{window.name} can last forever; write forever",
            )
        needs.append((needed_us, window.name))
    longest_us, name = max(needs)
    if retention.state_us < lateness + longest_us:
        raise SpecError(
            "retention.state",
            f"{given!r} is shorter than allowed_lateness + the '{Duration(longest_us)}' that "
            f"windows.{name} needs;"
            f" write at least '{Duration(lateness + longest_us)}' or forever",
        )
