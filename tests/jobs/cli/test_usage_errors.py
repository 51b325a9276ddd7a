"""The command line without a JVM: help, wrong usage, wrong specs, and a busy pipeline.

Each error is one sentence and an exit code.
"""

import os
import re
import shlex
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import click
import pytest
from click.testing import CliRunner, Result

from jobs.cli.errors import explain_error
from jobs.cli.examples import EXAMPLES
from jobs.cli.main import main
from jobs.cli.options import Instant
from jobs.cli.spark_extra import MODULES
from jobs.sessions.profiles import SHORT, TINY
from tests.support.refused_session import NO_SESSION, refuse_sessions
from windowing.errors import Busy, ExpectationsFailed, SpecError, StateRefused, UsageError

COMMANDS = (
    "ingest",
    "run",
    "backfill",
    "validate",
    "publish",
    "explain",
    "diff",
    "history",
    "show",
    "late",
    "state",
    "report",
    "status",
    "advise",
    "test",
    "maintain",
    "doctor",
    "recover",
    "register",
    "close",
    "reopen",
    "restatements",
    "reset",
    "erase",
)
ROOT = Path(__file__).parents[3]
EVERY_COMMAND = (*COMMANDS, "setup", "init")
SPEC = """
name: trips
lake: lake
source: {table: lake/bronze/trips, event_time: at, key: [place, day]}
aggregates: {n: count()}
windows:
  hourly: {kind: tumbling, size: 1 hour}
  busy: {kind: session, gap: 30 minutes}
"""
RANGE = ("--from", "2013-01-01", "--to", "2013-01-02")
NEEDED = {
    "backfill": RANGE,
    "show": ("hourly",),
    "history": ("hourly",),
    "close": ("--until", "2013-01-01", "--reason", "invoiced"),
    "reopen": ("--reason", "wrong"),
}
"""What commands need besides a spec."""


