"""Colours of a terminal, and none where the environment asks for that."""

from io import StringIO

import pytest
from rich.text import Text

from jobs.console import open_console


class Terminal(StringIO):
    """A stream that says it is a terminal."""

    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize(("value", "coloured"), [(None, True), ("", True), ("1", False)])
def test_no_color_means_no_colour(
    value: str | None, monkeypatch: pytest.MonkeyPatch, *, coloured: bool
) -> None:
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.delenv("NO_COLOR", raising=False)
    if value is not None:
        monkeypatch.setenv("NO_COLOR", value)
    stream = Terminal()
    open_console(stream).print(Text("stale", style="red"))
    assert ("\x1b[31m" in stream.getvalue()) is coloured
    assert "stale" in stream.getvalue()
