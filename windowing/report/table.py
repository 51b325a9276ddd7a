"""The facts of the report page, read from a pipeline's tables.

Nothing is written, and no value of a row is told unless keys and values were asked for. All of it
is read without Spark, except from a table with a feature that only Spark can read.
"""

from collections import Counter, defaultdict, deque
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, fields, replace
from typing import TYPE_CHECKING

import pyarrow as pa

from windowing.admit.outcomes import REFUSED
from windowing.ledger.acceptance import parse_note, parse_rollback
from windowing.ledger.evolved import OF_ERASURE
from windowing.ledger.history import LedgerHistory
from windowing.ledger.nulls import read_null_counts
from windowing.ledger.rule import (
    BACKFILL_DONE,
    CLOSE,
    COUNTS,
    DONE,
    ERASE_DONE,
    EVOLVE_DONE,
    FINISHED,
    INTENT,
    OPEN,
    PERIOD_REOPENED,
    PUBLISH,
    ROW_BY_ROW,
    RUN_OF,
    LedgerEntry,
)
from windowing.ledger.table import QUALITY, WATERMARKS, read_history, select_judged, select_outcomes
from windowing.location import Location
from windowing.report.alarms import list_alarms
from windowing.report.facts import (
    Backfilled,
    Check,
    Facts,
    Lost,
    Output,
    Publishing,
    Ran,
    Refusal,
    Validated,
)
from windowing.report.kept_rows import Asked, RowReader, read_lateness, read_revisions
from windowing.report.publications import list_publications
from windowing.report.rule import Changed, read_changed
from windowing.report.text import describe_range, list_open_steps
from windowing.spec.description import describe_window
from windowing.spec.kinds import Window
from windowing.spec.pipeline import Pipeline
from windowing.storage import control, table_figures
from windowing.storage.chosen_columns import read_values

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

OpenSession = Callable[[], "SparkSession"]
"""Returns the session, and starts it when it is called for the first time."""

_VALIDATIONS = 30
"""As many as Data Docs are kept of."""


@dataclass(frozen=True)
class _Times:
    """When a run began, and when its last batch was done.

    A batch has no time of its own for its end where the ledger has that of its begin twice.
    """

    begun_us: int | None = None
    updated_us: int | None = None


def read_facts(pipeline: Pipeline, open_session: OpenSession, asked: Asked = Asked.COUNTS) -> Facts:
    """The facts of a pipeline; before the first run all but its name is empty.

    A session is opened only for a table that can't be read without one.
    """
    past = read_history(pipeline)
    reads = _make_reader(open_session)
    return Facts(
        pipeline=pipeline,
        watermark_us=past.watermark,
        unfinished=tuple(step.what for step in list_open_steps(past)),
        runs=_read_runs(pipeline, past),
        backfills=_list_backfills(pipeline, past),
        outputs=tuple(
            _read_output(window, pipeline, past, open_session, reads, asked)
            for window in pipeline.windows
        ),
        refusals=tuple(_read_refusals(pipeline, open_session)),
        lost=find_lost(past),
        alarms=list_alarms(past, pipeline.alarms),
        validations=read_validations(pipeline, past),
        publishings=_list_publishings(pipeline, past),
        lateness=read_lateness(pipeline, reads),
    )


def sum_changes(windows: Iterable[Window], entry: LedgerEntry) -> Changed:
    """What a step changed in `windows` together."""
    return sum((read_changed(entry.counts, window.name) for window in windows), start=Changed())


def find_lost(past: LedgerHistory) -> tuple[Lost, ...]:
    """The rows that lost a value in each finished run and chunk of a backfill, oldest first."""
    found = []
    for entry in past.entries:
        if entry.step in FINISHED:
            for column, rows in read_null_counts(entry.counts).items():
                found.append(Lost(_describe_step(entry), column, rows))
    return tuple(found)


def _find_shown(pipeline: Pipeline, past: LedgerHistory) -> Mapping[int, int | None]:
    """Since when readers see each run, or a later one, in every output; the time may be unknown."""
    windows = {window.name for window in pipeline.windows}
    outputs: dict[int | None, set[str]] = {}
    waiting: deque[int] = deque()
    shown = {}
    for entry in past.entries:
        if entry.step in FINISHED:
            outputs[entry.run] = windows & entry.versions.keys()
        if entry.step == CLOSE:
            waiting.append(entry.run or 0)
        elif entry.step == PUBLISH:
            oldest = _find_oldest_run(entry, outputs.get(entry.run, ()))
            while waiting and waiting[0] <= oldest:
                shown[waiting.popleft()] = entry.at
    return shown


