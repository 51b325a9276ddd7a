"""Lists on pages have the names that the code has.

These are commands, tables, refusals, counts of the ledger, arguments, and targets of make.
"""

import ast
import os
import re
from pathlib import Path

import pytest

from jobs.cli.main import main
from jobs.engine.client import COMMANDS as FOR_ENGINE
from jobs.session import _settings
from jobs.sessions.profiles import EXACT, TINY
from jobs.sessions.s3_session import ON_S3
from tests.system.test_row_values_never_leak import COMMANDS as SILENT
from windowing.spec.reserved import COUNTS, PUBLISHED

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
OPERATIONS = DOCS / "operations"
INCIDENTS = OPERATIONS / "incidents-by-exit-code.md"
NAMED = re.compile(r"`([^`]+)`")
PLAIN = {"ingest", "register", "reset", "erase", "setup", "engine"}
"""Commands that print counts, names of files and tables, and what was typed."""
WITHOUT_LAKE = {"init", "test"}
NO_SESSION = {"diff", "engine", "publish", "reset", "setup", "status"}
CODE = re.compile(r'(?:StateRefused|Finding)\(\s*"([A-Z]+_[A-Z]+)"|^    "([A-Z]+_[A-Z]+)": ', re.M)
TARGET = re.compile(r"^((?:test|seeded|torture|soak)[a-z0-9-]*):.*## (.*)$", re.MULTILINE)
TIME = re.compile(r"\(((?:an hour|half an hour|hours|(?:[a-z]+ )?minutes))\)$")


def read_section(page: Path, heading: str) -> str:
    """What stands under a heading, with the sections below it."""
    text = page.read_text()
    found = re.search(rf"^(#+) {re.escape(heading)}\n", text, re.MULTILINE)
    assert found is not None, heading
    below = re.split(rf"^#{{1,{len(found[1])}}} ", text[found.end() :], flags=re.MULTILINE)
    return below[0]


def name_commands(text: str) -> set[str]:
    """The commands among the texts in backticks, with or without options."""
    words = {word for each in NAMED.findall(text) for word in each.split()[:2]}
    return words & main.commands.keys()


def name_printing() -> set[str]:
    """The commands that SECURITY says print values of rows."""
    section = read_section(ROOT / "SECURITY.md", "Where values of rows appear")
    return name_commands(section.partition("No log, other report")[0])


def test_a_command_prints_values_of_rows_or_is_tested_not_to() -> None:
    silent = {words[0] for words in SILENT}
    assert name_printing() | silent | PLAIN == main.commands.keys()
    both = {"backfill", "validate"}
    assert name_printing() & (silent | PLAIN) == both, "only with --check, and with --failing"


def test_what_prints_rows_of_a_lake_is_among_what_has_to_be_protected() -> None:
    section = read_section(OPERATIONS / "tables.md", "Protect tables and reports")
    assert name_commands(section) == name_printing() - WITHOUT_LAKE


def test_every_table_is_among_what_has_to_be_protected() -> None:
    page = (OPERATIONS / "tables.md").read_text()
    tables = re.findall(r"^\| ((?:`[a-z_{}/]+`(?:, )?)+) \| ", page.partition("\n## ")[0], re.M)
    names = {re.sub(r"\{\w+\}", "*", name) for row in tables for name in NAMED.findall(row)}
    assert {"_seen", "_panes_*", "_restated_*", "_ledger"} <= names
    section = read_section(OPERATIONS / "tables.md", "Protect tables and reports")
    said = {*NAMED.findall(section)} | {"*", "published/*", "_panes_global"}
    assert "outputs, `published/`" in section
    assert names - said == set()


def test_what_prints_rows_as_json_is_said_where_rows_are_described() -> None:
    section = read_section(OPERATIONS / "json-output.md", "Rows of tables")
    sentences = section.partition("decides how a value is written")[0]
    assert name_commands(sentences) == name_printing() - {"advise", "init"}


def test_every_refusal_is_explained() -> None:
    files = [file for folder in ("jobs", "windowing") for file in (ROOT / folder).rglob("*.py")]
    found = {name for file in files for pair in CODE.findall(file.read_text()) for name in pair}
    codes = {name for name in found if name} - {"HADOOP_CONF"}
    assert {"FILE_CHANGED", "TABLE_FOREIGN", "SPEC_CHANGED"} <= codes
    rows = re.findall(r"^\| (`[A-Z].*?) \| ", read_section(INCIDENTS, "4: refused"), re.M)
    assert {name for row in rows for name in NAMED.findall(row)} >= codes


