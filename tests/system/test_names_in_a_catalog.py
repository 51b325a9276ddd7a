"""A source and published tables by their names in a Hive metastore, in several sessions."""

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from tests.support.hourly_trips import SPEC

pytestmark = [pytest.mark.deep, pytest.mark.usefixtures("jvm"), pytest.mark.timeout(900)]
HIVE = """\
spark.sql.catalogImplementation hive
spark.hadoop.javax.jdo.option.ConnectionURL jdbc:derby:;databaseName={home}/metastore;create=true
"""
ASK = """
import json, sys
from jobs.session import spark_session
from jobs.sessions.profiles import TEST
spark, rows = spark_session("names", **TEST), []
for statement in json.loads(sys.argv[1]):
    rows = [list(row) for row in spark.sql(statement).collect()]
print(json.dumps(rows, default=str))
"""
SCHEMAS = ("raw", "gold", "taken")
WINDOWS = "select place, cast(window_start as string), n from {} order by 1, 2"


@pytest.fixture
def variables(tmp_path: Path) -> dict[str, str]:
    """The environment of a process whose Spark has a metastore in a directory."""
    settings = tmp_path / "hive.conf"
    settings.write_text(HIVE.format(home=tmp_path))
    submitted = f"--properties-file {settings} pyspark-shell"
    return {**os.environ, "PYSPARK_SUBMIT_ARGS": submitted, "TIDEMARK_ENGINE": "off"}


@pytest.fixture
def spec(tmp_path: Path) -> Path:
    """A pipeline whose source is a name."""
    file = tmp_path / "trips.yaml"
    file.write_text(SPEC.replace("lake/bronze/trips", "raw.trips"))
    return file


def start(variables: Mapping[str, str], *words: str) -> str:
    """What a process of Python prints."""
    done = subprocess.run(
        [sys.executable, *words],
        check=False,
        env=variables,
        capture_output=True,
        text=True,
        timeout=400,
    )
    return done.stdout + done.stderr


def ask(variables: Mapping[str, str], *statements: str) -> list[list[Any]]:
    """What the last statement of SQL returns."""
    said = start(variables, "-c", ASK, json.dumps(statements))
    rows = [line for line in said.splitlines() if line.startswith("[")]
    assert rows, said
    found = json.loads(rows[-1])
    assert isinstance(found, list)
    return found


def command(variables: Mapping[str, str], spec: Path, *commands: tuple[str, ...]) -> str:
    """What commands of the pipeline print, with their exit codes."""
    words = json.dumps([[name, str(spec), *more] for name, *more in commands])
    return start(variables, "-m", "tests.support.commands_in_turn", words)


def test_a_source_is_read_and_published_tables_are_found_by_their_names(
    variables: dict[str, str], spec: Path, tmp_path: Path
) -> None:
    rows = "('a', timestamp'2026-01-05 00:10:00'), ('a', timestamp'2026-01-05 00:20:00')"
    ask(
        variables,
        *(f"create schema {name} location '{tmp_path}/{name}'" for name in SCHEMAS),
        f"create table raw.trips (place string, at timestamp) using delta location '{tmp_path}/in'",
        f"insert into raw.trips values {rows}",
        "create table taken.hourly (n int) using delta",
    )
    register = ("register", "--schema", "gold")
    said = command(variables, spec, ("run",), register)
    assert "hourly has not been published yet, so there is no table to name" in said
    said = command(variables, spec, ("validate",), ("publish",), register, register)
    assert said.count("exit code 0") == 4, said
    assert "trips: gold.hourly is registered" in said
    assert "trips: nothing to register, all published tables have their names already" in said
    log = tmp_path / "lake" / "trips" / "published" / "hourly" / "_delta_log"
    versions = [*log.glob("*.json")]
    assert ask(variables, WINDOWS.format("gold.hourly")) == [["a", "2026-01-05 00:00:00", 2]]
    assert [*log.glob("*.json")] == versions
    ask(variables, "insert into raw.trips values ('b', timestamp'2026-01-05 03:00:00')")
    refused = (("register", "--schema", "taken"), ("register", "--schema", "none"))
    said = command(variables, spec, ("run",), *refused)
    assert said.count("exit code 2") == 2, said
    assert "taken.hourly is another table already, which lies at " in said
    assert "there is no schema none in Spark's catalog; make it by `CREATE SCHEMA none`" in said
    # What a run corrects is seen once it is published.
    assert ask(variables, WINDOWS.format("gold.hourly")) == [["a", "2026-01-05 00:00:00", 2]]
    command(variables, spec, ("validate",), ("publish",))
    both = [["a", "2026-01-05 00:00:00", 2], ["b", "2026-01-05 03:00:00", 1]]
    assert ask(variables, WINDOWS.format("gold.hourly")) == both


def test_a_catalog_in_memory_is_refused(spec: Path, variables: dict[str, str]) -> None:
    spec.write_text(SPEC)
    variables["PYSPARK_SUBMIT_ARGS"] = "pyspark-shell"
    said = command(variables, spec, ("register",))
    assert "exit code 2" in said
    assert "Spark's catalog is in memory, so its names would end with this command" in said
