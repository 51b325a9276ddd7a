"""`tidemark advise` on planted histories: a table for each question, a proposal, and JSON."""

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result
from deltalake import DeltaTable
from ruamel.yaml import YAML

from jobs.cli.main import main
from jobs.sessions.profiles import SHORT
from tests.support.planted_history import EVENTS, Planted, plant_spec, write_history
from tests.support.refused_session import NO_SESSION, refuse_sessions
from windowing.grid.zone import micros
from windowing.spec.load import load_pipeline

START = datetime(2026, 1, 1, tzinfo=UTC)


@pytest.fixture(autouse=True)
def asked(monkeypatch: pytest.MonkeyPatch) -> list[dict[str, str]]:
    """No session is started; what was asked for."""
    return refuse_sessions(monkeypatch)


def plant(home: Path, hours: int = 12) -> None:
    """A commit every half hour: one event of `a` as it happens, one of `b` 40 minutes later."""
    batches = []
    for n in range(2 * hours + 1):
        arrival = START + timedelta(minutes=30 * n)
        rows = [
            {"id": f"a{n}", "shop": "a", "at": arrival},
            {"id": f"b{n}", "shop": "b", "at": arrival - timedelta(minutes=40)},
        ]
        batches.append(Planted(micros(arrival), rows))
    write_history(home / "source", batches)


def advise(home: Path, *words: str, **changes: Any) -> Result:
    """What the command says about the table `source` of a directory."""
    (home / "shops.yaml").write_text(json.dumps(plant_spec(home, **changes)))
    line = ["advise", str(home / "shops.yaml"), *words]
    return CliRunner().invoke(main, line, prog_name="tidemark")


def test_each_question_is_a_table_and_the_proposal_is_a_part_of_a_spec(
    tmp_path: Path, asked: list[dict[str, str]]
) -> None:
    plant(tmp_path)
    said = advise(tmp_path)
    assert said.exit_code == 0, said.output
    for question in (
        "How late do events arrive?",
        "Which are latest?",
        "At which hour of the day do they happen?",
        "Does it change over time?",
        "What would have been enough, and what would it cost?",
        "How much of each open window has probably arrived?",
    ):
        assert question in said.stdout
    lines = [" ".join(line.split()) for line in said.stdout.splitlines()]
    assert "shops: 50 events in 25 commits of" in lines[0]
    assert "behind the newest event before it 0 s 10 min 10 min 10 min" in lines
    assert "after it happened, by the clock 0 s 40 min 40 min 40 min" in lines
    assert "b 24 10 min 10 min 10 min 10 min 40 min" in lines
    # Half of the events of b are in the hour that has ended ten minutes before, or at it.
    assert lines[-3:] == ["watermark:", "delay: 1 millisecond", "allowed_lateness: 0 seconds"]
    assert asked == []
    proposed = "\n".join(said.stdout.splitlines()[-3:])
    spec = plant_spec(tmp_path)
    spec["watermark"] = YAML(typ="safe").load(proposed)["watermark"]
    assert load_pipeline(spec).watermark.delay_us == 1_000


def test_json_has_the_exact_figures(tmp_path: Path) -> None:
    plant(tmp_path, hours=36)
    found = json.loads(advise(tmp_path, "--json", "--counted", "100").stdout)
    assert (found["history"]["events"], found["history"]["judged"]) == (146, 144)
    (half, *_, all_of_them) = found["lateness"]["quantiles"]
    assert (half["behind_seconds"], all_of_them["behind_seconds"]) == (0, 600)
    assert all_of_them["age_seconds"] == 2400
    assert found["present"]["delay_seconds"] == 600
    assert found["proposed"]["missing"] == 0
    shares = {each["window_end"][11:16]: each["expected_share"] for each in found["windows"]}
    assert shares.keys() == {"12:00", "13:00"}
    # Of each hour two events happen on time, and two arrive after 40 minutes: one of these within
    # it. At its end, the first two, and the one have arrived. At its beginning, one has.
    assert shares == {"12:00": pytest.approx(0.75), "13:00": pytest.approx(0.25)}


LIVE = "its watermark can't change any more: give the proposal to a pipeline with a new name, or"


def test_a_pipeline_that_has_run_is_told_that_its_watermark_stays(tmp_path: Path) -> None:
    plant(tmp_path)
    assert LIVE not in advise(tmp_path).stdout
    ledger = tmp_path / "lake" / "shops" / "_ledger"
    write_history(ledger, [Planted(micros(START), [{"id": "1", "shop": "a", "at": START}])])
    said = " ".join(advise(tmp_path).stdout.split())
    assert f"{LIVE} `tidemark reset {tmp_path}/shops.yaml` first." in said
    same = {"delay": "1 millisecond", "allowed_lateness": "0 seconds"}
    assert LIVE not in advise(tmp_path, watermark=same).stdout


def test_of_one_commit_nothing_can_be_told(tmp_path: Path) -> None:
    plant(tmp_path, hours=0)
    said = advise(tmp_path)
    assert said.exit_code == 0
    assert "all events arrived at once" in said.stdout
    assert "events of at least two commits" in said.stdout
    assert "watermark:" not in said.stdout
    found = json.loads(advise(tmp_path, "--json").stdout)
    assert "at once" in found["unknown"]
    assert (found["proposed"], found["targets"], found["history"]["judged"]) == (None, [], 0)


