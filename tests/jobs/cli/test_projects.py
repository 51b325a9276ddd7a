"""Commands in a project, without a JVM: names, targets, all pipelines, and a shell's completion."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from click.shell_completion import ShellComplete
from click.testing import CliRunner, Result

import tidemark
from jobs.cli.main import main
from windowing.doctor.rule import name_command
from windowing.errors import UsageError
from windowing.report.places import describe_places

ROOT = Path(__file__).parents[3]
PROJECT = """
target = "dev"
[targets.dev]
lake = "lake"
[targets.prod]
lake = "prod"
"""
SPEC = """
name: {name}
source: {{table: "lake://bronze/{name}", event_time: at, key: [shop]}}
aggregates: {{n: count()}}
windows:
  hourly: {{kind: tumbling, size: 1 hour}}
  busy: {{kind: session, gap: 30 minutes}}
"""


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The current folder: a project with two pipelines."""
    (tmp_path / "tidemark.toml").write_text(PROJECT)
    (tmp_path / "pipelines").mkdir()
    for name in ("flights", "orders"):
        (tmp_path / "pipelines" / f"{name}.yaml").write_text(SPEC.format(name=name))
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("TIDEMARK_TARGET", raising=False)
    return tmp_path


def run(*words: str) -> Result:
    return CliRunner().invoke(main, list(words), prog_name="tidemark")


def test_without_a_name_status_shows_every_pipeline_of_the_project(home: Path) -> None:
    result = run("status", "--json")
    assert result.exit_code == 0
    found = json.loads(result.stdout)["pipelines"]
    toml = str(home / "tidemark.toml")
    assert [
        (each["pipeline"], each["lake"], each["project"], each["target"]) for each in found
    ] == [
        ("flights", f"{home}/lake", toml, "dev"),
        ("orders", f"{home}/lake", toml, "dev"),
    ]
    assert f"by target dev of {toml}: flights, orders\n" in result.stderr