@pytest.mark.parametrize("count", COUNTS)
def test_the_page_of_tables_names_every_count_of_an_output(count: str) -> None:
    section = read_section(OPERATIONS / "tables.md", "The ledger")
    assert re.search(rf"`(?:\{{window\}})?\.{count}`", section)


def test_what_the_ledger_counts_for_a_window_is_reserved() -> None:
    counted = re.compile(r'f"\{(?:w|window|window\.name|w\.name|target\.path\.name)\}\.([a-z_]+)"')
    files = [file for folder in ("jobs", "windowing") for file in (ROOT / folder).rglob("*.py")]
    found = {name for file in files for name in counted.findall(file.read_text())}
    assert found == {*COUNTS}


def test_the_reference_says_what_names_and_lakes_can_not_have() -> None:
    page = (DOCS / "spec.md").read_text()
    assert f"no window is called `{PUBLISHED}`" in page
    (row,) = re.findall(r"^\| `lake` \| .*$", page, re.MULTILINE)
    assert all(f"`{odd}`" in row for odd in ("[", "]", r"\|", "^", "\\", "%"))


def test_every_command_with_a_session_has_its_place_on_a_cluster() -> None:
    section = read_section(DOCS / "cluster.md", "What works there")
    rows = re.findall(r"^\| (`.*) \| .* \|$", section, re.MULTILINE)
    assert name_commands(" ".join(rows)) == main.commands.keys() - NO_SESSION


def test_the_page_of_the_engine_names_what_runs_without_it() -> None:
    page = (OPERATIONS / "warm-engine.md").read_text()
    (sentence,) = re.findall(r"starts no JVM\. (.*?) run in their own process", page, re.DOTALL)
    assert name_commands(sentence) == main.commands.keys() - FOR_ENGINE


def test_the_page_about_airflow_names_every_argument_of_its_factory() -> None:
    tree = ast.parse((ROOT / "dags/factory.py").read_text())
    functions = {n.name: n for n in tree.body if isinstance(n, ast.FunctionDef)}
    of_one, of_all = (
        [arg.arg for arg in functions[name].args.args] for name in ("dags_of", "make_dags")
    )
    assert of_one == ["pipeline", "cli", "default_args", "reports_url"]
    assert of_all == ["directory", *of_one[1:], "target"]
    page = (DOCS / "airflow.md").read_text()
    assert all(f"`{name}`" in page for name in of_one[2:])
    assert 'target="prod"' in page


def test_contributing_names_every_target_that_tests_and_how_long_it_takes() -> None:
    page = (ROOT / "CONTRIBUTING.md").read_text()
    wrong = []
    for target, text in TARGET.findall((ROOT / "Makefile").read_text()):
        lines = re.findall(rf"^.*\bmake {target}(?![\w-]).*$", page, re.MULTILINE)
        time = TIME.search(text)
        if not any(time is None or time[1] in line for line in lines):
            wrong.append((target, time and time[1]))
    assert wrong == []


def test_all_pages_give_the_same_minutes_for_the_quick_tests() -> None:
    targets = dict(TARGET.findall((ROOT / "Makefile").read_text()))
    time = TIME.search(targets["test"])
    assert time is not None
    for page in (ROOT / "README.md", DOCS / "reliability.md"):
        (line,) = re.findall(r"^(?:- `)?make test(?:` | +#).*$", page.read_text(), re.MULTILINE)
        assert time[1] in line


def test_settings_that_a_file_cannot_change_are_listed(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in os.environ if name.startswith("AWS_")]:
        monkeypatch.delenv(name)
    local, cluster = (
        _settings("tests", {**TINY, **ON_S3, "spark.master": master}).keys() - EXACT
        for master in ("local[*]", "spark://127.0.0.1:9")
    )
    section = re.sub(
        "```.*?```", "", read_section(OPERATIONS / "deploy.md", "Settings"), flags=re.S
    )
    named = {*NAMED.findall(section)}
    assert local - {"spark.app.name", "spark.master"} <= named
    on_cluster = {*NAMED.findall(read_section(DOCS / "cluster.md", "Settings"))}
    assert cluster - local <= on_cluster
