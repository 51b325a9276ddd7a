"""Which days of each output a publication changes for readers. No Spark.

versions that readers see + versions to publish -> rows that differ -> the days they begin on
"""

from collections.abc import Iterator, Mapping
from contextlib import suppress
from functools import partial

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from jobs.microbatch.parallel import run_parallel
from jobs.publication.editions import Editions
from jobs.publication.local_days import find_days
from windowing.columns import END, START
from windowing.grid.days import DayRange
from windowing.ledger.changed import ChangedDays
from windowing.merge.rule import identity, published_name
from windowing.spec.kinds import Window, zone_of
from windowing.spec.pipeline import Pipeline
from windowing.storage.changed_values import find_changed_values
from windowing.storage.control import TableError
from windowing.storage.kept_open import has_commit, newest_version
from windowing.storage.version_files import VersionFiles, list_version


def find_changed_days(
    pipeline: Pipeline, shown: Mapping[str, int], editions: Editions
) -> ChangedDays:
    """The days that change where readers see the versions `shown` now and `editions` afterwards.

    Where the version that they see is not named or is gone, it is what the published table has. An
    output that has none changes on all days that it has.
    """
    windows = [window for window in pipeline.windows if window.name in editions]
    steps = [
        partial(_find_days, pipeline, window, shown.get(window.name), editions[window.name])
        for window in windows
    ]
    found = zip(windows, run_parallel(steps), strict=True)
    return {window.name: days for window, days in found if days is not None}


def _find_days(
    pipeline: Pipeline, window: Window, shown: int | None, edition: VersionFiles
) -> tuple[DayRange, ...] | None:
    """The days of one output; None where no row differs."""
    starts = _find_changed(pipeline, window, shown, edition, START)
    if starts is None:
        return None
    starts_us = starts.drop_null().cast(pa.int64()).to_numpy()
    return find_days(np.asarray(starts_us, np.int64), zone_of(window))


def find_first_changed_end(
    pipeline: Pipeline, window: Window, shown: int | None, edition: VersionFiles
) -> int | None:
    """When the first window ends, in microseconds, whose row readers see otherwise than `edition`.

    `shown` is the version that they see, or None. None where no row differs.
    """
    ends = _find_changed(pipeline, window, shown, edition, END)
    first = None if ends is None else pc.min(ends.cast(pa.int64())).as_py()
    return None if first is None else int(first)


def _find_changed(
    pipeline: Pipeline, window: Window, shown: int | None, edition: VersionFiles, column: str
) -> pa.ChunkedArray | None:
    """The values of `column`, a time, in the rows that differ; None where none does."""
    if shown == edition.version:
        return None
    columns = identity(window, pipeline.source.key)
    for before in _list_seen(pipeline, window, shown):
        try:
            return find_changed_values(before, edition, columns, column)
        except (TableError, FileNotFoundError):
            # A file of it is gone.
            continue
    return None


def _list_seen(
    pipeline: Pipeline, window: Window, shown: int | None
) -> Iterator[VersionFiles | None]:
    """What readers see of an output, from where it is best compared; at last None, for nothing."""
    if shown is not None:
        with suppress(TableError):
            yield list_version(pipeline.table(window.name), shown)
    published = pipeline.table(published_name(window.name))
    if has_commit(published):
        with suppress(TableError):
            yield list_version(published, newest_version(published))
    yield None
