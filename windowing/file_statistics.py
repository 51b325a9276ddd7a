"""The statistics of a Parquet file that a log has, from the footer of the file.

They are those that Delta would write.
"""

from collections.abc import Mapping
from datetime import timedelta

import pyarrow as pa
import pyarrow.parquet as pq

from windowing.grid.zone import EPOCH


def are_kept(kind: pa.DataType) -> bool:
    """Whether a log gets statistics of such values: times of UTC and whole numbers."""
    return bool(pa.types.is_integer(kind) or kind == pa.timestamp("us", "UTC"))


def read_statistics(
    footer: pq.FileMetaData, pruned: Mapping[str, pa.DataType]
) -> dict[str, object]:
    """The statistics of a file as a log has them.

    What the footer does not tell is left out, and so are times in years that text can't express.
    """
    lows: dict[str, object] = {}
    highs: dict[str, object] = {}
    nulls: dict[str, int] = {}
    for place in range(footer.num_columns):
        name = footer.schema.column(place).path
        if name not in pruned:
            continue
        chunks = [footer.row_group(n).column(place) for n in range(footer.num_row_groups)]
        known = [chunk.statistics for chunk in chunks if chunk.statistics is not None]
        if len(known) < len(chunks) or not all(each.has_null_count for each in known):
            continue
        nulls[name] = sum(each.null_count for each in known)
        # A chunk of nulls alone has no least value.
        valued = [each for each in known if each.num_values]
        if not valued or not all(each.has_min_max for each in valued):
            continue
        try:
            low = _log_value(min(each.min_raw for each in valued), pruned[name])
            high = _log_value(max(each.max_raw for each in valued), pruned[name])
        except OverflowError:
            continue
        lows[name], highs[name] = low, high
    return {
        "numRecords": footer.num_rows,
        "minValues": lows,
        "maxValues": highs,
        "nullCount": nulls,
    }


def _log_value(value: int, kind: pa.DataType) -> object:
    """A whole number as a log has it: a time is text, cut to milliseconds."""
    if not pa.types.is_timestamp(kind):
        return value
    time = EPOCH + timedelta(microseconds=value)
    return time.isoformat(timespec="milliseconds").replace("+00:00", "Z")
