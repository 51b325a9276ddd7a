"""What a picture of windows shows, as values."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Dot:
    """An event: when, what is written above it, the run that read it.

    A marker is drawn as a cross.
    """

    at_us: int
    label: str
    run: int = 1
    late: bool = False
    marker: bool = False


@dataclass(frozen=True)
class Bar:
    """A row: its window, what is written on it, and whether the run corrected or deleted it.

    The window is half-open, [start, end); None means without end.
    """

    start_us: int | None
    end_us: int | None
    label: str
    corrected: bool = False
    gone: bool = False


@dataclass(frozen=True)
class Panel:
    """The rows after one run, and the watermark it left."""

    run: int
    bars: tuple[Bar, ...]
    watermark_us: int | None = None


@dataclass(frozen=True)
class Picture:
    """What is drawn: times from `low_us` to `high_us` with a tick every `step_us`.

    `clock` writes the times.
    """

    title: str
    low_us: int
    high_us: int
    step_us: int
    dots: tuple[Dot, ...]
    panels: tuple[Panel, ...]
    clock: str = "%H:%M"