@pytest.fixture(autouse=True)
def no_jvm(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever starts a session here fails."""

    def refuse(_: object) -> None:
        pytest.fail("a session was started")

    monkeypatch.setattr("jobs.cli.spark.start_session", refuse)


@pytest.fixture
def spec(tmp_path: Path) -> str:
    file = tmp_path / "trips.yaml"
    file.write_text(SPEC)
    return str(file)


def tidemark(*words: str) -> Result:
    return CliRunner().invoke(main, list(words), prog_name="tidemark")


def said(result: Result) -> str:
    """The one sentence on stderr."""
    assert result.stdout == ""
    assert "Traceback" not in result.stderr
    lines = result.stderr.splitlines()
    assert len(lines) == 1, result.stderr
    assert lines[0].startswith("tidemark: ")
    return lines[0]


def test_help_names_every_command() -> None:
    result = tidemark("--help")
    assert result.exit_code == 0
    assert all(f"\n  {name} " in result.stdout for name in EVERY_COMMAND)
    assert "..." not in result.stdout.partition("Commands:")[2], "a command's help is cut off"


@pytest.mark.parametrize("command", EVERY_COMMAND)
def test_every_command_explains_itself(command: str) -> None:
    result = tidemark(command, "-h")
    assert result.exit_code == 0
    argument = {"test": "TRANSCRIPT", "setup": "JARs", "init": "FOLDER"}.get(command, "PIPELINE")
    assert all(option in result.stdout for option in (argument, "--json", "--debug"))


@pytest.mark.parametrize(
    ("command", "example"),
    [(name, example) for name, examples in EXAMPLES.items() for example in examples],
)
def test_an_example_of_a_help_is_a_command_line(command: str, example: str) -> None:
    program, name, *words = shlex.split(example)
    assert (program, name) == ("tidemark", command)
    assert f"\n    {example}\n" in tidemark(command, "--help").stdout
    parsed = main.commands[command]
    if isinstance(parsed, click.Group):
        parsed = parsed.commands[words.pop(0)]
    # No file is read by this, and an option that is not there is an error.
    # The command keeps the option for help that it makes for this context.
    context = click.Context(parsed, **main.context_settings)
    _, left, _ = parsed.make_parser(context).parse_args(words)
    assert left == []


def test_every_command_has_examples() -> None:
    assert EXAMPLES.keys() == main.commands.keys()


UNKNOWN = (
    ["run"],
    ["backfill", *RANGE],
    ["backfill", *RANGE, "--check"],
)
TABLES = (
    ["validate", "--again"],
    ["erase", "--key", "place=EWR", "--key", "day=1", "--yes"],
    ["maintain"],
    ["show", "hourly"],
    ["history", "hourly"],
    ["late", "--as-of", "1"],
    ["state", "--window", "hourly"],
)
FEW = (
    ["doctor"],
    ["recover"],
    ["explain"],
)


@pytest.mark.parametrize(
    ("words", "conf"),
    [
        *((words, {}) for words in UNKNOWN),
        *((words, SHORT) for words in TABLES),
        *((words, TINY) for words in FEW),
    ],
)
def test_a_command_starts_by_how_much_it_reads(
    words: list[str], conf: dict[str, str], spec: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Before the first run there is nothing to maintain, so no session starts.
    monkeypatch.setattr("jobs.maintain.has_begun", lambda _: True)
    asked = refuse_sessions(monkeypatch)
    assert said(tidemark(words[0], spec, *words[1:])) == f"tidemark: {NO_SESSION}"
    assert asked == [conf]


def test_no_command_is_bad_usage_and_prints_the_help() -> None:
    result = tidemark()
    assert result.exit_code == 2
    assert "Commands:" in result.stderr


WRONG = [
    (["--bogus"], "--bogus"),
    (["doctr"], "no such command 'doctr'"),
    (["run"], "missing argument 'PIPELINE'"),
    (["run", "{spec}", "extra"], "extra"),
    (["run", "{spec}", "--jsn"], "--jsn"),
    (["run", "{spec}", "--arrival", "noon"], "'noon' is not a time"),
    (["run", "{spec}", "--arrival"], "--arrival"),
    (["run", "/nowhere/spec.yaml"], "/nowhere/spec.yaml: can't be read"),
    (["run", "{dir}"], "can't be read"),
    (["run", ""], "can't be read"),
    (["backfill", "{spec}"], "--from and --to: missing; a backfill reprocesses a range"),
    (["backfill", "{spec}", "--from", "2013-01-01"], "--to: missing; a backfill reprocesses"),
    (
        ["backfill", "{spec}", "--from", "2013-01-01", "--to", "2013-13-01"],
        "'2013-13-01' is not a time",
    ),
    (
        ["backfill", "{spec}", "--from", "2013-01-02", "--to", "2013-01-01"],
        "--from 2013-01-02T00:00:00+00:00 must be before --to",
    ),
    (
        ["backfill", "{spec}", "--from", "2013-01-01T02:00+02:00", "--to", "2013-01-01"],
        "must be before",
    ),
    (
        ["backfill", "{spec}", "--from", "0001-01-01T00:00+14:00", "--to", "2013-01-01"],
        "is not a time",
    ),
    (
        [
            "backfill",
            "{spec}",
            *["--from", "2013-01-01", "--to", "2013-01-02", "--check", "--dry-run"],
        ],
        "--dry-run and --check: give one of them",
    ),
    (["publish", "{spec}", "--accept", " "], "--accept needs a reason"),
    (["publish", "{spec}", "--accept"], "--accept"),
    (["validate", "{spec}", "--accept", "why"], "--accept"),
    (["history", "{spec}", "hourly", "--at", "noon"], "'noon' is not a time"),
    (
        ["history", "{spec}", "hourly", "--at", "2013-01-01", "--to", "2013-01-02"],
        "--at names the windows already",
    ),
    (["history", "{spec}", "hourly", "--events", "0"], "--events"),
    (["show", "{spec}"], "missing argument 'WINDOW'"),
    (
        ["show", "{spec}", "houry"],
        "trips has no window 'houry'; it has hourly, busy, did you mean 'hourly'",
    ),
    (
        ["show", "{spec}", "hourly", "--key", "EWR"],
        "write COLUMN=VALUE, the key columns are place, day",
    ),
    (
        ["show", "{spec}", "hourly", "--key", "plce=EWR"],
        "'plce' is not a key column of trips; it has place, day, did you mean 'place'",
    ),
    (["show", "{spec}", "hourly", "--from", "2013-01-02", "--to", "2013-01-02"], "must be before"),
    (["show", "{spec}", "hourly", "--limit", "0"], "--limit"),
    (["show", "{spec}", "hourly", "--as-of", "yesterday"], "'yesterday' is not a run"),
    (["show", "{spec}", "hourly", "--as-of", "3", "--published"], "--published"),
    (["late", "{spec}", "--outcome", "lost"], "'lost' is not one of"),
    *(
        (
            ["state", "{spec}", *words],
            "--key, --from, --to, --reverse, --as-of and --limit need --window",
        )
        for words in (["--key", "place=EWR"], ["--reverse"], ["--limit", "20"])
    ),
    (["validate", "{spec}", "--limit", "20"], "--limit needs --failing"),
    (["doctor", "{spec}", "--yes"], "--yes needs --break-lock"),
    (["state", "{spec}", "--window", "weekly"], "no window 'weekly'"),
]


@pytest.mark.parametrize(("words", "sentence"), WRONG, ids=[" ".join(words) for words, _ in WRONG])
def test_a_wrong_command_line_is_one_sentence_and_exit_2(
    words: list[str], sentence: str, spec: str, tmp_path: Path
) -> None:
    result = tidemark(*(word.format(spec=spec, dir=tmp_path) for word in words))
    assert result.exit_code == 2
    assert sentence in said(result)


def test_windows_may_contain_the_last_time_that_there_is(
    spec: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    refuse_sessions(monkeypatch)
    result = tidemark("history", spec, "hourly", "--at", "9999-12-31T23:59:59.999999Z")
    assert said(result) == f"tidemark: {NO_SESSION}"


@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize(
    "text",
    [
        "",
        "name: [",
        "name: trips",
        SPEC + "colour: red",
        SPEC.replace("1 hour", "an hour"),
        "\x00",
        "- a",
    ],
)
def test_a_broken_spec_is_one_sentence_that_names_the_file(
    command: str, text: str, tmp_path: Path
) -> None:
    file = tmp_path / "broken.yaml"
    file.write_text(text)
    more = {"backfill": RANGE, "show": ("hourly",), "history": ("hourly",)}.get(command, ())
    result = tidemark(command, str(file), *more)
    assert result.exit_code == 2
    assert str(file) in said(result)


MEANT = [
    ("n: count()", "n: mean(price)", "has the unknown function 'mean'; write avg(price)"),
    ("n: count()", "n: count(distinct x)", "takes no column; write count_distinct(x)"),
    ("n: count()", "n: sum(price*2)", '{price_2: "price*2"}, and is used by it: sum(price_2)'),
    ("n: count()", "p: quantile(x, 0.95)", "aggregates.p: 'quantile(x' lacks quotes"),
    ("kind: tumbling", "kind: hopping", "is not a kind of window, did you mean 'sliding'"),
    ("1 hour", "PT1H", "windows.hourly.size: 'PT1H' is not a duration such as '15 minutes'"),
    ("1 hour", "1h", "; write '1 hour'; units are"),
    ("lake: lake", "lake: ${LAKE}", "'${LAKE}', but environment variables are not expanded here"),
    ("lake/bronze", "$LAKE", "source.table: '$LAKE/trips' holds '$LAKE', but environment"),
    ("[place, day]", "[place, judged_by]", "source.key[1]: 'judged_by' is reserved; not allowed"),
    ("[place, day]", "[place], columns: {__n: x}", "source.columns.__n: '__n' is reserved"),
    ("busy:", "partial: {kind: global}\n  empty:", "can't stand beside the window 'empty'"),
]


@pytest.mark.parametrize("command", ["run", "explain"])
@pytest.mark.parametrize(("old", "new", "sentence"), MEANT, ids=[new for _, new, _ in MEANT])
def test_a_spec_that_means_something_else_is_told_what(
    command: str, old: str, new: str, sentence: str, tmp_path: Path
) -> None:
    file = tmp_path / "meant.yaml"
    file.write_text(SPEC.replace(old, new))
    result = tidemark(command, str(file))
    assert result.exit_code == 2
    assert sentence in said(result)
    assert said(result).startswith(f"tidemark: {file}: ")


@pytest.mark.parametrize("command", [name for name in COMMANDS if name != "test"])
def test_a_suite_that_is_not_there_is_exit_2_before_anything_starts(
    command: str, tmp_path: Path
) -> None:
    file = tmp_path / "trips.yaml"
    file.write_text(SPEC + "expectations: {suite: departurs}\n")
    more = {"backfill": RANGE, "show": ("hourly",), "history": ("hourly",)}.get(command, ())
    result = tidemark(command, str(file), *more)
    assert result.exit_code == 2
    where = f"tidemark: {file}: expectations.suite: "
    assert said(result).startswith(f"{where}'departurs' is not there: no file ")
    assert "suites there are: departures, planes, did you mean 'departures'" in said(result)


@pytest.mark.parametrize(
    "words",
    [
        ["run"],
        ["backfill", *RANGE],
        ["erase", "--key", "place=EWR", "--key", "day=1", "--yes"],
        ["show", "hourly"],
    ],
    ids=["run", "backfill", "erase", "show"],
)
def test_an_interrupted_command_says_that_the_same_command_finishes_it(
    words: list[str], spec: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def press_ctrl_c(_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("jobs.cli.spark.start_session", press_ctrl_c)
    result = tidemark(words[0], spec, *words[1:])
    assert (result.exit_code, result.stdout) == (130, "")
    # click ends the line that a terminal has begun with ^C.
    assert result.stderr == "\ntidemark: interrupted; run the same command again to finish it\n"


def test_an_error_that_follows_ctrl_c_is_an_interruption(
    spec: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def tidy_up_in_vain(_: object) -> None:
        try:
            raise KeyboardInterrupt
        finally:
            raise ConnectionError("the JVM has gone")

    monkeypatch.setattr("jobs.cli.spark.start_session", tidy_up_in_vain)
    result = tidemark("run", spec)
    assert (result.exit_code, result.stdout) == (130, "")
    assert result.stderr == "\ntidemark: interrupted; run the same command again to finish it\n"


@pytest.fixture
def no_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    """An environment in which two packages of the extra are not installed."""

    def find(name: str) -> object:
        return None if name in ("pyspark", "delta") else object()

    monkeypatch.setattr("jobs.cli.spark_extra.find_spec", find)


@pytest.mark.usefixtures("no_extra")
@pytest.mark.parametrize("command", EVERY_COMMAND)
def test_without_the_extra_a_command_says_what_to_install(command: str, spec: str) -> None:
    words = NEEDED.get(command, ())
    result = tidemark(command, *(() if command == "setup" else (spec,)), *words)
    assert result.exit_code == 2
    assert said(result) == (
        "tidemark: this needs Spark, and this Python has no pyspark, delta; "
        "run `pip install 'WHEEL[spark]'` with the path of Tidemark's wheel"
    )


@pytest.mark.usefixtures("no_extra")
@pytest.mark.parametrize("command", [name for name in COMMANDS if name != "test"])
def test_without_the_extra_a_bad_spec_is_said_first(command: str, tmp_path: Path) -> None:
    file = tmp_path / "broken.yaml"
    file.write_text(SPEC.replace("1 hour", "an hour"))
    words = NEEDED.get(command, ())
    result = tidemark(command, str(file), *words)
    assert result.exit_code == 2
    assert "windows.hourly.size" in said(result)


def test_the_extra_is_what_the_package_says() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    required = project["optional-dependencies"]["spark"]
    names = {re.split(r"[<>=\[]", text)[0].replace("-", "_") for text in required}
    imported = {"delta_spark": "delta"}
    assert {imported.get(name, name) for name in names} == set(MODULES)


@pytest.fixture
def writer_elsewhere(spec: str) -> Iterator[None]:
    """Another process that holds the pipeline's lock."""
    lock = Path(spec).parent / "lake" / "trips" / "_lock"
    lock.parent.mkdir(parents=True)
    lock.touch()
    script = (
        f"import fcntl; f = open({str(lock)!r}, 'r+b'); fcntl.lockf(f, fcntl.LOCK_EX); "
        "print('held', flush=True); input()"
    )
    with subprocess.Popen(
        [sys.executable, "-c", script], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == b"held\n"
        yield
        holder.communicate(b"\n")


@pytest.mark.usefixtures("writer_elsewhere")
@pytest.mark.parametrize(
    "words",
    [
        ("run",),
        ("backfill", *RANGE),
        ("validate",),
        ("publish",),
        ("publish", "--accept", "because"),
    ],
)
def test_a_busy_pipeline_is_exit_75_before_anything_starts(
    words: tuple[str, ...], spec: str
) -> None:
    result = tidemark(words[0], spec, *words[1:])
    assert result.exit_code == 75
    assert "another writer holds" in said(result)


@pytest.mark.parametrize("how", [("--debug", "late"), ("late", "--debug")])
def test_debug_shows_the_stack_trace_and_then_the_sentence(how: tuple[str, ...]) -> None:
    result = tidemark(*how, "/nowhere.yaml")
    assert result.exit_code == 2
    assert "Traceback" in result.stderr
    assert result.stderr.splitlines()[-1].startswith("tidemark: /nowhere.yaml: can't be read")


def test_debug_may_come_from_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TIDEMARK_DEBUG", "1")
    assert "Traceback" in tidemark("late", "/nowhere.yaml").stderr


def test_the_process_starts_fast_and_without_spark(spec: str) -> None:
    script = (
        "import sys, jobs.cli.main; "
        "assert not {'pyspark', 'pandas', 'great_expectations'} & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", script], check=True, timeout=60)
    wrong = subprocess.run(
        [sys.executable, "-m", "jobs", "show", spec, "houry"],
        check=False,
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert (wrong.returncode, wrong.stdout) == (2, "")
    assert wrong.stderr.startswith("tidemark: trips has no window 'houry'")


def test_a_reader_that_leaves_early_hears_nothing_more() -> None:
    read, write = os.pipe()
    os.close(read)
    ended = subprocess.run(
        [sys.executable, "-m", "jobs", "--help"],
        check=False,
        stdout=write,
        stderr=subprocess.PIPE,
        timeout=60,
    )
    os.close(write)
    assert (ended.returncode, ended.stderr) == (1, b"")


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (SpecError("name", "is bad"), 2),
        (UsageError("no"), 2),
        (ExpectationsFailed("no"), 3),
        (StateRefused("TABLE_LOST", "no"), 4),
        (Busy("no"), 75),
    ],
)
def test_errors_of_ours_say_what_they_say(error: Exception, code: int) -> None:
    failure = explain_error(error)
    assert (failure.message, failure.code) == (str(error), code)


