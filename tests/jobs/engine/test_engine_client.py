"""Which command lines go to an engine, what starts one, and how a changed one is recognized."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from jobs.cli.main import main
from jobs.engine import client, control
from jobs.engine.client import COMMANDS, run_in_engine
from jobs.engine.control import start_engine
from jobs.engine.engine_directory import EngineDirectory, make_directory
from jobs.engine.fingerprint import code_fingerprint, differing, surroundings
from windowing.errors import TidemarkError, UsageError

WITHOUT = {"engine", "init", "setup", "status", "test"}
HEAVY = {"click", "pydantic", "rich", "pyspark", "py4j", "pyarrow", "jobs.cli"}


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, ...]]:
    """The command lines that are sent; no engine is up."""
    found: list[tuple[str, ...]] = []
    monkeypatch.setattr(client, "_ask", lambda words: found.append(tuple(words)))
    for name in ("TIDEMARK_ENGINE", "TIDEMARK_DEBUG"):
        monkeypatch.delenv(name, raising=False)
    return found


def test_every_command_of_a_pipeline_goes_to_the_engine(asked: list[tuple[str, ...]]) -> None:
    assert set(main.commands) - WITHOUT == COMMANDS
    for name in main.commands:
        run_in_engine([name, "spec.yaml"])
    assert {words[0] for words in asked} == COMMANDS


@pytest.mark.parametrize(
    "words",
    [[], ["--help"], ["--debug", "run", "a"], ["run", "a", "--debug"], ["run", "-h"], ["rum", "a"]],
)
def test_what_needs_no_engine_is_not_sent(asked: list[tuple[str, ...]], words: list[str]) -> None:
    assert run_in_engine(words) is None
    assert asked == []


@pytest.mark.parametrize("name", ["TIDEMARK_DEBUG", "TIDEMARK_ENGINE"])
def test_variables_keep_a_command_in_its_process(
    asked: list[tuple[str, ...]], monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.setenv(name, "off")
    assert run_in_engine(["run", "spec.yaml"]) is None
    assert asked == []


def test_a_closed_stream_keeps_a_command_in_its_process(
    asked: list[tuple[str, ...]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "stdin", None)
    assert run_in_engine(["run", "spec.yaml"]) is None
    assert asked == []


def test_auto_starts_an_engine_and_asks_it(
    asked: list[tuple[str, ...]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TIDEMARK_ENGINE", "auto")
    monkeypatch.setattr(control, "start_engine", lambda: asked.append(("started",)))
    run_in_engine(["run", "spec.yaml"])
    assert asked == [("run", "spec.yaml"), ("started",), ("run", "spec.yaml")]


@pytest.mark.parametrize(
    "error",
    [TidemarkError("no JVM"), PermissionError(13, "Permission denied", "log")],
    ids=["refused", "system"],
)
def test_where_no_engine_can_be_started_the_command_runs_without(
    error: Exception,
    asked: list[tuple[str, ...]],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    def refuse() -> None:
        raise error

    monkeypatch.setenv("TIDEMARK_ENGINE", "auto")
    monkeypatch.setattr(control, "start_engine", refuse)
    assert run_in_engine(["run", "spec.yaml"]) is None
    assert len(asked) == 1
    assert capsys.readouterr() == ("", f"tidemark: {error}; this command runs without an engine\n")


def test_another_word_is_refused_with_those_that_are_allowed(
    asked: list[tuple[str, ...]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TIDEMARK_ENGINE", "on")
    with pytest.raises(UsageError, match="is 'on'; `auto` starts an engine"):
        run_in_engine(["run", "spec.yaml"])
    command = [sys.executable, "-m", "jobs", "run", "spec.yaml"]
    ran = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (ran.returncode, ran.stdout) == (2, "")
    assert ran.stderr.startswith("tidemark: TIDEMARK_ENGINE is 'on'; ")


def test_a_client_imports_little() -> None:
    """`jobs.__main__` imports these two modules before every command."""
    code = (
        "import sys, jobs.__main__, jobs.engine.client, jobs.engine.target_variables; "
        "print(*sys.modules)"
    )
    command = [sys.executable, "-c", code]
    loaded = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    assert HEAVY.isdisjoint(loaded.split())


def test_a_changed_file_is_other_code(tmp_path: Path) -> None:
    jar = tmp_path / "delta.jar"
    jar.write_text("one")
    environ = {**os.environ, "TIDEMARK_JARS": str(tmp_path)}
    before = code_fingerprint(environ)
    assert code_fingerprint(environ) == before
    os.utime(jar, ns=(1, 1))
    touched = code_fingerprint(environ)
    assert touched != before
    jar.unlink()
    assert code_fingerprint(environ) not in (before, touched)


def test_code_is_also_settings_of_spark_and_java(tmp_path: Path) -> None:
    java, settings = tmp_path / "java", tmp_path / "spark.conf"
    java.write_text("")
    java.chmod(0o700)
    settings.write_text("")
    environ = {
        "PATH": str(tmp_path),
        "PYSPARK_SUBMIT_ARGS": f"--properties-file {settings} pyspark-shell",
    }
    found = {code_fingerprint(environ)}
    for file in (java, settings):
        os.utime(file, ns=(1, 1))
        found.add(code_fingerprint(environ))
    assert len(found) == 3


def test_the_projects_own_files_are_code() -> None:
    from jobs.engine.fingerprint import _loaded_files

    here = Path(__file__).parents[3]
    files = set(_loaded_files({}))
    for name in ("jobs/cli/main.py", "windowing/storage/delta.py", "expectations/law.py"):
        assert str(here / name) in files


def test_surroundings_are_what_is_read_at_the_start() -> None:
    before = surroundings({"JAVA_HOME": "/a", "COLUMNS": "80", "TIDEMARK_PIPELINES": "x"})
    after = surroundings({"JAVA_HOME": "/b", "COLUMNS": "90", "LANG": "C"})
    assert differing(before, after) == ["JAVA_HOME", "LANG"]
    mask = os.umask(0o027)
    try:
        assert differing(before, surroundings({"JAVA_HOME": "/a"})) == ["umask"]
    finally:
        os.umask(mask)


def test_who_has_other_keys_of_s3_has_other_surroundings() -> None:
    before, after = ({"AWS_SECRET_ACCESS_KEY": key} for key in ("made-up", "another"))
    assert differing(surroundings(before), surroundings(after)) == ["AWS_SECRET_ACCESS_KEY"]


@pytest.mark.parametrize(
    ("environ", "counted"),
    [
        (
            {"PYSPARK_SUBMIT_ARGS": "--properties-file spark.conf pyspark-shell"},
            ["current directory"],
        ),
        (
            {"PYSPARK_SUBMIT_ARGS": "--properties-file=spark.conf pyspark-shell"},
            ["current directory"],
        ),
        ({"PYSPARK_SUBMIT_ARGS": "--properties-file {here}/spark.conf pyspark-shell"}, []),
        ({"PYSPARK_SUBMIT_ARGS": "--driver-memory 8g pyspark-shell"}, []),
        ({"JAVA_TOOL_OPTIONS": "-Djavax.net.ssl.trustStore=spark.conf"}, ["current directory"]),
        ({"SPARK_CONF_DIR": "settings"}, ["current directory"]),
        ({"HADOOP_CONF_DIR": "settings"}, ["current directory"]),
        ({"TIDEMARK_JARS": "settings"}, ["current directory"]),
        ({"TIDEMARK_JARS": "{here}/settings"}, []),
        ({"COLUMNS": "settings"}, []),
    ],
)
def test_the_current_directory_counts_where_a_path_begins_there(
    environ: dict[str, str],
    counted: list[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    (tmp_path / "spark.conf").write_text("")
    (tmp_path / "settings").mkdir()
    monkeypatch.chdir(tmp_path)
    named = {name: value.format(here=tmp_path) for name, value in environ.items()}
    here = surroundings(named)
    monkeypatch.chdir("/")
    assert differing(here, surroundings(named)) == counted


@pytest.mark.parametrize("place", ["settings", "engine"])
def test_an_engine_starts_where_its_settings_are_found(
    place: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = tmp_path / "settings"
    settings.mkdir()
    (settings / "spark.conf").write_text("")
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    monkeypatch.chdir(settings)
    if place == "settings":
        monkeypatch.setenv("PYSPARK_SUBMIT_ARGS", "--properties-file spark.conf pyspark-shell")
    directory = make_directory()
    started: list[str] = []
    monkeypatch.setattr(subprocess, "Popen", lambda *_, cwd, **__: started.append(str(cwd)))
    control._spawn_engine(directory, 1)
    assert started == [str(settings if place == "settings" else directory.path)]


@pytest.fixture
def nowhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No engine was ever started."""
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))


