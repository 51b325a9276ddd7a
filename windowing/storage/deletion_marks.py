"""Which rows of files deletion vectors have marked as deleted. No Spark."""

from collections.abc import Iterator, Mapping
from urllib.parse import unquote

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from deltalake import DeltaTable

from windowing.location import Location

MARKED = "deletionVectors"
"""The feature of a table whose files may have such rows."""
Marks = npt.NDArray[np.bool_]
"""By row of a file whether it is still there. Rows at the end that are may be left out."""


def read_marks(table: DeltaTable) -> Mapping[str, Marks]:
    """The marks of each file of which rows are marked, by its name. It raises what delta-rs does.

    The table must have been opened for its files, and not for its log alone.
    """
    return {Location(unquote(path)).name: marks for path, marks in _list_marks(table)}


def count_marked(table: DeltaTable) -> int:
    """How many rows of a table are marked, opened as for `read_marks`."""
    return sum(len(marks) - int(marks.sum()) for _, marks in _list_marks(table))


def _list_marks(table: DeltaTable) -> Iterator[tuple[str, Marks]]:
    """The paths and marks of the files of which rows are marked."""
    # Asked for them, delta-rs refuses tables with features that don't matter for a count.
    if MARKED not in (table.protocol().reader_features or ()):
        return
    for batch in table.deletion_vectors():
        marked = pa.record_batch(batch)
        paths, kept = marked.column("filepath"), marked.column("selection_vector")
        for path, rows in zip(paths.to_pylist(), kept, strict=True):
            yield path, rows.values.to_numpy(zero_copy_only=False)


def pad_marks(marks: Marks, rows: int) -> Marks:
    """The marks of all `rows` of a file."""
    return np.pad(marks, (0, rows - len(marks)), constant_values=True)
