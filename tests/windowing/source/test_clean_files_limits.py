"""As many real files and values as this process reads alone, and one more, which Spark reads."""

from datetime import timedelta
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

from tests.windowing.source.test_clean_files import ARRIVAL, FILE, GOOD, demands_of, find, write
from windowing.grid.zone import micros
from windowing.source.clean_files import MOST_FILES, MOST_VALUES, CleanBatch

PRICES = demands_of(window={"kind": "global"})
"""What is asked of a pipeline of which one column has to be read: footers tell of no NaN."""


def test_two_hundred_files_are_read_and_no_more(tmp_path: Path) -> None:
    times = [ARRIVAL - timedelta(minutes=n) for n in range(MOST_FILES + 1)]
    files = []
    for n, time in enumerate(times):
        (folder := tmp_path / str(n)).mkdir()
        files.append(write(folder, [GOOD | {"at": time}]))
    within = times[:MOST_FILES]
    expected = CleanBatch(MOST_FILES, micros(min(within)), micros(max(within)))
    assert find(PRICES, *files[:MOST_FILES]) == expected
    assert find(PRICES, *files) is None


@pytest.mark.deep
def test_fifty_million_values_are_read_and_no_more(tmp_path: Path) -> None:
    """The bad value is the last one, so it is found only where all values are read."""
    files = {}
    for name, rows, last in (
        ("good", MOST_VALUES, 2.5),
        ("bad", MOST_VALUES, float("nan")),
        ("more", MOST_VALUES + 1, 2.5),
    ):
        files[name] = tmp_path / f"{name}.parquet"
        with pq.ParquetWriter(files[name], FILE) as writer:
            writer.write_table(_repeat(rows - 1, 2.5), row_group_size=5_000_000)
            writer.write_table(_repeat(1, last))
    at_us = micros(ARRIVAL)
    assert find(PRICES, files["good"]) == CleanBatch(MOST_VALUES, at_us, at_us)
    assert find(PRICES, files["bad"]) is None
    assert find(PRICES, files["more"]) is None


def _repeat(rows: int, price: float) -> pa.Table:
    """So many equal rows but for their price."""
    values = {**GOOD, "price": price}
    columns = [pa.repeat(pa.scalar(values[field.name], field.type), rows) for field in FILE]
    table = pa.table(columns, schema=FILE)
    assert pc.count(table["price"]).as_py() == rows
    return table
