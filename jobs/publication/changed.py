"""Which days of each output a publication changes for readers. No Spark.

versions that readers see + versions to publish -> rows that differ -> the days they begin on
"""

from collections.abc import Mapping
from functools import partial

import numpy as np
import pyarrow as pa

from jobs.microbatch.parallel import run_parallel
from jobs.publication.editions import Editions
from jobs.publication.local_days import find_days
from windowing.columns import START
from windowing.grid.days import DayRange
from windowing.ledger.changed import ChangedDays
from windowing.merge.rule import identity
from windowing.spec.kinds import Window, zone_of
from windowing.spec.pipeline import Pipeline
from windowing.storage.changed_values import find_changed_values
from windowing.storage.control import TableError
from windowing.storage.version_files import VersionFiles, list_version


def find_changed_days(
    pipeline: Pipeline, shown: Mapping[str, int], editions: Editions
) -> ChangedDays:
    """The days that change where readers see the versions `shown` now and `editions` afterwards.

    An output that they did not see changes on all days that it has. So does one of which the
    version that they see is gone.
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
    if shown == edition.version:
        return None
    columns = identity(window, pipeline.source.key)
    try:
        before = None if shown is None else list_version(pipeline.table(window.name), shown)
        starts = find_changed_values(before, edition, columns, START)
    except (TableError, FileNotFoundError):
        starts = find_changed_values(None, edition, columns, START)
    if starts is None:
        return None
    starts_us = starts.drop_null().cast(pa.int64()).to_numpy()
    return find_days(np.asarray(starts_us, np.int64), zone_of(window))
