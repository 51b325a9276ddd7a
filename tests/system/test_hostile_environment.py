"""What users, files and hosts may do, without a JVM.

Directories of others, closed streams, values in errors, far-off times.
"""

import errno
import os
import subprocess
import sys
import time
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from json import dumps
from pathlib import Path
from typing import Any

import pytest
from click.testing import Result
from pyspark.errors import AnalysisException, NumberFormatException

from jobs.cli.errors import explain_error
from jobs.recompute.plan import CHUNK_US, chunks_of, must_be_the_same
from tests.jobs.cli.test_usage_errors import tidemark
from tests.windowing.spec.specs import changed, refused, with_window
from windowing.admit.rule import advance_watermark, lateness_cuts
from windowing.errors import SpecError, UsageError
from windowing.grid.zone import FIRST_US, LAST_US, micros, moment
from windowing.ledger.history import LedgerHistory
from windowing.ledger.rule import KEPT_STATE, MAX_TIME, MIN_TIME, LedgerEntry
from windowing.spec.duration import DAY
from windowing.spec.fingerprint import parts
from windowing.spec.load import load_pipeline

SPEC = """
name: trips
lake: lake
source: {table: lake/bronze/trips, event_time: at, key: [place]}
watermark: {max_future: 1 hour}
aggregates: {n: count()}
windows:
  hourly: {kind: tumbling, size: 1 hour}
"""
TRANSCRIPT = "spec: trips.yaml\nsteps:\n  - input: [{place: a, at: 2020-01-01 10:05}]\n"
ASKED = "tidemark: a session was asked for"


