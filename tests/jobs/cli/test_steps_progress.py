"""Progress of long commands: a bar on a terminal, lines in a log, and none for work of one step."""

import io
import itertools

import pytest

from jobs.console import show_progress
from jobs.microbatch.parallel import run_parallel


class Terminal(io.StringIO):
    """A stream that says it is a terminal."""

    def isatty(self) -> bool:
        return True


@pytest.fixture
def seconds(monkeypatch: pytest.MonkeyPatch) -> None:
    """A clock that is four seconds later each time."""
    clock = itertools.count(0.0, 4.0)
    monkeypatch.setattr("jobs.console.time.monotonic", lambda: next(clock))


@pytest.mark.usefixtures("seconds")
def test_a_log_has_the_first_step_and_then_a_line_each_ten_seconds(
    capsys: pytest.CaptureFixture[str],
) -> None:
    with show_progress("orders ingest", "file") as progress:
        for done in range(1, 8):
            progress(done, 7)
    printed = capsys.readouterr()
    assert printed.out == ""
    assert printed.err.splitlines() == [
        "orders ingest: 1 of 7 files done",
        "orders ingest: 4 of 7 files done",
        "orders ingest: 7 of 7 files done",
    ]


def test_work_of_one_step_has_no_line(capsys: pytest.CaptureFixture[str]) -> None:
    with show_progress("orders ingest", "file") as progress:
        progress(1, 1)
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize(("value", "coloured"), [(None, True), ("1", False)])
def test_a_terminal_has_a_bar_and_colours_unless_they_are_refused(
    value: str | None, monkeypatch: pytest.MonkeyPatch, *, coloured: bool
) -> None:
    stream = Terminal()
    monkeypatch.setattr("sys.stderr", stream)
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.delenv("NO_COLOR", raising=False)
    if value is not None:
        monkeypatch.setenv("NO_COLOR", value)
    with show_progress("orders [maintain]", "table") as progress:
        progress(3, 12)
    shown = stream.getvalue()
    assert "orders [maintain]" in shown
    assert "3 of 12 tables done" in shown
    assert ("\x1b[38;" in shown or "\x1b[35m" in shown or "\x1b[32m" in shown) is coloured


def test_a_bar_ends_with_an_interrupt(monkeypatch: pytest.MonkeyPatch) -> None:
    stream = Terminal()
    monkeypatch.setattr("sys.stderr", stream)
    monkeypatch.setenv("TERM", "xterm-256color")
    with pytest.raises(KeyboardInterrupt), show_progress("orders", "file"):
        raise KeyboardInterrupt
    # The cursor is shown again.
    assert stream.getvalue().rstrip().endswith("\x1b[?25h")


def test_steps_that_run_at_once_are_counted_as_they_end() -> None:
    told: list[tuple[int, int]] = []
    steps = [lambda n=n: n for n in range(3)]
    assert run_parallel(steps, lambda done, total: told.append((done, total))) == [0, 1, 2]
    assert told == [(1, 3), (2, 3), (3, 3)]
    assert run_parallel(steps[:1], lambda done, total: told.append((done, total))) == [0]
    assert told[3:] == [(1, 1)]
