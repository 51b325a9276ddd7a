"""The options of Java that a session sets come before those of the user, and replace none."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from jobs.session import ARCHIVE, _settings
from jobs.sessions.profiles import DRIVER_OPTIONS, FULL, LOCAL, SHORT, TINY, Profile

EXECUTOR = "spark.executor.defaultJavaOptions"
CLUSTER = {"spark.master": "spark://127.0.0.1:9"}
PROGRAM = """
import json, sys, tidemark
spark = tidemark.spark_session()
java, context = spark._jvm, spark.sparkContext
entries = getattr(getattr(java.org.apache.spark.internal.config, "package$"), "MODULE$")
beans = java.java.lang.management.ManagementFactory
found = {
    "options": list(beans.getRuntimeMXBean().getInputArguments()),
    "zone": java.java.util.TimeZone.getDefault().getID(),
    "given": java.java.lang.System.getProperty("given"),
    "executors": context._jsc.sc().conf().get(entries.EXECUTOR_JAVA_OPTIONS()).get(),
}
print(json.dumps(found))
"""


@pytest.mark.parametrize("profile", [FULL, SHORT, TINY], ids=["full", "short", "tiny"])
def test_a_local_session_has_our_options_and_those_of_its_profile(profile: Profile) -> None:
    settings = _settings("tests", profile)
    compiler = {**LOCAL, **profile}[DRIVER_OPTIONS]
    assert "-Duser.timezone=UTC" in settings[DRIVER_OPTIONS]
    assert settings[DRIVER_OPTIONS].endswith(f" {compiler}")


def test_a_session_on_a_cluster_has_our_options() -> None:
    settings = _settings("tests", CLUSTER)
    assert "-Duser.timezone=UTC" in settings[DRIVER_OPTIONS]
    assert settings[EXECUTOR] == "-Duser.timezone=UTC"


@pytest.mark.parametrize("conf", [FULL, SHORT, CLUSTER], ids=["full", "short", "cluster"])
def test_the_options_of_the_user_are_not_set(conf: Profile) -> None:
    ours = _settings("tests", conf)
    assert not [name for name in ours if name.endswith("extraJavaOptions")]


@pytest.mark.slow
def test_options_of_a_properties_file_come_after_ours(jvm: None, tmp_path: Path) -> None:
    file = tmp_path / "spark.properties"
    file.write_text(
        "spark.driver.extraJavaOptions -Dgiven=theirs -XX:-UseParallelGC -XX:+UseSerialGC\n"
        "spark.executor.extraJavaOptions -Djavax.net.ssl.trustStore=/trust.p12\n"
    )
    given = {**os.environ, "PYSPARK_SUBMIT_ARGS": f"--properties-file {file} pyspark-shell"}
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM], env=given, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr[-2000:]
    found = json.loads(done.stdout.splitlines()[-1])
    assert (found["zone"], found["given"]) == ("UTC", "theirs")
    # Between them are the modules that Spark itself opens.
    ours, *_, theirs = found["executors"].split()
    assert (ours, theirs) == ("-Duser.timezone=UTC", "-Djavax.net.ssl.trustStore=/trust.p12")
    options = found["options"]
    assert "-XX:+UseSerialGC" in options
    assert set(LOCAL[DRIVER_OPTIONS].split()) < set(options)
    if ARCHIVE.exists():
        assert f"-XX:SharedArchiveFile={ARCHIVE}" in options
