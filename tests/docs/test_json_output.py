"""The page about `--json` has the keys that commands print, with their types, and no others.

A command runs in this process and prints for real. What it would do is replaced by a small value of
the class that it returns, so no session starts and no lake is needed. No section of the page is
left out. Not compared are the columns of rows that follow from a spec or from a source.
"""

import json
import re
from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime
from fractions import Fraction
from pathlib import Path
from typing import Any

import click
import numpy as np
import pytest
from click.testing import CliRunner

from expectations.outcome import CRITICAL, NO_VALIDATION, Outcome, Validation
from jobs.backfill import BackfillPlan
from jobs.cli.main import main
from jobs.doctor import Repaired
from jobs.engine.control import Status as EngineStatus
from jobs.erase import Erased, Lifted
from jobs.evidence.accepted_events import AcceptedEvents
from jobs.explain import News, Plan, Touched
from jobs.history import Histories, WindowHistory
from jobs.ingest import Ingestion
from jobs.init import Project
from jobs.locking.holder import Holder
from jobs.locking.lease_note import LeaseNote, State
from jobs.maintain import Maintenance, Tended
from jobs.reconcile import Checked
from jobs.register import Registration
from jobs.reset import Holding
from jobs.sessions.jars import JAR_NAMES
from jobs.transcripts import Missed, Verdict
from tests.support.described_values import is_as_described
from tests.support.json_of_periods import PERIODS
from windowing.admit import frame
from windowing.admit.outcomes import REFUSED_OUTCOMES
from windowing.advise.advice import EVER_US, Advice, Named, OpenWindow, Target
from windowing.advise.advice import Checked as CheckedShare
from windowing.advise.cost import Cost
from windowing.advise.groups import Lateness
from windowing.advise.history import Batches, Events, History
from windowing.advise.keys import Finding as OddKey
from windowing.advise.reading import LeftOut, Reading
from windowing.advise.rule import Settings as LateSettings
from windowing.advise.rule import Step
from windowing.advise.share import Check
from windowing.columns import META
from windowing.doctor.rule import Finding
from windowing.errors import StateRefused
from windowing.grid.range import Range
from windowing.ingest.disorder import Proposed
from windowing.ingest.proposal import Proposal
from windowing.ingest.rule import LandedFile
from windowing.ingest.table import TakenFile
from windowing.ledger.changed import ShownChange
from windowing.ledger.rule import COUNTS
from windowing.location import Location
from windowing.merge.rule import output_table
from windowing.report.alarms import Alarm
from windowing.report.changed import Days
from windowing.report.compared import ChangedRow, Compared, OutputDifference, Side
from windowing.report.difference import Difference, Unequal
from windowing.report.facts import FailingRows
from windowing.report.publications import PastPublication, Publications, RolledBack
from windowing.report.rows import NO_ROWS, Refused, Rows, Seen, StateTable, Version
from windowing.report.rule import Changed, Publication, Published, RunReport
from windowing.report.status import Status
from windowing.revisions.evidence import Untold
from windowing.revisions.rule import Cause, Period, Value
from windowing.revisions.rule import Step as MadeBy
from windowing.source.rule import Followed
from windowing.spec.fingerprint import Evolution
from windowing.spec.load import load_pipeline
from windowing.transcripts.load import FINALITY

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "operations" / "json-output.md").read_text()
FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
HEADING = re.compile(r"^#{2,3} (.+)$", re.MULTILINE)
TABLE = re.compile(r"^\| key \| value \|\n\|---\|---\|\n((?:\|.*\n)+)", re.MULTILINE)
QUOTED = re.compile(r"`([^`]+)`")

SPEC: dict[str, Any] = {
    "name": "trips",
    "lake": "lake",
    "source": {"table": "lake/bronze/trips", "event_time": "at", "key": ["place"]},
    "aggregates": {"n": "count()"},
    "windows": {"hourly": {"kind": "tumbling", "size": "1 hour"}},
}
NAMES = {
    "hourly": "{window}",
    "_panes_1h": "{table}",
    "place": "{column}",
    "n": "{column}",
    "delay": "{column}",
    "source.where": "{column}",
    **dict.fromkeys(JAR_NAMES, "{jar}"),
}
"""What the objects below name, and what the page writes for all such names."""
MISSED = dict.fromkeys(re.findall(r"(\w+):", frame._MISSED_TYPE), "2013-01-01T06:00:00.000Z")
"""One of the windows that a late row missed, as Spark writes it."""

