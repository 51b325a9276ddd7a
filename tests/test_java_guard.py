"""Tests are marked by what they request, and those that request no JVM get none."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.support.java_guard import ADVICE, JavaGuard

pytest_plugins = ["pytester"]
SUITE = """
import subprocess
import pytest

@pytest.fixture(scope="module")
def calls_java():
    subprocess.run(["java", "-version"])

@pytest.fixture
def needs_a_session(spark):
    pass

def test_quiet():
    pass

def test_by_itself():
    subprocess.run(["sh", "-c", "java -version || true"])

def test_by_a_fixture(calls_java):
    pass

def test_after_them():
    pass

def test_with_a_session(needs_a_session):
    pass

def test_with_processes(jvm):
    pass
"""


@pytest.fixture
def suite(pytester: pytest.Pytester) -> pytest.Pytester:
    """SUITE as a directory of tests, with the hooks of this one."""
    pytester.makepyfile(SUITE)
    pytester.makeini("[pytest]\naddopts = -p tests.conftest\nmarkers = spark")
    return pytester


def test_a_test_that_calls_java_unasked_fails_with_what_to_do(suite: pytest.Pytester) -> None:
    ended = suite.runpytest("-m", "not spark", "-rE")
    ended.assert_outcomes(passed=4, errors=2, deselected=2)
    ended.stdout.fnmatch_lines(["ERROR *::test_by_itself*", "ERROR *::test_by_a_fixture*"])
    assert ended.outlines.count(ADVICE) == 2


def test_a_test_is_marked_by_what_it_or_its_fixtures_request(suite: pytest.Pytester) -> None:
    ended = suite.runpytest("-m", "spark", "--collect-only", "-q")
    chosen = [line.partition("::")[2] for line in ended.outlines if "::" in line]
    assert chosen == ["test_with_a_session", "test_with_processes"]


def test_what_would_begin_too_late_is_skipped_and_counted(suite: pytest.Pytester) -> None:
    ended = suite.runpytest("--begin-within", "0", "-rs")
    ended.assert_outcomes(skipped=6)
    ended.stdout.fnmatch_lines(["SKIPPED [[]6] *: 0 minutes were over before it began"])


def test_processes_find_the_java_that_is_refused_until_it_is_allowed(tmp_path: Path) -> None:
    before = (shutil.which("java"), os.environ.get("JAVA_HOME"))
    guard = JavaGuard(tmp_path)
    guard.refuse_java()
    java = shutil.which("java")
    assert java == f"{os.environ['JAVA_HOME']}/bin/java" == f"{tmp_path}/bin/java"
    assert subprocess.run([java], check=False, capture_output=True).returncode == 1
    with pytest.raises(pytest.fail.Exception, match="requests the fixture `spark`"):
        guard.allow_java()
    assert (shutil.which("java"), os.environ.get("JAVA_HOME")) == before
    guard.allow_java()