def _find_oldest_run(publication: LedgerEntry, outputs: Iterable[str]) -> int:
    """The oldest run that these outputs show; 0 where one of them shows none."""
    newest = publication.run or 0
    runs = []
    for output in outputs:
        is_shown = output in publication.versions
        runs.append(publication.counts.get(f"{RUN_OF}{output}", newest) if is_shown else 0)
    return min(runs, default=newest)


def _make_reader(open_session: OpenSession) -> RowReader:
    """Reads columns of a table without Spark where that can be, otherwise by a session."""

    def read(path: Location, version: int, names: tuple[str, ...]) -> pa.Table:
        try:
            return read_values(path, version, names)
        except control.TableError:
            from windowing.columns import quoted
            from windowing.storage import delta

            rows = delta.read(open_session(), path, version)
            return rows.select(*map(quoted, names)).toArrow()

    return read


def _list_backfills(pipeline: Pipeline, past: LedgerHistory) -> tuple[Backfilled, ...]:
    found = []
    for entry in past.entries:
        if entry.step == BACKFILL_DONE:
            change = sum_changes(pipeline.windows, entry)
            found.append(Backfilled(entry.run, entry.at, describe_range(entry.note), change))
    return tuple(found)


def _list_publishings(pipeline: Pipeline, past: LedgerHistory) -> tuple[Publishing, ...]:
    told = {each.number: each for each in list_publications(past, pipeline.windows)}
    names = [window.name for window in pipeline.windows]
    outputs: dict[int | None, set[str]] = {}
    found = []
    for entry in past.entries:
        if entry.step in FINISHED:
            outputs[entry.run] = {*entry.versions}
        elif entry.step == PUBLISH:
            filled = outputs.get(entry.run, set())
            held = tuple(name for name in names if _is_held(entry, name, filled))
            acceptance = parse_note(entry.note)
            reason = None if acceptance is None else acceptance.reason
            found.append(Publishing(told[entry.seq], reason, held))
    return tuple(found)


def _is_held(publication: LedgerEntry, output: str, filled: set[str]) -> bool:
    """Whether a publication has held an output back; `filled` are those that its run had filled.

    What a rollback has kept is of the run that it shows, or of a newer one.
    """
    newest = publication.run or 0
    run = publication.counts.get(f"{RUN_OF}{output}")
    if run is None:
        return output in filled - publication.versions.keys()
    if parse_rollback(publication.note) is None:
        return run <= newest
    return run < newest


def _read_runs(pipeline: Pipeline, past: LedgerHistory) -> tuple[Ran, ...]:
    closed = {entry.run: entry for entry in past.entries if entry.step == CLOSE}
    timed, shown = _time_runs(past), _find_shown(pipeline, past)
    batches = _count_batches(past)
    rows = control.read_rows(pipeline.table(WATERMARKS))
    found = []
    for row in sorted(rows, key=lambda each: int(each["run"])):
        close = closed.get(row["run"], LedgerEntry(CLOSE))
        ran = Ran(
            run=row["run"],
            arrival_us=row["arrival"],
            watermark_us=row["watermark"],
            # Rows of earlier releases have no count of erased rows.
            **{name: row.get(name) or 0 for name in COUNTS},
            changed=sum_changes(pipeline.windows, close),
            row_by_row=close.counts.get(ROW_BY_ROW, 0),
            batches=batches[row["run"]],
            last_us=row["max_event_time"],
            begun_us=timed[row["run"]].begun_us,
            updated_us=timed[row["run"]].updated_us,
            ended_us=close.at,
            shown_us=shown.get(row["run"]),
        )
        found.append(ran)
    return tuple(found)


def _count_batches(past: LedgerHistory) -> Counter[int | None]:
    """How many batches of each run are done, by its number."""
    # After a retry a batch can have two done entries, and it counts once.
    batches = {(entry.run, entry.batch) for entry in past.entries if entry.step == DONE}
    return Counter(run for run, _ in batches)


