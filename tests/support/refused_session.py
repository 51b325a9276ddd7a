"""Commands that want a session are refused one, and what they asked for is seen."""

import pytest

from windowing.errors import UsageError

NO_SESSION = "no session here"


def refuse_sessions(monkeypatch: pytest.MonkeyPatch) -> list[dict[str, str]]:
    """The settings of the sessions that commands ask for from now on; none of them starts."""
    asked: list[dict[str, str]] = []

    def refuse(**conf: str) -> None:
        asked.append(conf)
        raise UsageError(NO_SESSION)

    monkeypatch.setattr("jobs.cli.spark.command_session", refuse)
    return asked
