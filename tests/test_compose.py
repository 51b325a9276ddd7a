"""docker-compose.yml against the Compose schema, and against what the schema can't say.

Closed ports, no default secrets, pinned images.
"""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from jsonschema import Draft7Validator

from docker.memory import AIRFLOW_MIB, DAEMON_MIB, command_heap, parse_size, worker_heap

ROOT = Path(__file__).resolve().parents[1]
TEXT = (ROOT / "docker-compose.yml").read_text()
COMPOSE = yaml.safe_load(TEXT)
DOCKERFILE = (ROOT / "docker/Dockerfile").read_text()
SERVICES: dict[str, dict[str, Any]] = COMPOSE["services"]
SECRET = re.compile(r"PASSWORD$|SECRET(_KEY)?$|FERNET_KEY$|TOKEN$|CONN$")
VARIABLE = re.compile(r"\$\{([A-Z_]+)(:[?-][^}]*)\}")


def environment() -> Iterator[tuple[str, str, str]]:
    for service, body in SERVICES.items():
        for name, value in body.get("environment", {}).items():
            yield service, name, value


def default_of(value: str) -> str:
    """What a variable with a default is without `.env`; any other value as it is."""
    return re.sub(r"^\$\{\w+:-([^}]*)\}$", r"\1", value)


def limit_of(service: str) -> int:
    """The memory limit of a service in MiB."""
    return parse_size(default_of(SERVICES[service]["mem_limit"]))


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
        "tidemark",
        "reports",
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
    asked = {name for name, _ in VARIABLE.findall(TEXT)}
    assert set(example) == asked | set(COMPOSE["x-image"]["build"]["args"])
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


def test_what_lasts_has_a_health_check_and_is_started_again() -> None:
    once = {"airflow-init", "tidemark"}
    assert {name for name, body in SERVICES.items() if "healthcheck" not in body} == once
    assert {name for name, body in SERVICES.items() if body["restart"] != "unless-stopped"} == once
    assert {SERVICES[name]["restart"] for name in once} == {"no"}


def test_images_are_pinned_by_version_and_by_digest() -> None:
    defaults = re.findall(r"^ARG PYTHON_IMAGE=(\S+)", DOCKERFILE, re.MULTILINE)
    built = {COMPOSE["x-image"]["image"]}
    images = defaults + [b["image"] for b in SERVICES.values() if b["image"] not in built]
    assert len(images) == 3
    pinned = r"[a-z/]+:\d+\.\d+[\w.-]*@sha256:[0-9a-f]{64}"
    assert [image for image in images if not re.fullmatch(pinned, image)] == []


def test_every_service_has_a_memory_limit_and_the_host_holds_them_all() -> None:
    limits = {name: limit_of(name) for name in SERVICES}
    lasting = sum(
        limit * SERVICES[name].get("deploy", {}).get("replicas", 1)
        for name, limit in limits.items()
        if SERVICES[name]["restart"] != "no"
    )
    page = (ROOT / "docs/operations/compose.md").read_text()
    host = re.search(r"(\d+) GB of memory", page)
    assert host is not None
    # One command in a container of its own comes on top only while no more than that is free.
    assert lasting + 1024 <= int(host[1]) * 1024


def test_spark_has_no_swap_to_hide_in() -> None:
    with_spark = {"airflow-scheduler", "spark-worker", "tidemark"}
    swapless = {n for n, b in SERVICES.items() if b.get("memswap_limit") == b["mem_limit"]}
    assert swapless == with_spark


def test_the_heap_of_a_worker_follows_from_its_limit() -> None:
    worker = SERVICES["spark-worker"]
    assert worker["environment"]["SPARK_WORKER_LIMIT"] == worker["mem_limit"]
    assert SERVICES["airflow-scheduler"]["environment"]["SPARK_WORKER_LIMIT"] == worker["mem_limit"]
    daemon = parse_size(worker["environment"]["SPARK_DAEMON_MEMORY"])
    assert daemon < DAEMON_MIB
    assert worker_heap(limit_of("spark-worker")) * 1.3 + DAEMON_MIB < limit_of("spark-worker")


def test_the_heaps_of_commands_leave_room_for_the_scheduler() -> None:
    limit, environment = limit_of("airflow-scheduler"), SERVICES["airflow-scheduler"]["environment"]
    at_once = default_of(environment["AIRFLOW__CORE__PARALLELISM"])
    heap = command_heap(limit, {"AIRFLOW__CORE__PARALLELISM": at_once})
    # Beside its heap a command has some 600 MiB: Python, and what the JVM needs for itself.
    assert heap >= 1024
    assert int(at_once) * (heap + 600) + AIRFLOW_MIB <= limit
    assert command_heap(limit_of("tidemark"), {}) + 600 <= limit_of("tidemark")


def test_only_reports_are_served_and_nothing_can_be_written_there() -> None:
    reports = SERVICES["reports"]
    assert [volume for volume in reports["volumes"] if not volume.endswith(":ro")] == []
    assert reports["read_only"] is True
    assert reports["networks"] == ["front"]
    conf = (ROOT / "docker/reports.conf").read_text()
    served = re.findall(r"location ([^{]+) {", conf)
    assert served == [
        "/",
        "= /",
        "~ ^/(?<pipeline>[a-z][a-z0-9_]*)/$",
        r"~ ^/[a-z][a-z0-9_]*/_report\.html$",
        "~ ^/[a-z][a-z0-9_]*/_docs/",
    ]


def test_the_pages_of_dags_lead_to_the_reports() -> None:
    port = re.search(r"127\.0\.0\.1:(\$\{\w+:-\d+\})", SERVICES["reports"]["ports"][0])
    assert port is not None
    url = SERVICES["airflow-dag-processor"]["environment"]["TIDEMARK_REPORTS_URL"]
    assert url == f"http://127.0.0.1:{port[1]}"


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
        "tidemark",
    }