AT, LATER = datetime(2013, 1, 1, 5, tzinfo=UTC), datetime(2013, 1, 1, 6, 0, 0, 5, UTC)
CHANGES = {"hourly": Changed(1, 2, 3)}
ALARM = Alarm("quarantined", "5 of 9 rows were quarantined", 5, holds=True, limit="0.1")
DAYS = {"hourly": Days(((date(2013, 1, 1),) * 2,), ((AT, LATER),))}
RAN = RunReport(
    2, 1, 9, 6, 1, 1, 1, AT, CHANGES, 1, ("windows.hourly",), {"delay": 3, "source.where": 1},
    alarms=(ALARM,), changed_days=DAYS,
)  # fmt: skip
ROWS = dict.fromkeys(COUNTS, 1)
PLACES = {"lake": "/lake", "project": "/tidemark.toml", "target": "dev"}
STANDS = Status(
    "trips", LATER, AT, AT, 60_000_000, 2, AT, ROWS, ROWS, (ALARM,), 1, AT, ("hourly",), 2, AT,
    False, ("run 3: the next run finishes it",), "`tidemark run`", closed_until=AT,
    closed_reason="invoiced", **PLACES,
)  # fmt: skip
LOST = StateRefused("TABLE_CHANGED", "lake/trips/_ledger is damaged; restore it")
UNBORN = Status("trips", AT, counts=ROWS, totals=ROWS, **PLACES)
NO_EVENTS = Events(*(np.zeros(0, np.int64) for _ in range(4)))
ONE_BATCH = Batches(np.array([0]), np.array([0]))
HISTORY = History(ONE_BATCH, NO_EVENTS, 1, 2)
LATENESS = Lateness(0, 9, (0, 1, 2, 3), (1, 2, 3, 4))
COST = Cost(LateSettings(1, 2), 9, 3, 2, 1, 1, 5, 6, 7)
NEVER_CLOSED = replace(
    COST, settings=LateSettings(1, EVER_US), wait_us=None, long_wait_us=None, open_rows=None
)
ADVICE = Advice(
    "trips", "/trips",
    Reading(0, 1, ONE_BATCH, NO_EVENTS, (), (), 3, (LeftOut(1, None, "why"),), "all"),
    HISTORY, 9, None, LATENESS, (Step(0, 1, 9),),
    (Named("a", LATENESS),), 5, (Named("05:00", LATENESS),), (Named("day", LATENESS),),
    NEVER_CLOSED, (Target(Fraction(1), 5, COST),), COST, (("EWR", OddKey(0, "late", "why")),),
    (OpenWindow("hourly", AT, LATER, 3, 0.5), OpenWindow("hourly", AT, LATER, 3, None)),
    (CheckedShare("hourly", Check(5, 0.5, 0.4, 7)),), ("so few",),
)  # fmt: skip
NOTHING = Batches(np.zeros(0, np.int64), np.zeros(0, np.int64))
UNKNOWN_LATENESS = Advice(
    "trips", "/trips", replace(ADVICE.reading, batches=NOTHING), replace(HISTORY, batches=NOTHING),
    0, unknown="why",
)  # fmt: skip
CORRECTED = replace(RAN, alarms=())
FOLLOWING = replace(RAN, followed=Followed(2, (Range(0, 1),), (Range(5, 6),)))
TIME = AT.isoformat()
SHOWN = Published(version=3, run=2, rows=9, previous=None, entry=7, at=TIME, watermark=TIME)
PUBLISHED = Publication(
    2, {"hourly": SHOWN}, "storm", {"hourly": ["expect_x(n)"]}, 7, TIME, TIME,
    DAYS, {"hourly": (ShownChange(7, 0, ((date(2013, 1, 1),) * 2,)),)},
)  # fmt: skip
PAST = PastPublication(7, AT, 2, AT, {"hourly": 3}, "rollback", "wrong", 4, DAYS)
ROW = {"place": "EWR", "window_start": AT, "window_end": LATER}
SIDE = Side(7, 2, AT, AT)
DIFFERS = OutputDifference(1, 1, 0, (ChangedRow({**ROW, "n": 1}, {**ROW, "n": 2}),))
NOTHING_NEW = RunReport(None, windows={"hourly": Changed()}, published=True)
DIFFERENCE = Difference(
    "hourly", ({"n": 1},), ({"n": 2},), (Unequal({"place": "EWR"}, {"n": (1, None)}),)
)
CHECKED = Checked(9, -1, CHANGES, (DIFFERENCE,))
BROKEN = Outcome("hourly", "trips", "expect_x(n)", CRITICAL, False, "1", "too few")
ACCEPTED = replace(BROKEN, accepted="a storm")
FAILING = {"place": "EWR", "window_start": AT, "window_end": LATER, "n": 3}
JUDGED = Validation(2, 7, (BROKEN, ACCEPTED), "x.html")
REFUSED_ROW = {"place": "EWR", **dict.fromkeys(META), "missed": [MISSED]} | {
    "outcome": "late",
    "reason": "every window it belongs to had closed",
    "event_time": AT,
    "run": 2,
    "batch": 1,
    "watermark": LATER,
    "resolved_by": "backfill 7",
}
PANES = StateTable("_panes_1h", ("hourly",), 4, 2, 900, 2, 1)
NEWS = News(Location("lake/trips"), 3, 2, 2, 2, 9, (AT, LATER), ((3, "DELETE"),))
OUTPUT = Touched("hourly", "tumbling, 1 hour", "_panes_1h", 2, 1, AT, (AT, LATER))
PLAN = Plan(
    "trips",
    3,
    AT,
    NEWS,
    (OUTPUT,),
    {"_panes_1h": ("hourly",)},
    ("run 3: the next run finishes it",),
    Evolution(("windows.hourly",), (), ()),
    "restore it",
)
UNKNOWN = Plan(
    "trips",
    1,
    None,
    News(Location("trips"), 0, 0, 1, None, None),
    (Touched("hourly", "tumbling, 1 hour", "_panes_1h", None, None, None, None),),
    {},
    (),
    Evolution((), (), ()),
    None,
)
ERASED = Erased({"hourly": 3}, CHANGES, 7, ("daily",))
PART = Proposed("ordered_at", "a time in all")
PROJECT = Project(
    "trips",
    {"trips.yaml": "name: trips"},
    Proposal(PART, None, PART, None, PART, PART, {}, {}),
    RAN,
    "hourly",
    NO_ROWS,
    9,
    1,
)
TAKEN = Ingestion(
    (TakenFile(LandedFile("1.csv", 90, 0), 3, 1),), ("read.me",), ("price",), "columns/trips.yaml"
)
ENGINE = EngineStatus(7, "idle", False, 3, 15.0, "engine.log", False, "the code has changed")


