"""Commands that want a session are refused one, and what they asked for is seen."""

from collections.abc import Mapping

import pytest

from windowing.errors import UsageError

NO_SESSION = "no session here"


def refuse_sessions(monkeypatch: pytest.MonkeyPatch) -> list[dict[str, str]]:
    """The settings of the sessions that commands ask for from now on; none of them starts."""
    asked: list[dict[str, str]] = []

    def refuse(profile: Mapping[str, str]) -> None:
        asked.append(dict(profile))
        raise UsageError(NO_SESSION)

    monkeypatch.setattr("jobs.cli.spark.start_session", refuse)
    return asked
