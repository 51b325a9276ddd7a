"""A test that asks for no JVM can start none, neither in its process nor in one that it starts."""

import os
from pathlib import Path

import pytest

JAVA_FIXTURES = frozenset({"spark", "jvm"})
"""What a test requests to start a JVM: a session in its process, or processes with JVMs."""
ADVICE = (
    "it called java, which was refused. A test that needs a session requests the fixture `spark`, "
    "one that starts a JVM otherwise the fixture `jvm`; all others have to do without"
)
_REFUSING_JAVA = """\
#!/bin/sh
touch "{note}"
echo "this test may start no JVM" >&2
exit 1
"""


def may_start_java(item: pytest.Item) -> bool:
    """Whether the test, or a fixture that it needs, requests a JVM."""
    requested = item.fixturenames if isinstance(item, pytest.Function) else ()
    return not JAVA_FIXTURES.isdisjoint(requested)


class JavaGuard:
    """A Java home, made in an empty directory, whose `java` fails and notes that it was called.

    Spark, and processes that are started meanwhile, find Java by the two variables that are set.
    """

    def __init__(self, home: Path) -> None:
        self._home = home
        self._note = home / "called"
        self._variables = pytest.MonkeyPatch()
        java = home / "bin" / "java"
        java.parent.mkdir()
        java.write_text(_REFUSING_JAVA.format(note=self._note))
        java.chmod(0o755)

    def refuse_java(self) -> None:
        """From now on this is the only Java."""
        self._variables.setenv("JAVA_HOME", str(self._home))
        self._variables.setenv("PATH", str(self._home / "bin"), prepend=os.pathsep)

    def allow_java(self) -> None:
        """Java is found again; the test fails if it has called the one that was refused."""
        self._variables.undo()
        if self._note.exists():
            self._note.unlink()
            pytest.fail(ADVICE, pytrace=False)
