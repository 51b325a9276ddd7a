"""CI and pre-commit run what developers run: the targets of make, the tools of bin/lint."""

import re
from pathlib import Path
from typing import Any

import yaml

ROOT = Path(__file__).parents[2]
WORKFLOW: dict[str, Any] = yaml.safe_load((ROOT / ".github/workflows/test.yml").read_text())
HOOKS: dict[str, Any] = yaml.safe_load((ROOT / ".pre-commit-config.yaml").read_text())
LINT = [
    line for line in (ROOT / "bin/lint").read_text().splitlines() if line.startswith(".venv/bin/")
]


def test_ci_calls_targets_of_make() -> None:
    steps = [
        step["run"]
        for job in WORKFLOW["jobs"].values()
        for step in job["steps"]
        if "if" not in step and "run" in step
    ]
    assert steps == ["make lint", "make test"]
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    assert {step.removeprefix("make ") for step in steps} <= targets


def test_ci_has_the_oldest_python_and_java_there_are() -> None:
    for job in WORKFLOW["jobs"].values():
        versions = {
            name: value
            for step in job["steps"]
            for name, value in step.get("with", {}).items()
            if name.endswith("-version")
        }
        assert versions == {"java-version": "17", "python-version": "3.11"}


def test_ci_may_only_read() -> None:
    assert WORKFLOW["permissions"] == {"contents": "read"}


def test_pre_commit_runs_what_lint_runs() -> None:
    hooks = [hook for repo in HOOKS["repos"] for hook in repo["hooks"]]
    assert [hook["entry"] for hook in hooks] == [line.removesuffix(" .") for line in LINT]
    assert {repo["repo"] for repo in HOOKS["repos"]} == {"local"}
