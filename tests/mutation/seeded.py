"""Bugs that were never made, put into a copy of the project one by one.

The tests named beside each must fail, or they can't be trusted.

python -m tests.mutation.seeded [TEXT...]    only bugs whose name holds a TEXT
"""

import shutil
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[2]
CRASHES = "tests/system/test_crash_points.py"
FEED = "tests/system/test_source_changes.py"
DOCTOR = "tests/jobs/diagnosis/test_diagnose.py"
EVOLVE = "tests/jobs/recompute/test_spec_evolution.py"
MAINTAIN = "tests/jobs/test_maintain.py"
BACKFILL = "tests/jobs/test_backfill.py"
ERASE = "tests/jobs/test_erase.py"
ERASE_WHERE = "tests/jobs/test_erase_where.py"
INGEST = "tests/jobs/test_ingest.py"
BY_FILES = "tests/jobs/microbatch/test_admission_by_files.py"


@dataclass(frozen=True)
class Bug:
    """In `file` the text `right`, which is there once, becomes `wrong`.

    `tests` are the arguments with which pytest must find it.
    """

    name: str
    file: str
    right: str
    wrong: str
    tests: tuple[str, ...]


def place(name: str) -> tuple[str, ...]:
    """The run that ends at a place."""
    return (CRASHES, "-k", f"finished_by_the_next and {name}")


def refill(name: str) -> tuple[str, ...]:
    """The backfill that ends at a place."""
    return (CRASHES, "-k", f"backfill_that_ends and {name}")


def landing(name: str) -> tuple[str, ...]:
    """The ingest that ends at a place."""
    return (INGEST, "-k", f"ends_at_any_place and {name}")