def shown() -> Seen:
    """A row of an output with all its columns."""
    pipeline = load_pipeline({**SPEC, "lake": "/lake", "source": {**SPEC["source"], "table": "t"}})
    columns = (*output_table(pipeline, pipeline.window("hourly")).columns, *FINALITY)
    row: dict[str, Any] = dict.fromkeys(columns, 1)
    row |= {"window_start": AT, "window_end": LATER} | dict.fromkeys(FINALITY, True)
    return Seen(Rows(columns, (row,), 1), Version(2, 2, 0))


@dataclass(frozen=True)
class Case:
    """A command line, and what the functions return that it calls."""

    words: str
    returned: Mapping[str, object]
    code: int = 0


RANGE = "--from 2013-01-01 --to 2013-01-02"
_UNTIL_NOW = Period(datetime(2026, 3, 2, tzinfo=UTC), None)
_HOUR = Period(datetime(2026, 3, 2, 9, tzinfo=UTC), datetime(2026, 3, 2, 10, tzinfo=UTC))
_STEP = MadeBy(Cause.BACKFILL, 2, datetime(2026, 3, 2, tzinfo=UTC), _HOUR)
HISTORIES = Histories(
    (
        WindowHistory(
            {"place": "EWR"},
            (datetime(2026, 3, 2, 9, tzinfo=UTC), datetime(2026, 3, 2, 10, tzinfo=UTC)),
            (
                Value({"n": 1}, None, Period(None, datetime(2026, 3, 2, tzinfo=UTC)), ()),
                Value({"n": 2}, _STEP, _UNTIL_NOW, (_UNTIL_NOW,)),
                Value(None, MadeBy(Cause.UNFINISHED), Period(None, None), ()),
            ),
            {"late": 1, "partial": 2, "duplicate": 3, "quarantined": 4},
            (Untold("why"), AcceptedEvents(1, 60, (("e", 0),)), Untold("why")),
        ),
        WindowHistory({"place": "EWR"}, (None, None), (), {}),
    ),
    2,
)
LOCK = LeaseNote(
    7, State.FREE, 30.0, Holder("tidemark run", 4711, "etl-2", "2026-03-02T12:10:31+00:00")
)
CASES = {
    "init": (
        Case(
            "init FOLDER",
            {"jobs.init.propose_project": PROJECT, "jobs.init.write_project": ["trips.yaml"]},
        ),
    ),
    "ingest": (
        Case("ingest SPEC", {"jobs.ingest.find_nothing_new": TAKEN}),
        Case("ingest SPEC", {"jobs.ingest.find_nothing_new": Ingestion()}),
    ),
    "ingest --keep-taken": (
        Case("ingest SPEC --keep-taken", {"jobs.ingest.keep_taken": ("1.csv",)}),
    ),
    "run": (
        Case("run SPEC", {"jobs.shortcuts.nothing_new.find_nothing_new": RAN}),
        Case("run SPEC", {"jobs.shortcuts.nothing_new.find_nothing_new": NOTHING_NEW}),
    ),
    "backfill": (Case(f"backfill SPEC {RANGE}", {"jobs.backfill.backfill": CORRECTED}),),
    "backfill --source newest": (
        Case("backfill SPEC --source newest", {"jobs.run.follow_rewrites": FOLLOWING}),
    ),
    "backfill --dry-run": (
        Case(
            f"backfill SPEC {RANGE} --dry-run",
            {"jobs.backfill.plan": BackfillPlan(((AT, LATER),), 3, {"hourly": (AT, LATER)})},
        ),
    ),
    "backfill --check": (
        Case(f"backfill SPEC {RANGE} --check", {"jobs.reconcile.check_range": CHECKED}, 3),
    ),
    "validate": (
        Case("validate SPEC", {"jobs.validation.validated.find_validation": JUDGED}, 3),
        Case(
            "validate SPEC --failing",
            {
                "jobs.validation.validated.find_validation": JUDGED,
                "jobs.failing.list_failing": (
                    FailingRows(
                        BROKEN.window, BROKEN.expectation, Rows((*FAILING,), (FAILING,), 1)
                    ),
                    FailingRows("hourly", "expect_x(n)", None),
                ),
            },
            3,
        ),
        Case("validate SPEC", {"jobs.validation.validated.find_validation": NO_VALIDATION}),
    ),
    "publish": (
        Case(
            "publish SPEC",
            {
                "jobs.publish.publish": PUBLISHED,
            },
        ),
        Case(
            "publish SPEC --rollback 4 --reason wrong",
            {"jobs.publish.roll_back": RolledBack(4, PUBLISHED, is_new=True)},
        ),
        Case("publish SPEC --list", {"jobs.publish.list_publications": Publications((PAST,))}),
        Case("publish SPEC", {"jobs.publish.publish": Publication(0, {})}),
    ),
    "diff": (Case("diff SPEC", {"jobs.diff.compare": Compared(SIDE, SIDE, {"hourly": DIFFERS})}),),
    "show": (
        Case("show SPEC hourly", {"jobs.show.show_windows": shown()}),
        Case("show SPEC hourly", {"jobs.show.show_windows": Seen(missing="there is no run yet")}),
    ),
    "history": (
        Case("history SPEC hourly", {"jobs.history.history": HISTORIES}),
        Case("history SPEC hourly", {"jobs.history.history": Histories()}),
    ),
    "late": (
        Case(
            "late SPEC --as-of 2",
            {"jobs.show.show_refused": Refused(dict.fromkeys(REFUSED_OUTCOMES, 1), (REFUSED_ROW,))},
        ),
    ),
    "state": (
        Case(
            "state SPEC --window hourly",
            {
                "windowing.report.state.measure_state_tables": (PANES,),
                "jobs.show.show_partials": Rows(("place",), ({"place": "EWR"},), 1),
            },
        ),
        Case(
            "state SPEC --window hourly",
            {
                "windowing.report.state.measure_state_tables": (
                    StateTable("_seen", ("hourly",), 0, 0, 0, None, None),
                ),
                "jobs.show.show_partials": NO_ROWS,
            },
        ),
    ),
    "explain": (
        Case("explain SPEC", {"jobs.explain.explain": PLAN}),
        Case("explain SPEC", {"jobs.explain.explain": UNKNOWN}),
    ),
    "report": (
        Case("report SPEC", {"windowing.storage.files.has_directory": True}),
        Case("report SPEC", {"windowing.storage.files.has_directory": False}),
    ),
    "status": (
        Case("status SPEC", {"jobs.status.status": STANDS}, 5),
        Case("status SPEC", {"jobs.status.status": UNBORN}),
        Case("status SPEC", {"jobs.cli.status._read_all": ((), {"trips": LOST})}, 4),
    ),
    "advise": (
        Case("advise SPEC", {"jobs.advise.advise": ADVICE}),
        Case("advise SPEC", {"jobs.advise.advise": UNKNOWN_LATENESS}),
    ),
    "engine start": (
        Case(
            "engine start",
            {"jobs.engine.control.engine_status": None, "jobs.engine.control.start_engine": ENGINE},
        ),
    ),
    "engine status": (Case("engine status", {"jobs.engine.control.engine_status": ENGINE}),),
    "engine stop": (Case("engine stop", {"jobs.engine.control.stop_engine": True}),),
    "setup": (Case("setup", {"jobs.setup.fetch_jars": JAR_NAMES}),),
    "doctor": (
        Case("doctor SPEC", {"jobs.doctor.diagnose": (StateRefused("TABLE_LOST", "gone"),)}, 4),
        Case("doctor SPEC", {"jobs.doctor.diagnose": (), "jobs.locking.lock_file.find_lock": LOCK}),
    ),
    "doctor --break-lock": (
        Case(
            "doctor SPEC --break-lock --yes",
            {
                "jobs.locking.broken_lock.find_lock_to_break": ("of the pipeline", LOCK),
                "jobs.locking.broken_lock.break_lock": True,
            },
        ),
        Case("doctor SPEC --break-lock", {"jobs.locking.broken_lock.find_lock_to_break": None}),
    ),
    "register": (
        Case("register SPEC", {"jobs.register.register": Registration(("trips.hourly",), ())}),
        Case("register SPEC", {"jobs.register.register": Registration((), ("trips.hourly",))}),
    ),
    **{heading: tuple(Case(*case) for case in cases) for heading, cases in PERIODS.items()},
    "recover": (
        Case(
            "recover SPEC",
            {"jobs.doctor.recover": Repaired((Finding("POINTER_NEWER", "no"),))},
        ),
        Case("recover SPEC", {"jobs.doctor.recover": Repaired(())}),
    ),
    "maintain": (
        Case(
            "maintain SPEC",
            {
                "jobs.maintain.has_begun": True,
                "jobs.maintain.maintain": Maintenance(
                    (Tended("_panes_1h", 3, 2, (9, 1), (900, 100)),)
                ),
            },
        ),
    ),
    "reset": (
        Case(
            "reset SPEC --yes",
            {
                "jobs.reset.holding": Holding(Location("/lake"), ("hourly",), ("notes",), 900),
                "jobs.reset.reset": Holding(Location("/lake"), ("hourly",), ("notes",), 900),
            },
        ),
    ),
    "erase": (
        Case("erase SPEC --key EWR --yes", {"jobs.erase.erase": Erased({"hourly": 3})}),
        Case("erase SPEC --where delay=7 --yes", {"jobs.erase.erase": ERASED}),
    ),
    "erase --lift": (
        Case("erase SPEC --key EWR --lift", {"jobs.erase.lift_erasure": Lifted(lifted=True)}),
    ),
    "test": (
        Case(
            "test trips",
            {
                "windowing.transcripts.load.load_plays": [None],
                "jobs.transcripts.play_transcripts": (
                    Verdict("late", "late.yaml", 1.25, (Missed(1, 5, (DIFFERENCE,)),)),
                ),
            },
            3,
        ),
    ),
}
"""By each heading of the page the commands whose objects its table describes.

Together they have every key. A further one shows which values may be null.
"""


