"""Which rows of outputs and of late rows are read for the report, and how many at most.

Event times, revisions and runs are read always. Keys are read to follow a window through versions.
They are told, and aggregates are read, only where values of rows were asked for.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from enum import Enum
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from windowing.columns import END, EVENT_TIME, REVISION, RUN, START
from windowing.ledger.history import LedgerHistory
from windowing.ledger.rule import CLOSE, FINISHED
from windowing.location import Location
from windowing.merge.rule import identity, list_lacking
from windowing.report.ages import count_ages
from windowing.report.facts import Lateness, Output, Revised, Revisions
from windowing.report.revisions import (
    Picked,
    draw_shape,
    find_picked,
    measure_revisions,
    pick_most_revised,
    tell_history,
)
from windowing.report.rule import read_changed
from windowing.report.text import count
from windowing.spec.kinds import Window, zone_of
from windowing.spec.pipeline import Pipeline
from windowing.storage import control, table_figures
from windowing.storage.chosen_columns import list_columns, read_columns, read_values
from windowing.storage.file_rows import to_micros

MOST_ROWS = 2_000_000
"""Of a larger table nothing is read but counts. So many rows take 3 s and 200 MB."""
_MOST_VERSIONS = 12
_WATERMARK = "watermark"
_LATE = "_late"
NOTHING_READ = count_ages(())

RowReader = Callable[[Location, int, tuple[str, ...]], pa.Table]
"""Reads columns of a version of a table, with their types."""


class Asked(Enum):
    """Whether keys and values of rows were asked for."""

    COUNTS = "no value of a row"
    VALUES = "keys and values of rows"


def read_revisions(
    pipeline: Pipeline,
    window: Window,
    output: Output,
    past: LedgerHistory,
    reads: RowReader,
    asked: Asked,
) -> Revisions | None:
    """What the rows of an output say of corrections; None where there is no output yet."""
    if output.version is None or output.rows is None:
        return None
    if output.rows > MOST_ROWS:
        return Revisions(NOTHING_READ, unread=_explain_limit(output.rows))
    path = pipeline.table(window.name)
    lacking = list_lacking(pipeline, window, list_columns(path, output.version))
    if lacking:
        columns = ", ".join(repr(name) for name in lacking)
        return Revisions(NOTHING_READ, unread=f"another spec made its rows, without {columns}")
    names = _list_names(pipeline, window)
    newest = reads(path, output.version, names)
    times = to_micros(newest)
    published = _read_published(path, output, times)
    measured = measure_revisions(times, list_watermarks(past, window.name))
    picked = pick_most_revised(newest, identity(window, pipeline.source.key))
    most = _follow(pipeline, window, output, past, picked, asked)
    return replace(measured, most=most, shape=draw_shape(times, published))


def list_watermarks(past: LedgerHistory, output: str) -> Mapping[int, int | None]:
    """W before each run whose number only rows have that the run itself has written.

    Rows of a backfill, a changed spec or an erasure have the number of the last run. So a run after
    which one of them has updated rows of the output is left out.
    """
    closed, shared = {}, set()
    for entry in past.entries:
        if entry.step == CLOSE and entry.run is not None:
            closed[entry.run] = entry.watermark_in
        elif entry.step in FINISHED and read_changed(entry.counts, output).updated:
            shared.add(entry.run)
    return {run: watermark for run, watermark in closed.items() if run not in shared}


def read_lateness(pipeline: Pipeline, reads: RowReader) -> Lateness | None:
    """How far behind the watermark late rows were; None where none was late."""
    path = pipeline.table(_LATE)
    version = control.read_version(path)
    if version < 0:
        return None
    known_rows = _count_known_rows(path, version)
    if known_rows > MOST_ROWS:
        return Lateness(NOTHING_READ, unread=_explain_limit(known_rows))
    rows = to_micros(reads(path, version, (EVENT_TIME, _WATERMARK)))
    known = pc.and_(pc.is_valid(rows[EVENT_TIME]), pc.is_valid(rows[_WATERMARK]))
    dated = rows.filter(known)
    behind = pc.subtract(dated[_WATERMARK], dated[EVENT_TIME]).to_pylist()
    return Lateness(count_ages(behind), rows.num_rows - dated.num_rows)


def _count_known_rows(path: Location, version: int) -> int:
    """How many rows the log tells of; 0 where it has lost the statistics of a file."""
    try:
        return table_figures.count_rows(path, version)
    except control.TableError:
        return 0


def _explain_limit(rows: int) -> str:
    return f"{count(rows, 'row')} are more than the {MOST_ROWS:,} that a report reads"


def _read_published(path: Location, output: Output, newest: pa.Table) -> pa.Table | None:
    """The starts of the published rows; None where nothing is published, or the version is gone."""
    if output.published is None:
        return None
    if output.published == output.version:
        return newest
    try:
        return read_columns(path, output.published, (START,))
    except (control.TableError, FileNotFoundError):
        return None


def _follow(
    pipeline: Pipeline,
    window: Window,
    output: Output,
    past: LedgerHistory,
    picked: Picked,
    asked: Asked,
) -> tuple[Revised, ...]:
    """The picked rows with what they were in the versions that the ledger names."""
    keys: tuple[str, ...] = ()
    aggregates: tuple[str, ...] = ()
    if asked is Asked.VALUES:
        keys = pipeline.source.key
        aggregates = tuple(aggregate.name for aggregate in window.aggregates)
    names = dict.fromkeys((*picked.identity, START, END, REVISION, RUN, *aggregates))
    versions: tuple[Mapping[tuple[Any, ...], Mapping[str, Any]], ...] = ()
    if picked.rows:
        path = pipeline.table(window.name)
        numbers = _list_versions(window, output, past)
        versions = tuple(_find_in_versions(path, numbers, tuple(names), aggregates, picked))
    return tell_history(picked, versions, keys, aggregates, zone_of(window))


def _find_in_versions(
    path: Location,
    numbers: tuple[int, ...],
    names: tuple[str, ...],
    aggregates: tuple[str, ...],
    picked: Picked,
) -> Iterator[Mapping[tuple[Any, ...], Mapping[str, Any]]]:
    """The picked rows in each version; an aggregate that was added later is not among them."""
    for number in numbers:
        try:
            absent = {*aggregates} - {*list_columns(path, number)}
            there = [name for name in names if name not in absent]
            yield find_picked(picked, read_values(path, number, there))
        except (control.TableError, FileNotFoundError):
            # Maintenance and erasures remove older versions.
            continue


def _list_versions(window: Window, output: Output, past: LedgerHistory) -> tuple[int, ...]:
    """The versions that finished steps have left, oldest first, so many as may be read."""
    steps = [entry for entry in past.entries if entry.step in FINISHED]
    named = {entry.versions[window.name] for entry in steps if window.name in entry.versions}
    affordable = MOST_ROWS // max(output.rows or 1, 1)
    return tuple(sorted(named)[-min(_MOST_VERSIONS, affordable) :])


def _list_names(pipeline: Pipeline, window: Window) -> tuple[str, ...]:
    names = (*identity(window, pipeline.source.key), START, END, REVISION, RUN)
    return tuple(dict.fromkeys(names))
