"""Names of columns, in one place. Two underscores mark helpers that no output table shows."""

T = "__t"
"""Event time, microseconds since 1970, BIGINT."""
WHY = "__why"
"""Reason to quarantine, or null."""
OUTCOME = "__outcome"
MISSED = "__missed"
DIGEST = "__digest"
UNANSWERED = "__unanswered"
"""Whether `source.where` is NULL for a row although all that it is made from has a value."""

START, END, LAST = "window_start", "window_end", "last_event"
REVISION, RUN = "revision", "run"
PANE = "pane_start"
FIRST = "first_event"
ROWS = "rows"
"""How many events a pane, a fragment or a window holds."""
GENERATION, BATCH, JUDGED = "generation", "batch", "judged_by"
TOUCHED = "__touched"
OP = "__op"
FROM, TO = "__from", "__to"
"""The first and the last number of a run of windows."""
LOW, HIGH = "__low", "__high"
"""The first and the last number of the windows an event or a pane counts in."""
PRUNED = (START, END, LAST, PANE, FIRST, "event_time", RUN)
"""Columns whose least and greatest values a table's log keeps for each file; keys are not among them, so that no log names one."""
INDEX, CLOSED_BY = "window_index", "closed_by"
ORDER, BASE = "__order", "__base"
"""An event's place in event order, a struct; the index of the first window that a key's events are cut into."""
EVENT_TIME, INPUTS, EVENTS_JUDGED = "event_time", "inputs", "__judged"
"""Of the event buffer: when, the source columns windows need, and the watermark the event was judged by."""
META = ("outcome", "reason", "missed", "event_time", "run", "batch", "watermark", "resolved_by")
"""What a refused row says beside the columns of its source row."""


def kept_name(column: str) -> str:
    """The name of a source column in the refused tables: its own, unless that says something else there."""
    return f"source_{column}" if column.lower() in META else column