BUGS = (
    Bug(
        "rows of files carry no transaction",
        "windowing/storage/delta.py",
        "if transaction:",
        "if False:",
        landing("ingest.appended"),
    ),
    Bug(
        "broken records of an interrupted batch stay",
        "jobs/ingest.py",
        "table.withdraw_quarantined(spark, source, batch)",
        "pass",
        landing("ingest.quarantined"),
    ),
    Bug(
        "a data line like the header of another file is left out",
        "jobs/landing/reading.py",
        "headers = [found.lines[name] for name in some if name in found.lines]",
        "headers = [*found.lines.values()]",
        ("tests/jobs/test_broken_files.py", "-k", "csv_file"),
    ),
    Bug(
        "appends carry no transaction",
        "windowing/storage/delta.py",
        "if transaction is not None:",
        "if False:",
        place("state.stored"),
    ),
    Bug(
        "a run's watermark row is written again",
        "windowing/ledger/table.py",
        'control.replace_rows(path, _WATERMARKS_SCHEMA, [row], f"run = {run}")',
        "control.append_rows(path, _WATERMARKS_SCHEMA, [row], found.version)",
        place("run.marked"),
    ),
    Bug(
        "dedupe eats its own replay",
        "windowing/panes/table.py",
        "return ~((F.col(GENERATION) == ledger.GENERATION) & (F.col(BATCH) == self.batch))",
        "return F.lit(True)",
        place("batch.processed"),
    ),
    Bug(
        "a batch of an open run is judged by what the one before it brought",
        "jobs/microbatch/stream.py",
        "stamp = Stamp(self.number, number, intent.watermark_in)",
        "stamp = Stamp(self.number, number, "
        "self._advance_watermark(self.past.done(self.number), None))",
        (CRASHES, "-k", "judged_by_the_watermark"),
    ),
    Bug(
        "a finished batch is done again",
        "jobs/microbatch/checkpoint.py",
        "    if last >= 0:\n",
        "    if False:\n",
        # Tables are the same whether or not it is done again.
        ("tests/jobs/microbatch/test_checkpoint.py",),
    ),
    Bug(
        "a version that was read in part is taken for one that was read",
        "jobs/microbatch/checkpoint.py",
        "    return offsets is not None and is_inside_version(offsets)",
        "    return False",
        ("tests/jobs/microbatch/test_checkpoint.py",),
    ),
    Bug(
        "a batch ends by the file with the most bytes for each row",
        "windowing/source/backlog.py",
        "max(1, min(limits))",
        "max(1, *limits)",
        ("tests/windowing/source/test_backlog.py",),
    ),
    Bug(
        "sessions are read in batches whatever may be late",
        "jobs/microbatch/bound.py",
        "    if late_before is None or (low_us is not None and low_us >= late_before):",
        "    if late_before is None or low_us is not None:",
        ("tests/jobs/microbatch/test_bound.py",),
    ),
    Bug(
        "a run that is finished opens another",
        "jobs/microbatch/stream.py",
        "self.number = open_number or past.last_run + 1",
        "self.number = past.last_run + 1",
        place("batch.done"),
    ),
    Bug(
        "the watermark forgets what an earlier try accepted",
        "jobs/microbatch/stream.py",
        "done = self.past.done(self.number)\n",
        "done = self.past.done(self.number)[1:]\n",
        place("batch.done"),
    ),
    Bug(
        "a backfill that was killed is forgotten",
        "jobs/recompute/chunk.py",
        "    if left is None:\n",
        "    if left is not None:\n",
        refill("state.swapped"),
    ),
    Bug(
        "a backfill leaves the ids as they were",
        "jobs/recompute/swap.py",
        "    if event_id is None:\n        return\n",
        "    if event_id is not None:\n        return\n",
        (BACKFILL, "-k", "comes_again"),
    ),
    Bug(
        "what is published need not be validated",
        "jobs/publish.py",
        "        is_shown_already = past.shows(subject)\n",
        "        is_shown_already = True\n",
        ("tests/jobs/cli/test_commands.py",),
    ),
    Bug(
        "nobody holds the lock",
        "windowing/storage/spark_internals.py",
        "            self._lock = self._channel.tryLock()",
        "            self._lock = self._channel",
        ("tests/system/test_bad_sources.py", "-k", "second_writer"),
    ),
    Bug(
        "nobody looks at ledger and tables",
        "jobs/diagnosis/diagnose.py",
        "    if not damaged:\n"
        "        for finding in examine_tables(spark, pipeline, past):\n"
        "            yield refusal_of(pipeline, finding)\n",
        "",
        (f"{DOCTOR}::test_what_no_ledger_can_tell_is_refused",),
    ),
    Bug(
        "a batch that was begun ends where the source does by now",
        "jobs/microbatch/checkpoint.py",
        "    newest = last if begun is None else begun\n",
        "    begun, newest = None, last\n",
        ("tests/system/test_repeated_batches.py", "-k", "rows_it_had"),
    ),
    Bug(
        "compaction forgets what came late",
        "jobs/maintenance/compaction.py",
        "    return F.col(JUDGED).isNull() | (first_end > F.unix_micros(JUDGED))",
        "    return F.lit(True) | (first_end > 0)",
        (MAINTAIN, "-k", "late_for_some"),
    ),
    Bug(
        "Delta forgets what readers are pointed at",
        "jobs/maintain.py",
        "    if reach is not None and ",
        "    if reach is None and ",
        (MAINTAIN, "-k", "long_ago"),
    ),
    Bug(
        "corrections of a killed run are forgotten",
        "windowing/source/rule.py",
        "for batch, ranges in noted.items()",
        "for batch, ranges in [*noted.items()][-1:]",
        (FEED, "-k", "ends_before"),
    ),
    Bug(
        "a new window takes in what was refused",
        "jobs/recompute/accepted.py",
        "history.where(LIVE)",
        "history.where(F.lit(True))",
        (EVOLVE,),
    ),
    Bug(
        "a chunk is swapped in whatever has come since it was read",
        "jobs/recompute/staging.py",
        "    if _is_still_current(spark, pipeline, past, staged):",
        "    if True:",
        (BACKFILL, "-k", "runs_go_on or grew"),
    ),
    Bug(
        "a backfill that goes on passes over rows that came since",
        "jobs/backfill.py",
        "    return not refused_after(batch, ended.run or 0, chunk)\n",
        "    return True\n",
        (BACKFILL, "-k", "many_chunks"),
    ),
    Bug(
        "a check repairs what it finds",
        "jobs/reconcile.py",
        "_backfill_copy(spark, copy, of_copy, chunks, progress)",
        "_backfill_copy(spark, pipeline, past, chunks, progress)",
        (BACKFILL, "-k", "check_says"),
    ),
    Bug(
        "a backfill accepts an erased key",
        "jobs/recompute/accepted.py",
        "    return add_event_time(batch, without_erased(rows, batch.keys, batch.erased))",
        "    return add_event_time(batch, rows)",
        (ERASE, "-k", "nowhere or next_run or backfill_leaves"),
    ),
    Bug(
        "a run accepts an erased key",
        "jobs/microbatch/admission.py",
        "    others = without_erased(wider, batch.keys, batch.erased)",
        "    others = wider",
        (BY_FILES, "-k", "erased"),
    ),
    Bug(
        "the files of a batch speak for rows that are left out",
        "jobs/microbatch/admission.py",
        "_admit_others(batch, others, find_no_files)",
        "_admit_others(batch, others, find_files)",
        (BY_FILES, "-k", "erased"),
    ),
    Bug(
        "an erasure is not remembered",
        "jobs/erase.py",
        '        note=note_erased(own.salt or "", erasure),',
        "",
        (ERASE, "-k", "nowhere or next_run"),
    ),
    Bug(
        "the intent of an erasure follows what it deletes",
        "windowing/ledger/rule.py",
        "for entry in self._entries_of(ERASE_INTENT, ERASE_LIST))",
        "for entry in self._entries_of(ERASE_DONE, ERASE_LIST))",
        (ERASE, "-k", "nowhere or next_run"),
    ),
    Bug(
        "a decimal key has a digest of its scale",
        "windowing/admit/erased.py",
        """return "n", F.regexp_replace(without_zeros, r"\\.$", "")""",
        """return "n", value.cast("string")""",
        ("tests/windowing/admit/test_admit_erased.py",),
    ),
    Bug(
        "a run does not read which keys were erased",
        "windowing/ledger/selection.py",
        """    yield from _of(entries, ERASE_INTENT, ERASE_LIST)["seq"].chunks""",
        "    yield from ()",
        ("tests/windowing/ledger/test_ledger_selection.py",),
    ),
    Bug(
        "an erasure of a value rebuilds state only when it is rerun",
        "jobs/recompute/spec_evolution.py",
        "[intent] if erasing is None else [erasing, intent])",
        "[intent] if erasing is None else [erasing])",
        (ERASE_WHERE, "-k", "nowhere"),
    ),
    Bug(
        "an erased value leaves its event ids",
        "jobs/recompute/spec_evolution.py",
        "    of_ids = _delete_ids_of_values(batch, past)",
        "    of_ids: dict[str, int] = {}",
        (ERASE_WHERE, "-k", "nowhere or reports"),
    ),
    Bug(
        "refused rows with an erased value stay",
        "jobs/maintenance/erasure.py",
        "        found[table] = _delete_erased(batch, table, due, kept_name)",
        "        found[table] = _delete_erased(batch, table, of_keys, kept_name)",
        (ERASE_WHERE, "-k", "nowhere"),
    ),
    Bug(
        "state of removed windows keeps an erased value",
        "jobs/maintenance/erasure.py",
        "        if due != of_keys and is_internal(table):",
        "        if due == of_keys and is_internal(table):",
        (ERASE_WHERE, "-k", "nowhere"),
    ),
    Bug(
        "rows of an erased key that the source deletes are reprocessed",
        "jobs/microbatch/source_changes.py",
        "    others = without_erased(events, batch.keys, batch.erased)",
        "    others = events",
        ("tests/system/test_erased_keys_of_any_type.py", "-k", "reprocesses_nothing"),
    ),
    Bug(
        "a commit is judged by its own events",
        "windowing/advise/history.py",
        "base = np.roll(find_highest(history), 1)",
        "base = find_highest(history)",
        ("tests/windowing/advise/test_advise_planted.py",),
    ),
    Bug(
        "rows that OPTIMIZE moves arrive again",
        "windowing/storage/logged_commit.py",
        'is_moved=not file.get("dataChange", True)',
        "is_moved=False",
        ("tests/windowing/advise/test_advise_table.py",),
    ),
    Bug(
        "windows that are not complete yet are taken for complete",
        "windowing/advise/share.py",
        "    at_risk = np.cumsum(counts) - np.searchsorted(reached, ages)",
        "    at_risk = np.cumsum(counts) + 0 * np.searchsorted(reached, ages)",
        ("tests/windowing/advise/test_advise_share.py",),
    ),
)


