"""What the demo leaves alone: another Airflow, files that are not its own, and its reader."""

import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

from jobs.local import demo
from jobs.local.airflow_page import make_environment, make_settings
from jobs.local.demo import main, run_airflow
from windowing.errors import TidemarkError, UsageError

DATABASE = "AIRFLOW__DATABASE__SQL_ALCHEMY_CONN"
OF_ANOTHER = {
    DATABASE: "postgresql+psycopg2://airflow@db/production",
    "AIRFLOW__DATABASE__SQL_ALCHEMY_CONN_CMD": "cat secret",
    "AIRFLOW__CORE__EXECUTOR": "CeleryExecutor",
    "AIRFLOW_CONFIG": "/etc/airflow/airflow.cfg",
    "AIRFLOW_HOME": "/var/lib/airflow",
}


def test_the_demo_has_a_database_of_its_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found: dict[str, str] = {}

    def keep(home: Path, variables: Mapping[str, str], *words: str | Path) -> None:
        found.update(variables)

    monkeypatch.setattr(demo, "run_command", keep)
    run_airflow(tmp_path, {"PATH": "/bin", **OF_ANOTHER}, "db", "migrate")
    assert found[DATABASE] == f"sqlite:///{tmp_path}/airflow/airflow.db"
    assert found["AIRFLOW_HOME"] == str(tmp_path / "airflow")
    assert found["PATH"] == "/bin"
    assert set(found.values()).isdisjoint(OF_ANOTHER.values())


def test_the_page_reads_the_settings_of_its_own_home(tmp_path: Path) -> None:
    found = make_environment(OF_ANOTHER, make_settings(tmp_path, 18080))
    assert found[DATABASE] == f"sqlite:///{tmp_path}/airflow.db"
    assert "AIRFLOW_CONFIG" not in found
    # What else is set up by variables is for the page, too.
    assert found["AIRFLOW__CORE__EXECUTOR"] == "CeleryExecutor"


@pytest.mark.parametrize(
    ("error", "code", "sentence"),
    [
        (TidemarkError("no JVM"), 1, "no JVM\n"),
        (UsageError("no Java"), 2, "no Java\n"),
        (KeyboardInterrupt(), 130, "\ninterrupted; the next demo begins anew\n"),
    ],
    ids=["failure", "usage", "interrupt"],
)
def test_what_ends_the_demo_is_a_sentence(
    error: BaseException,
    code: int,
    sentence: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    def fail(home: Path, variables: Mapping[str, str]) -> None:
        raise error

    monkeypatch.setattr(demo, "prepare_demo", fail)
    monkeypatch.setattr(demo, "_run_engine", lambda variables, word: None)
    monkeypatch.setattr(sys, "argv", ["demo", "--home", str(tmp_path)])
    assert main() == code
    assert capsys.readouterr().err == sentence


def test_a_file_is_no_home(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    home = tmp_path / "notes.txt"
    home.write_text("mine")
    monkeypatch.setattr(demo, "_run_engine", lambda variables, word: None)
    monkeypatch.setattr(sys, "argv", ["demo", "--home", str(home)])
    assert main() == 2
    assert capsys.readouterr().err == f"--home {home} is a file; name a directory\n"
    assert home.read_text() == "mine"
