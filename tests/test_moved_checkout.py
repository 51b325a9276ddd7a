"""make sets an environment up anew in a checkout that was moved or copied, and only there."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
ENVIRONMENTS = (".venv", ".venv-airflow")
UV = """\
#!/bin/sh
echo "$@" >> "$(dirname "$0")/calls"
"""


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """What make looks at, set up, with a stand-in for uv that writes down how it is called."""
    place = tmp_path / "a checkout"
    for name in ("bin", "requirements", "jobs/sessions"):
        shutil.copytree(ROOT / name, place / name)
    for name in ("Makefile", "pyproject.toml"):
        shutil.copy(ROOT / name, place / name)
    uv = place / ".tools" / "bin" / "uv"
    uv.parent.mkdir(parents=True)
    uv.write_text(UV)
    uv.chmod(0o755)
    for environment in ENVIRONMENTS:
        (place / environment).mkdir()
        (place / environment / ".ready").write_text(f"{place}\n")
    return place


def planned(checkout: Path) -> str:
    """What `make setup` would do."""
    done = subprocess.run(
        ["make", "-n", "setup"], cwd=checkout, capture_output=True, text=True, check=True
    )
    return done.stdout


def uv_calls(checkout: Path, environment: str) -> list[str]:
    """How bin/environment calls uv."""
    subprocess.run(
        ["bin/environment", environment, "the.lock"], cwd=checkout, check=True, capture_output=True
    )
    return (checkout / ".tools/bin/calls").read_text().splitlines()


def test_nothing_is_done_where_it_was_made(checkout: Path) -> None:
    assert "bin/environment" not in planned(checkout)


def test_nothing_is_done_for_a_link_to_where_it_was_made(checkout: Path, tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(checkout)
    assert "bin/environment" not in planned(tmp_path / "link")


def test_both_environments_are_made_anew_in_a_copy(checkout: Path, tmp_path: Path) -> None:
    copy = shutil.copytree(checkout, tmp_path / "copy", copy_function=shutil.copy2)
    plan = planned(copy)
    assert all(f"bin/environment {environment} " in plan for environment in ENVIRONMENTS)
    assert "bin/environment" not in planned(checkout)


def test_jars_are_fetched_where_others_are_pinned(checkout: Path) -> None:
    assert "-m jobs.setup" not in planned(checkout)
    ready_s = (checkout / ".venv" / ".ready").stat().st_mtime
    os.utime(checkout / "jobs/sessions/jars.json", (ready_s + 1, ready_s + 1))
    assert "-m jobs.setup" in planned(checkout)


def test_one_that_says_nothing_is_made_anew(checkout: Path) -> None:
    (checkout / ".venv" / ".ready").write_text("")
    plan = planned(checkout)
    assert "bin/environment .venv " in plan
    assert "bin/environment .venv-airflow " not in plan


def test_all_packages_are_installed_again_in_a_moved_checkout(
    checkout: Path, tmp_path: Path
) -> None:
    moved = checkout.rename(tmp_path / "moved")
    calls = uv_calls(moved, ".venv")
    assert [call.split()[:2] for call in calls] == [
        ["venv", "-q"],
        ["pip", "sync"],
        ["pip", "install"],
    ]
    assert all("--reinstall" in call for call in calls if call.startswith("pip "))


@pytest.mark.parametrize("new", [True, False])
def test_they_are_not_where_nothing_moved(new: bool, checkout: Path) -> None:  # noqa: FBT001
    if new:
        shutil.rmtree(checkout / ".venv")
    assert not [call for call in uv_calls(checkout, ".venv") if "--reinstall" in call]


@pytest.mark.parametrize("environment", ENVIRONMENTS)
def test_success_is_marked_with_the_place(environment: str, checkout: Path) -> None:
    (checkout / environment / ".ready").unlink()
    assert f"pwd -P > {environment}/.ready" in planned(checkout)


@pytest.mark.parametrize("found", ["11.0.2", "23.0.1"])
def test_the_demo_says_what_the_machine_lacks(found: str, checkout: Path, tmp_path: Path) -> None:
    make_java(tmp_path, found)
    begun = begin_demo(checkout, PATH=f"{tmp_path / 'bin'}:{os.environ['PATH']}")
    assert begun.returncode != 0
    assert f'tidemark needs Java 17 to 22; found openjdk version "{found}"' in begun.stderr


def test_the_java_that_is_looked_at_is_that_of_spark(checkout: Path, tmp_path: Path) -> None:
    make_java(tmp_path, "11.0.2")
    begun = begin_demo(checkout, JAVA_HOME=str(tmp_path))
    assert 'found openjdk version "11.0.2"' in begun.stderr
    (tmp_path / "bin" / "java").unlink()
    begun = begin_demo(checkout, JAVA_HOME=str(tmp_path))
    assert f"there is no {tmp_path}/bin/java" in begun.stderr


def make_java(home: Path, version: str) -> None:
    """A Java that does nothing but tell its version, in `bin`."""
    java = home / "bin" / "java"
    java.parent.mkdir()
    java.write_text(f"#!/bin/sh\necho 'openjdk version \"{version}\"' >&2\n")
    java.chmod(0o755)


def begin_demo(checkout: Path, **variables: str) -> subprocess.CompletedProcess[str]:
    """`make demo` in an environment."""
    environ = {name: value for name, value in os.environ.items() if name != "JAVA_HOME"}
    return subprocess.run(
        ["make", "demo"],
        cwd=checkout,
        env=environ | variables,
        capture_output=True,
        text=True,
        check=False,
    )
