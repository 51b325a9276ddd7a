"""DAGs of a project: its specs, and a target that every task names. No database."""

from pathlib import Path
from typing import Any

import pytest
from conftest import SPEC

from dags.factory import dags_of, read_specs
from dags.steps import LIVE, command_line

PROJECT = """
pipelines = "specs"
target = "dev"
[targets.dev]
lake = "lake"
[targets.prod]
lake = "s3://shop/lake"
"""


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project with one pipeline that says no lake."""
    monkeypatch.delenv("TIDEMARK_TARGET", raising=False)
    (tmp_path / "tidemark.toml").write_text(PROJECT)
    (tmp_path / "specs").mkdir()
    lines = SPEC.format(name="shop").splitlines()
    text = "\n".join(line for line in lines if not line.startswith("lake:"))
    (tmp_path / "specs" / "shop.yaml").write_text(text)
    return tmp_path


def lakes(directory: Path, target: str | None = None) -> list[str]:
    specs = read_specs(directory, target)
    assert specs.broken == ()
    return [pipeline.lake.text for pipeline in specs.pipelines]


def test_specs_are_those_of_the_project_with_the_places_of_a_target(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert lakes(project) == lakes(project / "specs") == [f"{project}/lake"]
    assert lakes(project, "prod") == ["s3://shop/lake"]
    monkeypatch.setenv("TIDEMARK_TARGET", "prod")
    assert lakes(project) == ["s3://shop/lake"]
    assert lakes(project, "dev") == [f"{project}/lake"]


def test_tasks_name_the_target_that_their_dag_was_made_with(project: Path) -> None:
    for target in ("dev", "prod"):
        (pipeline,) = read_specs(project, target).pipelines
        live: Any = dags_of(pipeline, "tidemark")[0]
        said = live.get_task("run").python_callable({})
        file = project / "specs" / "shop.yaml"
        assert said == f"exec tidemark run {file} --target {target} --validate --json </dev/null"


def test_a_spec_with_its_own_lake_needs_no_target(project: Path) -> None:
    file = project / "specs" / "shop.yaml"
    file.write_text(f"lake: ../own\n{file.read_text()}")
    (pipeline,) = read_specs(project, "prod").pipelines
    live: Any = dags_of(pipeline, "tidemark")[0]
    assert "--target" not in live.get_task("run").python_callable({})
    assert command_line("tidemark", "a b", LIVE[0], {}, "x y").startswith(
        "exec tidemark run 'a b' --target 'x y' --validate"
    )


def test_a_broken_project_is_said_and_makes_no_dag(project: Path) -> None:
    (project / "tidemark.toml").write_text("lake = 'lake'")
    specs = read_specs(project)
    assert specs.pipelines == ()
    assert specs.broken == (
        f"{project}/tidemark.toml: lake: belongs to a target; write it under [targets.dev], or "
        "under others",
    )
    (project / "tidemark.toml").write_text(PROJECT)
    (said,) = read_specs(project, "prd").broken
    assert "has dev, prod, did you mean 'prod'" in said
