"""What a session changes of the process that opens it, and what a command keeps."""

import os
import subprocess
import sys
import time

import pytest

from jobs.sessions.process import environment_changed

PROGRAM = """
import os, time
before = dict(os.environ)
import tidemark
spark = tidemark.spark_session()
assert os.environ.items() >= before.items(), "a variable is another"
print(*sorted(os.environ.keys() - before.keys()))
print(time.strftime("%z", time.localtime(0)))
print(spark.conf.get("spark.sql.session.timeZone"))
print(spark.sql("select date_format(timestamp_seconds(0), 'HH') as hour").first().hour)
"""


def test_variables_are_what_they_were(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KEPT", "before")
    monkeypatch.delenv("NEW", raising=False)
    with environment_changed({"KEPT": "inside", "NEW": "inside"}):
        assert (os.environ["KEPT"], os.environ["NEW"]) == ("inside", "inside")
    assert (os.environ["KEPT"], os.environ.get("NEW")) == ("before", None)


def test_they_are_also_after_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KEPT", "before")
    with pytest.raises(KeyError), environment_changed({"KEPT": "inside"}):
        raise KeyError
    assert os.environ["KEPT"] == "before"


def test_tests_are_on_utc() -> None:
    assert time.strftime("%z", time.localtime(0)) == "+0000"


@pytest.mark.slow
def test_a_notebook_keeps_its_clock_and_its_environment(jvm: None) -> None:
    elsewhere = {**os.environ, "TZ": "America/New_York", "SPARK_HOME": "/elsewhere"}
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM], env=elsewhere, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr[-2000:]
    variables, offset, zone, hour = done.stdout.splitlines()[-4:]
    by_pyspark = {"SPARK_AUTH_SOCKET_TIMEOUT", "SPARK_BUFFER_SIZE"}
    assert {*variables.split()} <= by_pyspark
    assert (offset, zone, hour) == ("-0500", "UTC", "00")