def listed(page: str) -> dict[str, dict[str, str]]:
    """By each command that a heading names the keys of its table, and what is said of each."""
    parts = HEADING.split(FENCE.sub("", page))
    found: dict[str, dict[str, str]] = {}
    for heading, text in zip(parts[1::2], parts[2::2], strict=True):
        keys: dict[str, str] = {}
        for line in "".join(TABLE.findall(text)).splitlines():
            named, _, described = line.strip("| ").partition(" | ")
            for key in QUOTED.findall(named):
                assert key not in keys, f"{heading}: {key} is listed twice"
                keys[key] = described
        found |= dict.fromkeys(QUOTED.findall(heading), keys)
    return found


def values_of(value: object, place: str = "") -> Iterator[tuple[str, object]]:
    """Each key of an object, and of the objects inside, as the page writes it, with its value.

    Names of windows, tables and columns are no keys.
    """
    if isinstance(value, list):
        for each in value:
            yield from values_of(each, f"{place}[]")
    elif isinstance(value, dict):
        for name, inner in value.items():
            path = f"{place}.{NAMES.get(name, name)}".lstrip(".")
            if name not in NAMES:
                yield path, inner
            yield from values_of(inner, path)


def print_object(case: Case, home: Path) -> dict[str, Any]:
    """The object that a command prints, which is the one line on stdout."""
    spec = home / "trips.yaml"
    source = {**SPEC["source"], "files": {"folder": "drop"}}
    spec.write_text(json.dumps({**SPEC, "source": source}))
    places = {"SPEC": str(spec), "FOLDER": str(home / "trips")}
    line = [places.get(word, word) for word in case.words.split()]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("jobs.session.spark_session", lambda **_: None)
        for function, value in case.returned.items():
            patch.setattr(function, lambda *_, value=value, **__: value)
        result = CliRunner().invoke(main, [*line, "--json"], prog_name="tidemark")
    assert result.exit_code == case.code, result.output
    (only,) = result.stdout.splitlines()
    found: dict[str, Any] = json.loads(only)
    return found


