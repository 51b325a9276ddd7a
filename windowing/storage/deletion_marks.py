"""Which rows of files deletion vectors have marked as deleted. No Spark."""

from collections.abc import Mapping
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
    if MARKED not in (table.protocol().reader_features or ()):
        return {}
    found = {}
    for batch in table.deletion_vectors():
        marked = pa.record_batch(batch)
        paths, kept = marked.column("filepath"), marked.column("selection_vector")
        for path, rows in zip(paths.to_pylist(), kept, strict=True):
            name = Location(unquote(path)).name
            found[name] = rows.values.to_numpy(zero_copy_only=False)
    return found


def pad_marks(marks: Marks, rows: int) -> Marks:
    """The marks of all `rows` of a file."""
    return np.pad(marks, (0, rows - len(marks)), constant_values=True)