def test_any_other_error_is_its_first_line_shortened() -> None:
    failure = explain_error(
        RuntimeError("x" * 1000 + "\n\tat java.base/page.of(Java.java:1)\n" * 50)
    )
    assert failure.code == 1
    assert failure.message.startswith("unexpected RuntimeError: xxx")
    assert failure.message.endswith("run again with --debug for more")
    assert len(failure.message) < 400
    assert "java" not in failure.message


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("2013-03-10", datetime(2013, 3, 10, tzinfo=UTC)),
        ("2013-03-10 05:00", datetime(2013, 3, 10, 5, tzinfo=UTC)),
        ("2013-03-10T00:00-05:00", datetime(2013, 3, 10, 5, tzinfo=UTC)),
        ("2013-03-10T05:00:00.25Z", datetime(2013, 3, 10, 5, 0, 0, 250_000, tzinfo=UTC)),
    ],
)
def test_times_are_iso_8601_and_utc_unless_they_say_otherwise(
    text: str, expected: datetime
) -> None:
    assert Instant().convert(text, None, None) == expected


@pytest.mark.parametrize(
    "text", ["", "now", "2013", "13:00", "2013-02-30", "2013-01-01T25:00", "99999-01-01", "1e9"]
)
def test_what_is_no_time_is_refused(text: str) -> None:
    with pytest.raises(click.BadParameter, match="is not a time such as"):
        Instant().convert(text, None, None)
