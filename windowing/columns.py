"""Names of columns, in one place. Two underscores mark helpers that no output table shows."""

T = "__t"
"""Event time, microseconds since 1970, BIGINT."""
WHY = "__why"
"""Reason to quarantine, or null."""
OUTCOME = "__outcome"
MISSED = "__missed"
DIGEST = "__digest"

START, END, LAST = "window_start", "window_end", "last_event"
REVISION, RUN = "revision", "run"
PANE = "pane_start"
FIRST = "first_event"
ROWS = "rows"
"""How many events a pane, a fragment or a window holds."""
GENERATION, BATCH, JUDGED = "generation", "batch", "judged_by"
TOUCHED = "__touched"
OP = "__op"

RESERVED = frozenset({START, END, LAST, "window_index", REVISION, RUN, PANE, FIRST, ROWS, GENERATION, BATCH, JUDGED})
STAMP = (RUN, GENERATION, BATCH, JUDGED)
"""What every state row carries besides its partials."""