@pytest.mark.parametrize("command", ["start", "stop", "status"])
def test_commands_of_the_engine_explain_themselves(command: str) -> None:
    result = CliRunner().invoke(main, ["engine", command, "-h"], prog_name="tidemark")
    assert result.exit_code == 0
    assert all(option in result.stdout for option in ("--json", "--debug"))


@pytest.mark.parametrize(
    ("command", "sentence", "found"),
    [
        ("status", "no engine is up; `tidemark engine start` starts one", {"up": False}),
        ("stop", "no engine was up", {"up": False, "was_up": False}),
    ],
)
def test_without_an_engine_they_say_so(
    nowhere: None, command: str, sentence: str, found: dict[str, bool]
) -> None:
    result = CliRunner().invoke(main, ["engine", command, "--json"], prog_name="tidemark")
    assert (result.exit_code, result.stderr) == (0, f"{sentence}\n")
    assert json.loads(result.stdout) == found


def test_an_engine_that_never_waits_is_refused(nowhere: None) -> None:
    result = CliRunner().invoke(main, ["engine", "start", "--idle", "0"], prog_name="tidemark")
    assert result.exit_code == 2
    assert "0 is not in the range 1<=x<=1440" in result.stderr


@pytest.mark.slow
def test_where_the_launcher_refuses_its_settings_its_words_are_told(
    jvm: None, nowhere: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYSPARK_SUBMIT_ARGS", "--properties-file absent.conf pyspark-shell")
    result = CliRunner().invoke(main, ["engine", "start"], prog_name="tidemark")
    assert result.exit_code == 1
    log = make_directory().log
    words = f"Error: Invalid properties file 'absent.conf'; {log} contains all that was printed"
    assert words in result.stderr


@pytest.mark.slow
def test_where_spark_does_not_start_no_engine_does(
    nowhere: None, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    result = CliRunner().invoke(main, ["engine", "start"], prog_name="tidemark")
    assert result.exit_code == 1
    assert f"no engine could be started: JAVA_HOME is {tmp_path}" in result.stderr


def test_a_log_begins_with_its_engine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    directory = make_directory()
    directory.log.write_text("tidemark: of an engine before\n")
    with directory.log.open("ab") as printed:
        printed.write(b"tidemark: why it ended\n")
        printed.flush()
        control.begin_log(directory)
        printed.write(b"of this engine\n")
    assert directory.log.read_text() == "of this engine\n"


def test_a_start_that_fails_is_explained_by_its_own_last_words(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    directory = make_directory()
    directory.log.write_text("tidemark: an older reason\n")
    ends_at_once = "print('tidemark: a newer reason')"
    explains = "print('Error: no such file.', '\\tat a.Frame', 'tidemark: a reason', sep='\\n')"
    for code, reason in (
        (ends_at_once, f"a newer reason; {directory.log} contains all"),
        (explains, f"a reason; Error: no such file; {directory.log} contains all"),
        ("", f"{directory.log} contains what"),
    ):
        with monkeypatch.context() as changed:
            changed.setattr(
                control, "_spawn_engine", lambda directory, _, code=code: run(directory, code)
            )
            with pytest.raises(TidemarkError, match=f"could be started: {reason}"):
                start_engine()


def run(directory: EngineDirectory, code: str) -> "subprocess.Popen[bytes]":
    """A process that is no engine and prints to the log of one."""
    with directory.log.open("ab") as log:
        return subprocess.Popen([sys.executable, "-c", code], stdout=log, stderr=log)


WAITS_IN_IMPORTS = """
import sys, time
from jobs import __main__

class Waits:
    def find_spec(self, name, *_):
        if name == "jobs.cli.main":
            print("starting", flush=True)
            time.sleep(60)

sys.meta_path.insert(0, Waits())
sys.argv[1:] = ["run", "spec.yaml"]
__main__.main()
"""
WAITS_IN_ENGINE = """
import sys, time
from jobs import __main__
from jobs.engine import control
control.start_engine = lambda: print("starting", flush=True) or time.sleep(60)
sys.argv[1:] = ["run", "spec.yaml"]
__main__.main()
"""


@pytest.mark.parametrize(("code", "engine"), [(WAITS_IN_ENGINE, "auto"), (WAITS_IN_IMPORTS, "off")])
def test_ctrl_c_before_a_command_begins_is_one_sentence(
    code: str, engine: str, tmp_path: Path
) -> None:
    """A process of Python that starts an engine or imports commands gets a terminal's signal."""
    environ = {**os.environ, "XDG_RUNTIME_DIR": str(tmp_path), "TIDEMARK_ENGINE": engine}
    process = subprocess.Popen(
        [sys.executable, "-c", code],
        env=environ,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "starting\n"
    process.send_signal(signal.SIGINT)
    _, told = process.communicate(timeout=60)
    assert process.returncode == 130
    assert told == "\ntidemark: interrupted before the command began\n"