def main(*texts: str) -> int:
    """How many bugs were not found."""
    chosen = [bug for bug in BUGS if not texts or any(text in bug.name for text in texts)]
    missed = 0
    for bug in chosen:
        began = time.monotonic()
        found = _found(bug)
        missed += not found
        seconds = time.monotonic() - began
        verdict = "found" if found else "MISSED"
        print(f"{verdict:<7}{seconds:6.0f} s  {bug.name}", flush=True)
    print(f"{len(chosen) - missed} of {len(chosen)} bugs found")
    return missed


def _found(bug: Bug) -> bool:
    """Whether the tests, which pass without the bug, fail with it; they have to run."""
    if not _pass_unbroken(bug.tests):
        raise SystemExit(f"{bug.name}: {' '.join(bug.tests)} fails without it, too")
    with tempfile.TemporaryDirectory(prefix="seeded-") as home:
        _copy(Path(home))
        file = Path(home) / bug.file
        text = file.read_text()
        if text.count(bug.right) != 1:
            raise SystemExit(
                f"{bug.name}: {bug.file} does not hold its text once; "
                "the code has changed, so must the bug"
            )
        file.write_text(text.replace(bug.right, bug.wrong))
        return not _pass(bug.tests, home)


@cache
def _pass_unbroken(tests: tuple[str, ...]) -> bool:
    """Whether tests pass in a copy without a bug."""
    with tempfile.TemporaryDirectory(prefix="unbroken-") as home:
        _copy(Path(home))
        return _pass(tests, home)