def list_commands() -> set[str]:
    """Every command that `--help` lists."""
    found = set()
    for name, command in main.commands.items():
        if isinstance(command, click.Group):
            inner = command.commands.items()
            found |= {f"{name} {sub}" for sub, each in inner if not each.hidden}
        else:
            found.add(name)
    return found


def test_the_page_has_a_table_for_every_command() -> None:
    assert listed(PAGE).keys() == CASES.keys()
    assert {heading.partition(" --")[0] for heading in CASES} == list_commands()


@pytest.mark.parametrize("heading", CASES)
def test_the_page_has_the_keys_that_a_command_prints(heading: str, tmp_path: Path) -> None:
    described = listed(PAGE)[heading]
    printed: dict[str, list[object]] = defaultdict(list)
    for case in CASES[heading]:
        for key, value in values_of(print_object(case, tmp_path)):
            printed[key].append(value)
    assert sorted(described) == sorted(printed)
    wrong = [
        (key, value)
        for key, values in printed.items()
        for value in values
        if not is_as_described(value, described[key])
    ]
    assert not wrong


def test_without_a_window_state_has_no_partials(tmp_path: Path) -> None:
    case = Case("state SPEC", {"windowing.report.state.measure_state_tables": (PANES,)})
    keys = {key for key, _ in values_of(print_object(case, tmp_path))}
    absent = {key for key in listed(PAGE)["state"] if key.startswith("partials")}
    assert keys == listed(PAGE)["state"].keys() - absent


