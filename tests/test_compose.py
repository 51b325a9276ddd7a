"""docker-compose.yml against the Compose schema, and against what the schema can't say.

Closed ports, no default secrets, pinned images.
"""

import json
import os
import re
import subprocess
from collections.abc import Iterator
from configparser import ConfigParser
from pathlib import Path
from typing import Any

import pytest
import yaml
from jsonschema import Draft7Validator

ROOT = Path(__file__).resolve().parents[1]
TEXT = (ROOT / "docker-compose.yml").read_text()
COMPOSE = yaml.safe_load(TEXT)
SERVICES: dict[str, dict[str, Any]] = COMPOSE["services"]
SECRET = re.compile(r"PASSWORD$|SECRET(_KEY)?$|FERNET_KEY$|TOKEN$|CONN$")
VARIABLE = re.compile(r"\$\{([A-Z_]+)(:[?-][^}]*)\}")


def environment() -> Iterator[tuple[str, str, str]]:
    for service, body in SERVICES.items():
        for name, value in body.get("environment", {}).items():
            yield service, name, value


def errors(compose: object) -> list[str]:
    schema = json.loads((ROOT / "tests/data/compose-spec.json").read_text())
    return [f"{list(e.path)}: {e.message}" for e in Draft7Validator(schema).iter_errors(compose)]


def test_it_is_a_compose_file() -> None:
    assert errors(COMPOSE) == []


def test_the_schema_sees_a_typing_error() -> None:
    assert errors({"services": {"a": {"image": "b:1", "helthcheck": {}}}}) != []


def test_it_has_airflow_postgres_and_a_spark_cluster_of_two() -> None:
    parts = {"api-server", "scheduler", "dag-processor", "triggerer", "init"}
    assert {f"airflow-{part}" for part in parts} | {
        "postgres",
        "spark-master",
        "spark-worker",
    } == set(SERVICES)
    assert SERVICES["spark-worker"]["deploy"]["replicas"] == 2


def test_ports_are_published_on_this_machine_only() -> None:
    ports = [port for body in SERVICES.values() for port in body.get("ports", [])]
    assert ports
    assert all(isinstance(port, str) and port.startswith("127.0.0.1:") for port in ports)


def test_only_what_publishes_a_port_leaves_the_inner_network() -> None:
    assert COMPOSE["networks"]["back"]["internal"] is True
    assert {name for name, body in SERVICES.items() if body["networks"] != ["back"]} == {
        s for s, b in SERVICES.items() if "ports" in b
    }


def test_every_secret_must_be_given() -> None:
    secrets = [
        (service, name, value) for service, name, value in environment() if SECRET.search(name)
    ]
    assert {name for _, name, _ in secrets} >= {
        "POSTGRES_PASSWORD",
        "AIRFLOW_ADMIN_PASSWORD",
        "SPARK_AUTH_SECRET",
        "AIRFLOW__API_AUTH__JWT_SECRET",
    }
    assert [
        s for s in secrets if "${" not in s[2] or not VARIABLE.search(s[2])[2].startswith(":?")
    ] == []


def test_a_default_is_never_a_secret() -> None:
    assert [
        name
        for name, fallback in VARIABLE.findall(TEXT)
        if SECRET.search(name) and not fallback.startswith(":?")
    ] == []
    assert TEXT.count("${") == len(VARIABLE.findall(TEXT))


def test_the_example_names_every_variable_and_gives_no_usable_secret() -> None:
    example = dict(
        re.findall(r"^(?:# )?([A-Z_]+)=(.*)$", (ROOT / ".env.example").read_text(), re.MULTILINE)
    )
    assert set(example) == {name for name, _ in VARIABLE.findall(TEXT)}
    assert [name for name, value in example.items() if value and SECRET.search(name)] == []


def test_what_is_waited_for_can_come() -> None:
    for body in SERVICES.values():
        for target, wait in body.get("depends_on", {}).items():
            assert target in SERVICES
            assert wait["condition"] != "service_healthy" or "healthcheck" in SERVICES[target]
            assert (
                wait["condition"] != "service_completed_successfully"
                or SERVICES[target]["restart"] == "no"
            )


def test_every_lasting_service_has_a_health_check() -> None:
    assert {name for name, body in SERVICES.items() if "healthcheck" not in body} == {
        "airflow-init"
    }


def test_images_are_pinned() -> None:
    base = re.findall(r"^FROM (\S+)", (ROOT / "docker/Dockerfile").read_text(), re.MULTILINE)
    images = base + [body["image"] for body in SERVICES.values()]
    assert [image for image in images if not re.fullmatch(r"[a-z/]+:\d+\.\d+[\w.-]*", image)] == []


@pytest.mark.parametrize(
    "door", ["privileged", "network_mode", "pid", "ipc", "devices", "cap_add", "userns_mode"]
)
def test_no_service_reaches_into_the_host(door: str) -> None:
    assert [name for name, body in SERVICES.items() if door in body] == []
    assert "docker.sock" not in TEXT


def test_no_service_gains_privileges() -> None:
    assert all(body["security_opt"] == ["no-new-privileges:true"] for body in SERVICES.values())
    assert {name for name, body in SERVICES.items() if body.get("cap_drop") != ["ALL"]} == {
        "postgres"
    }


def test_what_is_mounted_or_run_exists() -> None:
    mounts = [volume.split(":") for body in SERVICES.values() for volume in body.get("volumes", [])]
    files = [ROOT / source for source, *_ in mounts if source.startswith(".")]
    scripts = [
        ROOT / path
        for path in re.findall(
            r"/opt/tidemark/(docker/[\w.]+)", TEXT + (ROOT / "docker/Dockerfile").read_text()
        )
    ]
    assert [path for path in files + scripts if not path.exists()] == []
    assert {source for source, *_ in mounts if not source.startswith(".")} == set(
        COMPOSE["volumes"]
    )


def test_driver_and_workers_share_the_lake() -> None:
    assert {
        name
        for name, body in SERVICES.items()
        if "lake:/opt/tidemark/lake" in body.get("volumes", [])
    } == {
        "airflow-scheduler",
        "spark-worker",
    }


def test_secrets_leave_the_environment_for_files_of_this_user(tmp_path: Path) -> None:
    told = {
        "AIRFLOW__CORE__FERNET_KEY": "fern%et=",
        "AIRFLOW__API_AUTH__JWT_SECRET": "jot",
        "SPARK_AUTH_SECRET": "spark",
    }
    where = {
        "PATH": os.environ["PATH"],
        "AIRFLOW_HOME": str(tmp_path),
        "SPARK_CONF_DIR": str(tmp_path / "conf"),
    }
    done = subprocess.run(
        ["sh", ROOT / "docker/entrypoint.sh", "env"],
        env=told | where,
        capture_output=True,
        text=True,
        check=True,
    )
    assert [word for word in ("fern", "jot", "spark\n") if word in done.stdout] == []
    assert "SPARK_AUTH" not in done.stdout
    written = ConfigParser()
    written.read(tmp_path / "airflow.cfg")
    assert (written["core"]["fernet_key"], written["api_auth"]["jwt_secret"]) == ("fern%et=", "jot")
    assert (
        "spark.authenticate.secret        spark"
        in (tmp_path / "conf/spark-defaults.conf").read_text()
    )
    assert {f.stat().st_mode & 0o077 for f in tmp_path.rglob("*") if f.is_file()} == {0}