def _time_runs(past: LedgerHistory) -> Mapping[int | None, _Times]:
    """The times of each run, by its number."""
    times: defaultdict[int | None, _Times] = defaultdict(_Times)
    begun: dict[int | None, int] = {}
    for entry in past.entries:
        if entry.at is None:
            continue
        known = times[entry.run]
        if entry.step == OPEN:
            times[entry.run] = replace(known, begun_us=entry.at)
        elif entry.step == INTENT:
            begun[entry.batch] = entry.at
        elif entry.step == DONE and entry.at > begun.get(entry.batch, entry.at):
            times[entry.run] = replace(known, updated_us=entry.at)
    return times


def _read_output(
    window: Window,
    pipeline: Pipeline,
    past: LedgerHistory,
    open_session: OpenSession,
    reads: RowReader,
    asked: Asked,
) -> Output:
    path = pipeline.table(window.name)
    version = control.read_version(path)
    steps = [entry for entry in past.entries if entry.step in FINISHED]
    changes = []
    for entry in steps[::-1][:5]:
        changes.append((_describe_step(entry), sum_changes([window], entry)))
    published = None
    if past.published:
        published = past.published.versions.get(window.name)
    output = Output(
        name=window.name,
        kind=describe_window(window).text,
        rows=None if version < 0 else _count_rows(path, version, open_session),
        version=None if version < 0 else version,
        published=published,
        changes=tuple(changes),
    )
    return replace(output, revisions=read_revisions(pipeline, window, output, past, reads, asked))


def _count_rows(path: Location, version: int, open_session: OpenSession) -> int:
    try:
        return table_figures.count_rows(path, version)
    except control.TableError:
        from windowing.storage import delta

        return delta.read(open_session(), path, version).count()


def _describe_step(entry: LedgerEntry) -> str:
    if entry.step == ERASE_DONE or entry.note == OF_ERASURE:
        return "erasure"
    if entry.step == EVOLVE_DONE:
        return "change of the spec"
    if entry.step == PERIOD_REOPENED:
        return "reopening of a period"
    if entry.step == CLOSE:
        return f"run {entry.run}"
    return f"backfill of {describe_range(entry.note)}"


def _read_refusals(pipeline: Pipeline, open_session: OpenSession) -> list[Refusal]:
    """Of each table of refused rows the reasons, the most frequent ones first."""
    found = []
    for table in REFUSED:
        path = pipeline.table(table)
        if control.read_version(path) < 0:
            continue
        refusals = []
        for group in _count_groups(path, open_session):
            outcome, reason = (value or "" for value in group.values)
            refusals.append(Refusal(outcome, reason, group.rows, group.filled))
        found += sorted(refusals, key=lambda each: (-each.rows, each.outcome, each.reason))
    return found


def _count_groups(path: Location, open_session: OpenSession) -> list[table_figures.Group]:
    """The refused rows by outcome and reason, and how many of them were accepted later.

    A column of the source whose type was widened makes a table that only Spark can read.
    """
    try:
        return table_figures.count_groups(path, ("outcome", "reason"), "resolved_by")
    except control.TableError:
        return _count_groups_by_spark(path, open_session())


def _count_groups_by_spark(path: Location, spark: "SparkSession") -> list[table_figures.Group]:
    from pyspark.sql import functions as F

    from windowing.storage import own_tables

    grouped = own_tables.read(spark, path).groupBy("outcome", "reason")
    counted = grouped.agg(F.count("*"), F.count("resolved_by")).collect()
    return [table_figures.Group((row[0], row[1]), row[2], row[3]) for row in counted]


def read_validations(pipeline: Pipeline, past: LedgerHistory) -> tuple[Validated, ...]:
    """The newest validations, in the order of what they judged.

    The last one is the newest of the newest step that was validated, as other commands take it.
    """
    outcomes = control.read_contents(pipeline.table(QUALITY))
    steps = select_judged(outcomes, [e for e in past.entries if e.step in FINISHED])
    found: defaultdict[tuple[int, int], list[Check]] = defaultdict(list)
    names = [field.name for field in fields(Check)]
    for row in select_outcomes(outcomes, steps[-_VALIDATIONS:]):
        # Rows of earlier versions of Tidemark lack the last columns.
        check = Check(**{name: row[name] for name in names if name in row})
        found[row["seq"], row["checked_at"]].append(check)
    validations = []
    for seq, at in sorted(found)[-_VALIDATIONS:]:
        checks = sorted(found[seq, at], key=_failing_first)
        validations.append(Validated(checks[0].run, seq, at, tuple(checks)))
    return tuple(validations)


def _failing_first(check: Check) -> tuple[bool, str, str, str]:
    return check.success, check.severity, check.window, check.expectation
