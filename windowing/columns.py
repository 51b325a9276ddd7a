"""Names of columns, in one place. Two underscores mark helpers that no output table shows."""

from collections.abc import Sequence

Names = Sequence[str]
"""Names of columns, such as those that make a key."""
TIME = "__t"
"""Event time, microseconds since 1970, BIGINT."""
WHY = "__why"
"""Reason to quarantine, or null."""
OUTCOME = "__outcome"
MISSED = "__missed"
DIGEST = "__digest"
UNANSWERED = "__unanswered"
"""Whether `source.where` is NULL for a row although all its inputs have a value."""

START, END, LAST = "window_start", "window_end", "last_event"
REVISION, RUN = "revision", "run"
PANE = "pane_start"
FIRST = "first_event"
ROWS = "rows"
"""How many events a pane, a fragment or a window contains."""
GENERATION, BATCH, JUDGED = "generation", "batch", "judged_by"
TOUCHED = "__touched"
OP = "__op"
INSERT, UPDATE, DELETE = "I", "U", "D"
"""What is done with a row: the values of `__op`."""
WINDOW = "__window"
"""Which of several windows a row is about: its place among those that are computed together."""
FROM, TO = "__from", "__to"
"""The first and the last number of a run of windows."""
LOW, HIGH = "__low", "__high"
"""The first and the last number of the windows that contain an event or a pane."""
PRUNED = (START, END, LAST, PANE, FIRST, "event_time", RUN)
"""Columns whose least and greatest values a table's log records for each file.

Keys are not among them, so that no log contains the value of one.
"""
INDEX, CLOSED_BY = "window_index", "closed_by"
ORDER, BASE = "__order", "__base"
"""An event's place in event order, a struct, and the index of a key's first window."""
EVENT_TIME, INPUTS, EVENTS_JUDGED = "event_time", "inputs", "__judged"
"""Of the event buffer: the event time, the source columns that windows need, and a watermark.

The watermark is the one by which the event was admitted.
"""
FILE, RESCUED = "source_file", "rescued"
"""The columns that an ingest adds: the file of a row, and as JSON what did not fit."""
RECORD = "__record"
"""The text of a record as it stands in its file."""
META = ("outcome", "reason", "missed", "event_time", "run", "batch", "watermark", "resolved_by")
"""The columns of a refused row besides those of its source row."""


def quoted(column: str) -> str:
    """The name in backticks, as Spark's expressions read a name of any characters.

    >>> quoted("odd`name")
    '`odd``name`'
    """
    doubled = column.replace("`", "``")
    return f"`{doubled}`"


def quote_name(name: str) -> str:
    """A name of Spark's catalog, each part in backticks.

    >>> quote_name("shop.orders")
    '`shop`.`orders`'
    """
    return ".".join(f"`{part}`" for part in name.split("."))


def kept_name(column: str) -> str:
    """The name of a source column in the refused tables.

    It is its own, unless the refused tables have a column of that name already.
    """
    return f"source_{column}" if column.lower() in META else column


def own_name(column: str) -> str:
    """The name of a key column in state and outputs, which is its own."""
    return column