@pytest.fixture(autouse=True)
def no_jvm(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever asks for a session here is told so."""

    def refuse(_: object) -> None:
        raise UsageError("a session was asked for")

    monkeypatch.setattr("jobs.cli.spark.start_session", refuse)


@pytest.fixture
def spec(tmp_path: Path) -> str:
    file = tmp_path / "trips.yaml"
    file.write_text(SPEC)
    return str(file)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """The pipeline's directory, which is not there yet."""
    (tmp_path / "lake").mkdir()
    return tmp_path / "lake" / "trips"


def said(result: Result) -> str:
    """The one sentence on stderr of a command that ends with 2."""
    assert (result.exit_code, result.stdout) == (2, "")
    assert len(result.stderr.splitlines()) == 1, result.stderr
    return result.stderr.strip()


def filled(directory: Path, *files: str) -> None:
    for file in files:
        (directory / file).parent.mkdir(parents=True, exist_ok=True)
        (directory / file).write_text(f"what {file} holds")


def held(directory: Path) -> dict[str, str | None]:
    """Every entry below a directory and, of files, what it holds."""
    return {
        str(p.relative_to(directory)): p.read_text() if p.is_file() else None
        for p in directory.rglob("*")
    }


LEDGER, PANES, HOURLY = (
    "_ledger/_delta_log/0",
    "_panes_1h/_delta_log/0",
    "hourly/_delta_log/0",
)
ASKING = pytest.mark.parametrize("yes", [(), ("--yes",)], ids=["asks", "yes"])


@ASKING
@pytest.mark.parametrize(
    "files",
    [("notes.txt",), ("photos/1.jpg", ".hidden"), (HOURLY,), ("a", "_lock"), ("_backup/a",)],
)
def test_reset_leaves_a_directory_alone_that_no_run_has_made(
    files: tuple[str, ...], yes: tuple[str], spec: str, root: Path
) -> None:
    filled(root, *files)
    before = held(root)
    sentence = said(tidemark("reset", spec, *yes))
    assert f"no ledger or state of trips is in {root}, but " in sentence
    assert all(name in sentence for name in {file.partition("/")[0] for file in files} - {"_lock"})
    assert held(root) == before


@pytest.mark.parametrize(
    ("made", "what"),
    [
        ((LEDGER, HOURLY), "2 tables, hourly among them"),
        ((PANES,), "1 table"),
    ],
)
def test_reset_names_what_no_run_has_made_before_it_deletes_it(
    made: tuple[str, ...], what: str, spec: str, root: Path
) -> None:
    filled(root, *made, "thesis.txt")
    before = held(root)
    sentence = said(tidemark("reset", spec))
    assert sentence.startswith(
        f"tidemark: reset would delete {what} and what no run has made: thesis.txt ("
    )
    assert sentence.endswith(
        f"in {root}; it asks first, and there is no terminal to ask on: give --yes"
    )
    assert held(root) == before
    done = tidemark("reset", spec, "--yes")
    assert (done.exit_code, done.stderr, list(root.parent.iterdir())) == (0, "", [])
    assert done.stdout.startswith(f"trips: {what} and what no run has made: thesis.txt (")


@ASKING
@pytest.mark.parametrize("there", [True, False])
def test_reset_follows_no_link(
    there: bool,  # noqa: FBT001
    yes: tuple[str],
    spec: str,
    root: Path,
    tmp_path: Path,
) -> None:
    target = tmp_path / "elsewhere"
    if there:
        filled(target, LEDGER, "hourly/part-1")
    root.symlink_to(target)
    before = held(tmp_path)
    assert f"{root} is a link to {target}; reset only deletes real directories" in said(
        tidemark("reset", spec, *yes)
    )
    assert root.is_symlink()
    assert (held(tmp_path), target.exists()) == (before, there)


@pytest.mark.parametrize("there", [True, False])
def test_reset_of_nothing_says_so(there: bool, spec: str, root: Path) -> None:  # noqa: FBT001
    if there:
        root.mkdir()
    result = tidemark("reset", spec)
    assert (result.exit_code, result.stdout, result.stderr) == (0, "trips: nothing to delete\n", "")


@pytest.mark.parametrize("ahead", [timedelta(hours=2), timedelta(days=365_000)])
def test_a_run_that_arrives_in_the_future_ends_before_it_begins(
    ahead: timedelta, spec: str, tmp_path: Path
) -> None:
    arrival = (datetime.now(UTC) + ahead).isoformat()
    sentence = said(tidemark("run", spec, "--arrival", arrival))
    assert (
        "is more than watermark.max_future ahead of this host's clock; "
        "every later run would reuse that arrival time until the host clock reaches it" in sentence
    )
    assert list(tmp_path.iterdir()) == [Path(spec)]


@pytest.mark.parametrize("ahead", [timedelta(minutes=30), timedelta(0), timedelta(days=-3650)])
def test_a_run_may_arrive_earlier_and_a_little_later(ahead: timedelta, spec: str) -> None:
    assert (
        said(tidemark("run", spec, "--arrival", (datetime.now(UTC) + ahead).isoformat())) == ASKED
    )


NO_SPACE = "No space left on device"
FULL = f"tidemark: the result can't be written to standard output ({NO_SPACE})\n"
UNSAID = f"tidemark: unexpected OSError: [Errno 28] {NO_SPACE}; run again with --debug for more\n"
UNASKED = (
    "all rows of one key and every older version of all tables; it asks first, and there is no "
    "terminal to ask on: give --yes\n"
)


@pytest.mark.parametrize(
    ("words", "streams", "code", "sentence"),
    [
        ("--help", ">&-", 0, ""),
        ("--help", "<&- >&-", 0, ""),
        ("--help", "<&- >&- 2>&-", 0, ""),
        pytest.param(
            "--help",
            ">/dev/full",
            1,
            FULL,
            marks=pytest.mark.skipif(not os.path.exists("/dev/full"), reason="no /dev/full"),
        ),
        ("reset {spec}", ">/dev/full", 1, UNSAID),
        ("erase {spec} --key x", "<&-", 2, f"tidemark: erase would delete {UNASKED}"),
        ("erase {spec} --key x", "<&- >&-", 2, f"tidemark: erase would delete {UNASKED}"),
        ("erase {spec} --key x", "2>&-", 2, ""),
        ("reset {spec} --json", "<&- >&-", 0, "trips: nothing to delete\n"),
    ],
)
def test_streams_that_are_closed_or_full(
    words: str, streams: str, code: int, sentence: str, spec: str
) -> None:
    command = (
        f"unset PYTHONUNBUFFERED; '{sys.executable}' -m jobs {words.format(spec=spec)} {streams}"
    )
    ended = subprocess.run(
        ["sh", "-c", command],
        check=False,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert (ended.returncode, ended.stdout, ended.stderr) == (code, "", sentence)


def test_what_is_no_file_is_no_transcript(spec: str, tmp_path: Path) -> None:
    (tmp_path / "foo.yaml").mkdir()
    (tmp_path / "x.yaml").symlink_to("nowhere")
    (tmp_path / "round.yaml").symlink_to("round.yaml")
    assert said(tidemark("test", str(tmp_path))).startswith(
        f"tidemark: {tmp_path} holds no transcript; "
    )
    assert said(tidemark("test", str(tmp_path / "foo.yaml"))).startswith(
        f"tidemark: {tmp_path}/foo.yaml holds no transcript; "
    )
    assert said(tidemark("test", str(tmp_path / "x.yaml"))).startswith(
        f"tidemark: {tmp_path}/x.yaml: can't be read (No such file"
    )
    (tmp_path / "right.yaml").write_text(TRANSCRIPT)
    assert said(tidemark("test", str(tmp_path))) == ASKED, "the one that is right would be played"


@pytest.mark.usefixtures("spec")
def test_a_file_that_may_not_be_read_may_be_a_transcript(tmp_path: Path) -> None:
    (tmp_path / "secret.yaml").touch(mode=0)
    if os.access(tmp_path / "secret.yaml", os.R_OK):
        pytest.skip("whoever runs this may read everything")
    assert said(tidemark("test", str(tmp_path))).startswith(
        f"tidemark: {tmp_path}/secret.yaml: can't be read (Permission denied)"
    )


@pytest.mark.usefixtures("spec")
@pytest.mark.parametrize(
    "text",
    [
        b"steps: [",
        b"steps: []\nname: \xe9",
        b"steps: " + b"[" * 1000,
        b"steps: []\n#" + b"x" * 300_000,
    ],
)
def test_a_broken_transcript_of_a_directory_is_named(text: bytes, tmp_path: Path) -> None:
    (tmp_path / "broken.yaml").write_bytes(text)
    (tmp_path / "right.yaml").write_text(TRANSCRIPT)
    assert said(tidemark("test", str(tmp_path))).startswith(f"tidemark: {tmp_path}/broken.yaml: ")


def test_a_java_home_without_java_is_named(
    spec: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    java = tmp_path / "nowhere"
    monkeypatch.setenv("JAVA_HOME", str(java))
    ended = subprocess.run(
        [sys.executable, "-m", "jobs", "run", spec],
        check=False,
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert (ended.returncode, ended.stdout) == (2, "")
    assert ended.stderr == (
        f"tidemark: JAVA_HOME is {java}, and there is no {java}/bin/java; name the directory "
        f"of a Java 17 to 22\n"
    )


class Thrown:
    """A stand-in for a throwable of the JVM."""

    def __init__(self, text: str, cause: "Thrown | None" = None) -> None:
        self.text, self.cause = text, cause

    def getCause(self) -> "Thrown | None":
        return self.cause

    def toString(self) -> str:
        return f"{self.text}\n\tat org.apache.zz-key(Zz.scala:1)"


class JavaError(Exception):
    """What a bridge to the JVM raises."""

    def __init__(self, thrown: Thrown) -> None:
        super().__init__("An error occurred while calling o1.save.\n: zz-key")
        self.java_exception = thrown


CAST = (
    "[CAST_INVALID_INPUT] The value 'zz-key' of the type 'STRING' cannot be cast to 'BIGINT'. "
    "SQLSTATE: 22018\n== SQL =="
)
NO_PARQUET = "file:/lake/who=zz-key/part-1.parquet is not a Parquet file"


@pytest.mark.parametrize(
    ("error", "sentence"),
    [
        (NumberFormatException(CAST), "NumberFormatException: [CAST_INVALID_INPUT]"),
        (
            RuntimeError("the disk 'sda' [NVME] is full\nof zz-key"),
            "RuntimeError: the disk 'sda' [NVME] is full",
        ),
        (JavaError(Thrown(f"a.b.C: {NO_PARQUET}")), "C"),
        (JavaError(Thrown(NO_PARQUET)), "JavaError"),
        (
            JavaError(
                Thrown(
                    "a.b.Outer: zz-key",
                    Thrown("a.b.Middle: zz-key", Thrown("a.b.Inner: no 'zz-key'!")),
                )
            ),
            "Inner",
        ),
        (JavaError(Thrown("a.b.C: Permission denied")), "C"),
        (AnalysisException("no zz-key [ZZ_KEY] is there"), "AnalysisException"),
    ],
)
def test_an_unexpected_error_names_no_value_of_a_row(error: Exception, sentence: str) -> None:
    failure = explain_error(error)
    assert (failure.code, failure.message) == (
        1,
        f"unexpected {sentence}; run again with --debug for more",
    )


@pytest.mark.parametrize(
    ("error", "sentence"),
    [
        (
            JavaError(
                Thrown("a.B: x", Thrown("java.io.IOException: /x=zz-key: Permission denied"))
            ),
            "Permission denied; let the user of this process read and write there",
        ),
        (
            OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), "/lake/p/_seen"),
            "/lake/p/_seen: No space left on device; make room on the disk",
        ),
    ],
)
def test_an_error_of_the_host_says_what_to_do(error: Exception, sentence: str) -> None:
    failure = explain_error(error)
    again = ", then run again, which finishes what was begun"
    assert (failure.code, failure.message) == (1, f"{sentence}{again}")


@pytest.mark.parametrize(
    ("wrong", "field", "sentence"),
    [
        (
            with_window("sliding", size="3650000 days", slide="1 microsecond"),
            "windows.w.slide",
            "into more than 1,000,000 windows",
        ),
        (
            changed(**{"aggregates": {"a.b": "count()"}}),
            "aggregates.a.b",
            "'a.b' can't be an output column; ",
        ),
        (
            changed(**{"source/columns": {"a.b": "delay"}}),
            "source.columns.a.b",
            "'a.b' can't be a column; ",
        ),
    ],
)
def test_specs_that_no_table_could_hold(wrong: dict[str, Any], field: str, sentence: str) -> None:
    error = refused(wrong)
    assert error.field == field
    assert sentence in error.message


@pytest.mark.timeout(30)
@pytest.mark.parametrize(
    "text",
    ["flights >=" + " " * 100_000, " " * 100_000, "flights >= " + "9" * 100_000, "f" * 100_000],
)
def test_a_condition_of_a_hundred_thousand_characters_is_refused_at_once(text: str) -> None:
    began = time.perf_counter()
    assert refused(changed(**{"windows/hourly/having": text})).field == "windows.hourly.having"
    assert time.perf_counter() - began < 1


@pytest.mark.parametrize(
    ("window", "field"),
    [
        ("{kind: count, count: N}", "count"),
        ("{kind: delta, attribute: x, delta: N}", "delta"),
        ("{kind: tumbling, size: N}", "size"),
    ],
)
def test_a_number_of_thousands_of_digits_is_refused_with_file_and_field(
    window: str, field: str, spec: str
) -> None:
    Path(spec).write_text(SPEC + f"  last: {window.replace('N', '0x' + 'f' * 4000)}\n")
    with pytest.raises(SpecError) as caught:
        load_pipeline(spec)
    assert (caught.value.file, caught.value.field) == (spec, f"windows.last.{field}")
    assert caught.value.message.startswith("a number of thousands of digits ")


PIPELINE = load_pipeline(changed())
EVER = datetime(1, 1, 1, tzinfo=UTC), datetime(9999, 12, 31, 23, 59, 59, 999_999, UTC)


@pytest.mark.parametrize("far", [1, 2**63, 10**30])
def test_moments_end_where_the_calendar_does(far: int) -> None:
    first, last = EVER
    assert (moment(micros(first)), moment(micros(last))) == (first, last)
    assert (moment(micros(first) - far), moment(micros(last) + far)) == (first, last)
    assert moment(micros(last) - 1) == last - timedelta(microseconds=1)


@pytest.mark.parametrize(
    ("before", "newest", "delay", "after"),
    [
        (None, FIRST_US + 5, 10, FIRST_US),
        (FIRST_US + 3, FIRST_US + 5, 10, FIRST_US + 3),
        (None, FIRST_US + 50, 10, FIRST_US + 40),
    ],
)
def test_the_watermark_never_goes_before_the_first_event_time(
    before: int | None, newest: int, delay: int, after: int
) -> None:
    assert advance_watermark(before, newest, 0, delay) == after


@pytest.mark.parametrize("zone", ["UTC", "America/New_York", "Asia/Tokyo"])
@pytest.mark.parametrize("size", ["1 month", "1 year", "1 day"])
@pytest.mark.parametrize("watermark", [FIRST_US, 0, micros(datetime(2013, 3, 10, tzinfo=UTC))])
def test_a_lateness_of_millennia_makes_nothing_late(size: str, zone: str, watermark: int) -> None:
    windows = {"w": {"kind": "tumbling", "size": size, "zone": zone}}
    pipeline = load_pipeline(
        changed(windows=windows, **{"watermark/allowed_lateness": "1000000 days"})
    )
    assert lateness_cuts(pipeline, watermark) == ()


MAY = micros(datetime(2013, 5, 1, tzinfo=UTC))


def heard(*days: int) -> LedgerHistory:
    """A story of batches whose events lie between two days each, counted from May 2013."""
    told = [
        {MIN_TIME: MAY + first * DAY, MAX_TIME: MAY + last * DAY} for first, last in pairwise(days)
    ]
    return LedgerHistory(
        tuple(LedgerEntry("done", seq=n, batch=n, counts=counts) for n, counts in enumerate(told))
    )


@pytest.mark.parametrize(
    ("past", "least", "most"),
    [
        (LedgerHistory(), 1, 1),
        (heard(0, 30), 1, 3),
        (heard(3, 9, 25), 1, 3),
        (heard(0, 310), 10, 12),
    ],
)
def test_a_backfill_of_all_times_has_chunks_only_where_there_are_events(
    past: LedgerHistory, least: int, most: int
) -> None:
    chunks = chunks_of(PIPELINE, *EVER, past)
    assert least <= len(chunks) <= most
    assert (chunks[0][0], chunks[-1][1]) == (FIRST_US, LAST_US + 1), "no event can be elsewhere"
    assert all(before[1] == after[0] for before, after in pairwise(chunks))
    assert all(low < high for low, high in chunks)
    assert all(high - low == CHUNK_US for low, high in chunks[1:-1])


@pytest.mark.parametrize(("first", "last"), [(0, 10), (90, 100)])
def test_a_backfill_beside_all_events_is_one_chunk(first: int, last: int) -> None:
    low, high = MAY + first * DAY, MAY + last * DAY
    assert chunks_of(PIPELINE, moment(low), moment(high), heard(40, 70)) == ((low, high),)


BEGUN = LedgerEntry("open", note=dumps({"types": {}, "parts": parts(PIPELINE)}))


def story(text: str) -> LedgerHistory:
    """What a first run began, and steps such as close:2 after it.

    Each comes with the version that the output then has.
    """
    steps = [word.partition(":") for word in text.split()]
    told = [
        LedgerEntry(step, seq=n, at=n, versions={"hourly": int(version or 0)})
        for n, (step, _, version) in enumerate(steps, 1)
    ]
    return LedgerHistory((BEGUN, *told))


@pytest.mark.parametrize(
    ("steps", "expected"),
    [
        ("", []),
        ("done:1 close:1", [2]),
        ("close:1 close:2 backfill_done:3 evolve_done:4", [1, 2, 3, 4]),
        ("close:1 publish:1", []),
        ("close:1 publish:1 open done:2 close:2 maintain_done:3", [5]),
        ("close:1 close:2 publish:1", [2]),
        ("close:1 close:1 close:2 publish:1", [3]),
        ("close:1 publish:1 erase_intent publish:2", []),
        ("close:1 publish:1 erase_intent publish:2 erase_done:2", []),
        ("close:1 publish:1 erase_intent publish:2 erase_done:2 close:3", [6]),
    ],
)
def test_what_readers_have_not_seen(steps: str, expected: list[int]) -> None:
    assert [entry.seq for entry in story(steps).since_shown("hourly")] == expected


KEEPS = LedgerEntry("maintain_intent", counts={KEPT_STATE: 0})


@pytest.mark.parametrize(
    "entries",
    [
        (),
        (
            LedgerEntry("maintain_intent"),
            LedgerEntry("maintain_done", counts={"_late": 7, "hourly": 1}),
        ),
    ],
)
def test_panes_may_be_gone_since_a_maintenance_kept_some_only(
    entries: tuple[LedgerEntry, ...],
) -> None:
    assert not LedgerHistory((*entries, LedgerEntry("close"))).state_may_be_expired
    assert (
        LedgerHistory((*entries, KEEPS)).state_may_be_expired
        and LedgerHistory(
            (*entries, LedgerEntry("maintain_done", counts={"_panes_1h": 0}))
        ).state_may_be_expired
    )
    assert LedgerHistory((KEEPS, *entries, LedgerEntry("close"))).state_may_be_expired, (
        "also where a later spec keeps all"
    )


@pytest.mark.parametrize(
    "since", ["erase_done", "close erase_done close", "erase_intent erase_done"]
)
@pytest.mark.parametrize("before", ["close", "close erase_intent"])
def test_a_key_that_was_erased_since_ends_a_backfill(before: str, since: str) -> None:
    with pytest.raises(
        UsageError,
        match="^departures had a key or a value erased while this backfill was running.*"
        "rerun the backfill$",
    ):
        must_be_the_same(PIPELINE, story(before), story(f"{before} {since}"))


def test_a_key_that_was_erased_before_ends_none() -> None:
    must_be_the_same(
        PIPELINE,
        story("close erase_intent erase_done"),
        story("close erase_intent erase_done close"),
    )
