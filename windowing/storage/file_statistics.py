"""The statistics of a Parquet file that a log has, from the footer of the file.

They are those that Delta would write.
"""

from collections.abc import Collection
from datetime import timedelta

from windowing.grid.zone import EPOCH
from windowing.storage.footers import ColumnFacts, Kind, ParquetFile


def read_statistics(file: ParquetFile, expected: Collection[str]) -> dict[str, object]:
    """The statistics of a file as a log has them; readers look for those of `expected` columns.

    Readers by delta-rs and PyArrow pass over all rows of a file that has statistics of some of
    these columns and lacks those of another one. So where one is neither a time nor a whole number,
    or its footer tells too little, or a year can't be expressed by text, none has any.
    """
    lows: dict[str, object] = {}
    highs: dict[str, object] = {}
    nulls: dict[str, int] = {}
    for name in expected:
        column = file.columns.get(name)
        if column is None or column.kind is Kind.OTHER or column.nulls is None:
            return {"numRecords": file.rows}
        nulls[name] = column.nulls
        if column.nulls == file.rows:
            continue
        ends = _find_log_values(column)
        if ends is None:
            return {"numRecords": file.rows}
        lows[name], highs[name] = ends
    return {
        "numRecords": file.rows,
        "minValues": lows,
        "maxValues": highs,
        "nullCount": nulls,
    }


def _find_log_values(column: ColumnFacts) -> tuple[object, object] | None:
    """The least and the greatest value as a log has them: a time is text, cut to milliseconds."""
    if column.ends is None or column.kind is Kind.INTEGER:
        return column.ends
    try:
        low, high = (_cut_time(us) for us in column.ends)
    except OverflowError:
        return None
    return low, high


def _cut_time(us: int) -> str:
    time = EPOCH + timedelta(microseconds=us)
    return time.isoformat(timespec="milliseconds").replace("+00:00", "Z")
