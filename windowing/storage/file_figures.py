"""What a log says of a file of a table. No Spark, no Arrow."""

from dataclasses import dataclass


@dataclass(frozen=True)
class FileFigures:
    """What a log says of a file: its rows, its least and greatest time in a column, its size.

    What is None is not known. Rows that a deletion vector marks are among the rows.
    """

    rows: int | None
    low_us: int | None
    high_us: int | None
    bytes: int = 0
