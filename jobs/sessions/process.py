"""What belongs to a process as a whole and not to a session: its environment and its clock.

A program of a user gets both back as they were. Processes of Tidemark's own, such as a command,
stay on UTC until they end.
"""

import os
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager


@contextmanager
def environment_changed(variables: Mapping[str, str]) -> Iterator[None]:
    """Inside, the environment has these variables too; afterwards it is what it was."""
    before = {name: os.environ.get(name) for name in variables}
    os.environ.update(variables)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value


def stay_on_utc() -> None:
    """Puts the clock of this process on UTC, so that Python shows times as Spark does."""
    os.environ["TZ"] = "UTC"
    time.tzset()
