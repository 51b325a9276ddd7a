"""What `tidemark init` prints, and that its folder is written though nobody reads that."""

import json
from dataclasses import replace
from pathlib import Path

import pytest
from click.testing import CliRunner

from jobs.cli.main import main
from tests.docs.test_json_output import PROJECT

ROWS = "order_id,shop\nA1,north\n"


@pytest.fixture(autouse=True)
def proposed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is proposed from `orders.csv` in the current folder, without a session."""
    project = replace(PROJECT, proposal=replace(PROJECT.proposal, remarks=("paid is text.",)))
    monkeypatch.setattr("jobs.session.spark_session", lambda **_: None)
    monkeypatch.setattr("jobs.init.propose_project", lambda *_: project)
    monkeypatch.chdir(tmp_path)
    Path("orders.csv").write_text(ROWS)


def test_what_is_not_in_the_windows_is_told() -> None:
    done = CliRunner().invoke(main, ["init", "shop", "--from", "orders.csv"], prog_name="tidemark")
    assert done.exit_code == 0, done.output
    assert "\npaid is text.\n" in done.stdout
    told = "1 of 9 records of orders.csv is no row; `tidemark ingest` quarantines such records"
    assert f"\n{told} with the reason\n" in done.stdout


def test_a_reader_that_stops_gets_a_whole_folder(monkeypatch: pytest.MonkeyPatch) -> None:
    def stop(*_: object) -> None:
        raise BrokenPipeError

    monkeypatch.setattr("jobs.console.Printer.table", stop)
    # It would close the standard output of this process.
    monkeypatch.setattr("jobs.cli.main._report_unwritable", lambda *_, **__: 1)
    done = CliRunner().invoke(main, ["init", "shop", "--from", "orders.csv"], prog_name="tidemark")
    assert done.exit_code == 1
    assert Path("shop/trips.yaml").read_text() == "name: trips"
    assert Path("shop/drop/orders.csv").read_text() == ROWS


def test_files_for_airflow_name_the_folder_and_this_command(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    scripts = Path("an environment")
    scripts.mkdir()
    (scripts / "tidemark").touch(mode=0o755)
    monkeypatch.setattr("sysconfig.get_path", lambda _: "an environment")
    words = ["init", "shop", "--from", "orders.csv", "--json"]
    done = CliRunner().invoke(main, words, prog_name="tidemark")
    assert done.exit_code == 0, done.output
    files = ["dags/trips_broken_specs.py", "dags/trips_dags.py"]
    assert json.loads(done.stdout)["files"] == [*files, "trips.yaml"]
    for file in files:
        assert f"\nPROJECT = Path({str(Path.cwd() / 'shop')!r})\n" in Path("shop", file).read_text()
    command = str(Path.cwd() / "an environment/tidemark")
    assert f"\nTIDEMARK = {command!r}\n" in Path("shop", files[1]).read_text()


def test_a_command_that_is_not_found_is_left_to_the_path_of_airflow(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("shutil.which", lambda *_, **__: None)
    done = CliRunner().invoke(main, ["init", "shop", "--from", "orders.csv"], prog_name="tidemark")
    assert done.exit_code == 0, done.output
    assert "\nTIDEMARK = 'tidemark'\n" in Path("shop/dags/trips_dags.py").read_text()