def _pass(tests: tuple[str, ...], home: str) -> bool:
    """Whether tests pass in the copy at `home`."""
    command = [
        str(ROOT / ".venv" / "bin" / "python"),
        *("-m", "pytest", "-x", "-q", "-p", "no:cacheprovider"),
        *("-m", "not wheel and not s3 and not hdfs and not cluster and not live"),
        *tests,
    ]
    ended = subprocess.run(
        command, cwd=home, capture_output=True, text=True, check=False, env=_environment(home)
    )
    if ended.returncode not in (0, 1):
        said = f"{ended.stdout[-2000:]}{ended.stderr[-2000:]}"
        raise SystemExit(f"{' '.join(tests)}: the tests did not run:\n{said}")
    return ended.returncode == 0


def _environment(home: str) -> dict[str, str]:
    return {
        "PATH": "/usr/local/bin:/usr/bin:/bin",
        "HOME": str(Path.home()),
        "TZ": "UTC",
        "PYTHONPATH": home,
    }


def _copy(home: Path) -> None:
    listed = subprocess.run(
        ["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=True
    ).stdout
    for name in filter(None, listed.split("\0")):
        if (ROOT / name).is_file():
            (home / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, home / name)
    (home / ".venv").symlink_to(ROOT / ".venv")


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