def test_without_an_engine_its_status_is_one_key(tmp_path: Path) -> None:
    found = print_object(
        Case("engine status", {"jobs.engine.control.engine_status": None}), tmp_path
    )
    assert f"`engine status` prints `{json.dumps(found)}`" in PAGE


def test_the_example_has_the_keys_of_a_run() -> None:
    (text,) = [text for language, text in FENCE.findall(PAGE) if language == "json"]
    example = json.loads(text)
    assert [*example] == [*RAN.as_json()]
    # It was a run without an alarm.
    of_members = {key for key in listed(PAGE)["run"] if key.startswith("alarms[]")}
    assert {key for key, _ in values_of(example)} == listed(PAGE)["run"].keys() - of_members
    outcomes = (example[name] for name in ("accepted", "late", "duplicate", "quarantined"))
    assert sum(outcomes) == example["read"]


def test_a_table_is_read_as_it_is_written() -> None:
    page = (
        "# One\n## Two\n| a | b |\n|---|---|\n| `x` | y |\n## `run` and `stop`\n"
        "```bash\n## `no`\n```\n| key | value |\n|---|---|\n| `a`, `b.c` | count; null at first |\n"
    )
    keys = {"a": "count; null at first", "b.c": "count; null at first"}
    assert listed(page) == {"run": keys, "stop": keys}


def test_keys_are_found_wherever_they_are() -> None:
    found = {"a": [{"b": 1}, {"c": {"hourly": {"d": None}}}], "e": {"n": 2}}
    assert [key for key, _ in values_of(found)] == ["a", "a[].b", "a[].c", "a[].c.{window}.d", "e"]


@pytest.mark.parametrize(
    ("value", "described"),
    [(None, "count"), (True, "count"), (1, "boolean"), ("x", "number"), ("x", "object by window")],
)
def test_a_value_of_another_type_is_found(value: object, described: str) -> None:
    assert not is_as_described(value, described)
