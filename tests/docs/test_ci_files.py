"""CI and pre-commit run what developers run: the targets of make, the tools of bin/lint.

The page of reliability says which of the tests CI runs, and which it does not.
"""

import re
from pathlib import Path
from typing import Any

import yaml

ROOT = Path(__file__).parents[2]
WORKFLOW: dict[str, Any] = yaml.safe_load((ROOT / ".github/workflows/test.yml").read_text())
PROJECT = (ROOT / "pyproject.toml").read_text()
HOOKS: dict[str, Any] = yaml.safe_load((ROOT / ".pre-commit-config.yaml").read_text())
LINT = [
    line for line in (ROOT / "bin/lint").read_text().splitlines() if line.startswith(".venv/bin/")
]

CALLED = set(re.findall(r"^ *make ([a-z0-9-]+)", (ROOT / ".ci/run").read_text(), re.MULTILINE))
TESTS = re.compile(r"^((?:test|seeded|torture|soak)[a-z0-9-]*): setup", re.MULTILINE)
"""Targets that run tests."""
PARTS = {"test-spark", "test-others", "test-without-jvm", "test-airflow"}
"""What `make test` consists of."""


def read_about_ci() -> tuple[set[str], set[str]]:
    """The targets that the page says CI runs, and those that it says it does not."""
    page = (ROOT / "docs/reliability.md").read_text()
    section = page.partition("### What continuous integration runs\n")[2].partition("\n## ")[0]
    runs, _, others = section.partition("\nNothing else runs by itself.")
    named = re.compile(r"`make ([a-z0-9-]+)`")
    return set(named.findall(runs)), set(named.findall(others))


def test_the_page_names_what_ci_runs_and_what_it_does_not() -> None:
    runs, others = read_about_ci()
    assert runs == CALLED | {"test-fast"}
    targets = set(TESTS.findall((ROOT / "Makefile").read_text()))
    assert others == targets - runs - PARTS


def test_the_page_says_for_how_long_ci_runs_deep_tests() -> None:
    minutes = re.search(r"DEEP_UNTIL=(\d+)", (ROOT / ".ci/run").read_text())
    assert minutes is not None
    page = (ROOT / "docs/reliability.md").read_text()
    assert f"`make test-deep-part` until {minutes[1]} minutes are over" in page
    contributing = (ROOT / "CONTRIBUTING.md").read_text()
    assert (
        f"`.ci/run` those that begin before its first {minutes[1]} minutes are over" in contributing
    )


def test_ci_calls_targets_of_make() -> None:
    steps = [
        step["run"]
        for job in WORKFLOW["jobs"].values()
        for step in job["steps"]
        if "if" not in step and "run" in step
    ]
    assert steps == ["make test-fast", "make test"]
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    assert {step.removeprefix("make ") for step in steps} <= targets


def test_ci_has_both_ends_of_the_pythons_and_javas_that_are_supported() -> None:
    classified = re.findall(r'"Programming Language :: Python :: (3\.\d+)"', PROJECT)
    for job in WORKFLOW["jobs"].values():
        assert job["strategy"]["matrix"] == {
            "include": [
                {"python": classified[0], "java": "17"},
                {"python": classified[-1], "java": "21"},
            ]
        }
        assert not job["strategy"]["fail-fast"]


def test_ci_sets_up_the_versions_of_its_matrix() -> None:
    for job in WORKFLOW["jobs"].values():
        versions = {
            name: value
            for step in job["steps"]
            for name, value in step.get("with", {}).items()
            if name.endswith("-version")
        }
        assert versions == {
            "java-version": "${{ matrix.java }}",
            "python-version": "${{ matrix.python }}",
        }


def test_ci_may_only_read() -> None:
    assert WORKFLOW["permissions"] == {"contents": "read"}


def test_pre_commit_runs_what_lint_runs() -> None:
    hooks = [hook for repo in HOOKS["repos"] for hook in repo["hooks"]]
    assert [hook["entry"] for hook in hooks] == [line.removesuffix(" .") for line in LINT]
    assert {repo["repo"] for repo in HOOKS["repos"]} == {"local"}
