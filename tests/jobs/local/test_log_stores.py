"""The JAR of the log stores is what its sources compile to."""

import zipfile
from pathlib import Path

import pytest

from jobs.local import log_stores
from jobs.sessions.jars import LOG_STORES
from windowing.errors import TidemarkError, UsageError


@pytest.fixture
def compiler(jvm: None) -> str:
    """javac, which is a JVM as well."""
    found = log_stores.find_compiler()
    if found is None:
        pytest.skip("this machine has no javac")
    return found


@pytest.mark.usefixtures("compiler")
def test_the_jar_has_the_bytes_that_its_sources_compile_to(tmp_path: Path) -> None:
    made = tmp_path / "made.jar"
    log_stores.build_jar(made)
    assert made.read_bytes() == LOG_STORES.read_bytes(), "make log-stores, with the javac of JDK 17"


def test_the_jar_has_a_class_for_each_source_and_runs_on_the_oldest_java() -> None:
    jar = zipfile.ZipFile(LOG_STORES)
    for source in LOG_STORES.parent.glob("*.java"):
        compiled = jar.read(f"tidemark/{source.stem}.class")
        java_17 = 61
        assert int.from_bytes(compiled[6:8]) == java_17


@pytest.mark.usefixtures("compiler")
def test_what_the_compiler_refuses_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "Wrong.java").write_text("class Wrong { int n = many; }")
    monkeypatch.setattr(log_stores, "LOG_STORES", tmp_path / "log-stores.jar")
    with pytest.raises(TidemarkError, match="javac refused the log stores: .*Wrong.java:1: error"):
        log_stores.build_jar(tmp_path / "made.jar")


def test_without_a_compiler_it_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    with pytest.raises(UsageError, match="there is no javac; put a JDK 17 on PATH"):
        log_stores.build_jar(tmp_path / "made.jar")