@pytest.mark.parametrize("words", [[], ["--every", "1 hour"]], ids=["commits", "runs"])
def test_of_an_empty_source_nothing_can_be_told(tmp_path: Path, words: list[str]) -> None:
    DeltaTable.create(tmp_path / "source", EVENTS)
    said = advise(tmp_path, *words)
    assert said.exit_code == 0, said.output
    assert "no event of the source could be read; land events in it" in said.stdout
    history = json.loads(advise(tmp_path, "--json", *words).stdout)["history"]
    assert (history["commits"], history["events"], history["first_arrival"]) == (0, 0, None)


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (
            ["--since", "2026-01-01T06:00Z"],
            "--since leaves no event of the source that could be read; name an earlier time by "
            "--since",
        ),
        (
            ["--since", "2026-01-01T05:00Z"],
            "all events that were read arrived at once, so it can't be told how late they are; "
            "name an earlier time by --since",
        ),
        (
            ["--rows", "1"],
            "all events that were read arrived at once, so it can't be told how late they are; "
            "read more rows by --rows",
        ),
    ],
    ids=["after", "newest", "rows"],
)
def test_the_option_is_named_that_leaves_too_little(
    tmp_path: Path, words: list[str], sentence: str
) -> None:
    plant(tmp_path, hours=5)
    said = advise(tmp_path, *words, "--json")
    assert said.exit_code == 0, said.output
    assert json.loads(said.stdout)["unknown"] == sentence


def test_arrivals_are_those_of_commits_however_runs_are_taken(tmp_path: Path) -> None:
    plant(tmp_path)
    said = advise(tmp_path, "--every", "2 hours", "--json")
    history = json.loads(said.stdout)["history"]
    assert history["first_arrival"] == START.isoformat()
    assert history["last_arrival"] == (START + timedelta(hours=12)).isoformat()
    assert "They arrived from 2026-01-01 00:00Z to 2026-01-01 12:00Z," in said.stderr


@pytest.mark.parametrize(
    ("since", "events"),
    [
        # In the hour from 11:00 on two events of a happen, and one of b that has arrived.
        (None, [3, 1]),
        ("2026-01-01T11:00Z", [3, 1]),
        ("2026-01-01T11:30Z", [None, 1]),
    ],
    ids=["whole", "from-its-start", "from-its-middle"],
)
def test_events_of_a_window_are_counted_where_all_of_them_were_read(
    tmp_path: Path, since: str | None, events: list[int | None]
) -> None:
    plant(tmp_path)
    said = advise(tmp_path, "--json", *([] if since is None else ["--since", since]))
    windows = json.loads(said.stdout)["windows"]
    assert [each["events"] for each in windows] == events
    (line,) = [line for line in said.stderr.splitlines() if "[2026-01-01 11:00Z, 12:00Z)" in line]
    assert line.split()[4] == ("-" if events[0] is None else "3")


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["--by", "sohp"], "--by: 'sohp' is no column of the source; it has at, id, shop"),
        (["--counted", "101"], "'101' is no share in percent above 0 and up to 100"),
        (["--on-time", "most"], "'most' is no share in percent"),
        (["--every", "1 month"], "'1 month' is no positive length without months"),
        (["--every", "often"], "'often' is not a duration"),
        (["--rows", "0"], "--rows"),
        (["--since", "soon"], "'soon' is not a time"),
    ],
)
def test_wrong_words_are_refused(tmp_path: Path, words: list[str], sentence: str) -> None:
    plant(tmp_path, hours=1)
    said = advise(tmp_path, *words)
    assert said.exit_code == 2
    assert sentence in said.stderr


def test_without_a_table_the_command_says_so(tmp_path: Path) -> None:
    said = advise(tmp_path)
    assert said.exit_code == 2
    assert "source.table: there is no Delta table at" in said.stderr


def test_a_source_that_spark_alone_reads_asks_for_a_session(
    tmp_path: Path, asked: list[dict[str, str]]
) -> None:
    plant(tmp_path, hours=1)
    source = plant_spec(tmp_path)["source"] | {"where": "shop = 'a'"}
    said = advise(tmp_path, source=source)
    assert (said.exit_code, said.stderr) == (2, f"tidemark: {NO_SESSION}\n")
    assert [dict(SHORT).items() <= settings.items() for settings in asked] == [True]


def test_runs_may_be_fewer_than_commits(tmp_path: Path) -> None:
    plant(tmp_path)
    found = json.loads(advise(tmp_path, "--json", "--every", "2 hours").stdout)
    # Of seven runs the first one arrives first, with the commits of two hours.
    assert found["history"]["judged"] == 50 - 8


def test_odd_keys_and_other_columns_are_named(tmp_path: Path) -> None:
    rows = [
        {"id": f"{shop}{n}", "shop": shop, "at": START + timedelta(minutes=n)}
        for shop, until in (("quiet", 60), ("busy", 600), ("new", 5))
        for n in range(until)
    ]
    batches = [
        Planted(micros(START + timedelta(hours=n + 1)), [r for r in rows if hour_of(r) == n])
        for n in range(10)
    ]
    write_history(tmp_path / "source", batches)
    said = advise(tmp_path, "--by", "id")
    # The events of the first hour, 60 of each and five, arrived first.
    assert f"({60 + 600 + 5 - 125 - 10} others left out)" in said.stdout
    assert "nothing has arrived of it for 9 h; its longest pause before was 0 s" in said.stdout
    assert "busy" in said.stdout


def hour_of(row: dict[str, Any]) -> int:
    """In which hour an event happens."""
    since: timedelta = row["at"] - START
    return since // timedelta(hours=1)