def test_status_takes_names_paths_and_folders(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def names(*words: str) -> list[str]:
        found = json.loads(run("status", "--json", *words).stdout)["pipelines"]
        return [each["pipeline"] for each in found]

    assert names("orders") == ["orders"]
    assert names("orders", "pipelines/flights.yaml") == ["orders", "flights"]
    assert names("pipelines") == names(".") == ["flights", "orders"]
    # A folder that is called as a pipeline is not in its way.
    (home / "orders").mkdir()
    assert names("orders") == ["orders"]
    monkeypatch.chdir("/")
    assert names(str(home)) == ["flights", "orders"]


def test_two_pipelines_of_one_name_are_refused_where_all_are_meant(home: Path) -> None:
    (home / "pipelines" / "trips.yaml").write_text(SPEC.format(name="orders"))
    result = run("status")
    assert result.exit_code == 2
    assert (
        "two pipelines are called 'orders', in pipelines/orders.yaml and pipelines/trips.yaml"
        in (result.stderr)
    )


def test_a_project_without_a_spec_says_where_one_belongs(home: Path) -> None:
    for file in (home / "pipelines").iterdir():
        file.unlink()
    assert (
        f"{home}/pipelines has no *.yaml or *.yml file; write a spec there" in run("status").stderr
    )


@pytest.mark.parametrize(
    ("words", "environ", "lake"),
    [
        ((), {}, "lake"),
        (("--target", "prod"), {}, "prod"),
        ((), {"TIDEMARK_TARGET": "prod"}, "prod"),
        (("--target", "dev"), {"TIDEMARK_TARGET": "prod"}, "lake"),
        ((), {"TIDEMARK_TARGET": ""}, "lake"),
    ],
)
def test_a_target_is_the_options_then_the_environments_then_the_projects(
    words: tuple[str, ...],
    environ: dict[str, str],
    lake: str,
    home: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for name, value in environ.items():
        monkeypatch.setenv(name, value)
    (found,) = json.loads(run("status", "orders", "--json", *words).stdout)["pipelines"]
    assert found["lake"] == f"{home}/{lake}"
    if not words:
        assert tidemark.load_pipeline("orders").lake.text == f"{home}/{lake}"


def test_advice_names_a_target_that_was_named(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    unnamed = tidemark.load_pipeline("orders")
    assert name_command(unnamed, "reset") == "`tidemark reset pipelines/orders.yaml`"
    # Without the target the advice would be about the lake that the environment names.
    monkeypatch.setenv("TIDEMARK_TARGET", "prod")
    dev, prod = (tidemark.load_pipeline("orders", target) for target in ("dev", None))
    assert name_command(dev, "reset") == "`tidemark reset pipelines/orders.yaml --target dev`"
    assert name_command(prod, "backfill", "--source newest") == (
        "`tidemark backfill pipelines/orders.yaml --target prod --source newest`"
    )
    assert describe_places(prod) == (
        f"tables in {home}/prod/orders, by target prod of {home}/tidemark.toml"
    )


def test_an_empty_target_is_no_target(home: Path) -> None:
    refused = run("status", "orders", "--target", "")
    assert refused.exit_code == 2
    assert "--target is empty; name a target of the project, or leave it out" in refused.stderr
    with pytest.raises(UsageError, match="the target is empty"):
        tidemark.load_pipeline("orders", "")
    assert home.exists()


def test_two_specs_of_one_name_are_refused_by_path_too(home: Path) -> None:
    spec = home / "pipelines" / "orders.yaml"
    (home / "pipelines" / "orders_eu.yaml").write_text(spec.read_text())
    refused = run("status", "pipelines/orders_eu.yaml")
    assert refused.exit_code == 2
    assert "two pipelines are called 'orders', in pipelines/orders_eu.yaml and" in refused.stderr
    # With lakes of their own they don't meet.
    spec.write_text(f"lake: own\n{spec.read_text()}")
    assert run("status", "pipelines/orders.yaml").exit_code == 0


def test_a_name_is_looked_up_in_one_project(home: Path) -> None:
    inner = home / "pipelines" / "tidemark.toml"
    inner.write_text('[targets.dev]\nlake = "inner"\n')
    refused = run("status", "orders")
    assert refused.exit_code == 2
    assert f"which is in the project of {inner}; take one of these two files away" in refused.stderr


def test_a_spec_with_its_own_lake_says_that_it_stays(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = home / "pipelines" / "orders.yaml"
    file.write_text(f"lake: own\n{file.read_text()}")
    said = "tidemark: pipelines/orders.yaml says its own lake, which stays, whatever --target is\n"
    result = run("status", "orders", "--target", "prod", "--json")
    (found,) = json.loads(result.stdout)["pipelines"]
    assert (found["lake"], found["project"]) == (f"{home}/pipelines/own", None)
    assert said in result.stderr
    # The environment may name the target of many pipelines.
    monkeypatch.setenv("TIDEMARK_TARGET", "prod")
    assert said not in run("status", "orders").stderr
    assert describe_places(tidemark.load_pipeline("orders")) == (
        f"tables in {home}/pipelines/own/orders, by pipelines/orders.yaml"
    )


@pytest.mark.parametrize("command", ["run", "explain", "show"])
def test_every_command_takes_a_name(
    command: str, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(_: object) -> None:
        raise tidemark.UsageError("a session was asked for")

    monkeypatch.setattr("jobs.cli.spark.start_session", refuse)
    more = ("hourly",) if command == "show" else ()
    assert "a session was asked for" in run(command, "orders", *more).stderr
    wrong = run(command, "ordres", *more)
    assert wrong.exit_code == 2
    assert "there are flights, orders, did you mean 'orders'" in wrong.stderr


def complete(*words: str) -> list[str]:
    """What a shell offers for the last word."""
    *before, incomplete = words
    shell = ShellComplete(main, {}, "tidemark", "_TIDEMARK_COMPLETE")
    return [
        each.value for each in shell.get_completions(before, incomplete) if each.type == "plain"
    ]


@pytest.mark.usefixtures("home")
def test_a_shell_completes_pipelines_windows_and_targets() -> None:
    assert complete("run", "") == ["flights", "orders"]
    assert complete("backfill", "or") == ["orders"]
    assert complete("status", "orders", "fl") == ["flights"]
    assert complete("show", "orders", "") == ["hourly", "busy"]
    assert complete("show", "pipelines/orders.yaml", "h") == ["hourly"]
    assert complete("state", "orders", "--window", "b") == ["busy"]
    assert complete("history", "orders", "b") == ["busy"]
    assert complete("restatements", "orders", "h") == ["hourly"]
    assert complete("run", "orders", "--target", "p") == ["prod"]
    assert complete("show", "nothing", "") == []


def test_a_shell_completes_nothing_of_a_broken_project(home: Path) -> None:
    (home / "tidemark.toml").write_text("lake = lake")
    assert complete("run", "") == complete("run", "x", "--target", "") == []


def test_a_shell_offers_paths_where_no_name_is_left() -> None:
    shell = ShellComplete(main, {}, "tidemark", "_TIDEMARK_COMPLETE")
    (offered,) = shell.get_completions(["run"], "pipe")
    assert (offered.type, offered.value) == ("file", "pipe")


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_the_command_completes_itself(shell: str, home: Path) -> None:
    environ = {**os.environ, "PYTHONPATH": str(ROOT), "_TIDEMARK_COMPLETE": f"{shell}_complete"}
    word = "h" if shell == "fish" else "3"
    environ |= {"COMP_WORDS": "tidemark show orders h", "COMP_CWORD": word}
    program = "import sys; sys.argv[0] = 'tidemark'; from jobs.__main__ import main; main()"
    done = subprocess.run(
        [sys.executable, "-c", program],
        cwd=home,
        env=environ,
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert "hourly" in done.stdout, done.stderr
