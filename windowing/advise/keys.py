"""Keys that somebody should look at: silent ones, busy ones, and those whose clocks are off."""

from dataclasses import dataclass

import numpy as np

from windowing.advise.groups import find_middles
from windowing.advise.history import History, Judged
from windowing.advise.rule import describe_length, describe_part
from windowing.grid.boundaries import Flags, Instants

FEW = 20
"""Of keys with fewer events nothing is said."""
MOST_KEYS = 10
"""How many keys are named for each reason."""
_SILENT = 3
"""A key is silent for longer than so many times the longest pause between its arrivals."""
_BUSY = 5
"""A key is busy with so many times the events of a usual one, and with a tenth of all."""

SILENT, LATE, AHEAD, BUSY = "silent", "late", "ahead", "busy"


@dataclass(frozen=True)
class Finding:
    """A key by its number, what is odd with it in one word, and in one sentence."""

    key: int
    what: str
    text: str


def find_odd_keys(history: History, judged: Judged, most_behind_us: int) -> list[Finding]:
    """The oddest keys of each kind; 99 % of all events are at most `most_behind_us` late."""
    counts = np.bincount(history.events.key)
    enough = counts >= FEW
    return [
        *_find_silent(history, enough),
        *_find_late(judged, enough, most_behind_us),
        *_find_ahead(judged, enough),
        *_find_busy(counts),
    ]


def _find_silent(history: History, enough: Flags) -> list[Finding]:
    """Keys from which nothing has arrived for much longer than ever before, the longest first."""
    key, arrived = history.events.key, history.batches.arrived_us[history.events.batch]
    order = np.lexsort((arrived, key))
    key, arrived = key[order], arrived[order]
    pauses = np.where(np.diff(key) == 0, np.diff(arrived), 0)
    longest, last = np.zeros(len(enough), np.int64), np.zeros(len(enough), np.int64)
    np.maximum.at(longest, key[1:], pauses)
    last[key] = arrived
    silence = int(history.batches.arrived_us[-1]) - last
    return [
        Finding(
            number,
            SILENT,
            f"nothing has arrived of it for {describe_length(int(silence[number]))}; "
            f"its longest pause before was {describe_length(int(longest[number]))}",
        )
        for number in _pick(enough & (silence > _SILENT * longest), silence)
    ]


def _find_late(judged: Judged, enough: Flags, most_behind_us: int) -> list[Finding]:
    """Keys of which half of the events are later than 99 % of all."""
    middle = find_middles(judged.behind, judged.events.key, len(enough))
    late = enough & (middle > most_behind_us)
    return [
        Finding(
            number,
            LATE,
            f"half of its events are {describe_length(int(middle[number]))} or more behind; "
            f"99 % of all are at most {describe_length(most_behind_us)} behind",
        )
        for number in _pick(late, middle)
    ]


def _find_ahead(judged: Judged, enough: Flags) -> list[Finding]:
    """Keys of which half of the events arrive before they happen."""
    middle = find_middles(judged.age, judged.events.key, len(enough))
    ahead = enough & (middle < 0)
    return [
        Finding(
            number,
            AHEAD,
            f"half of its events are {describe_length(-int(middle[number]))} or more ahead of "
            "their arrival, so its clock moves the watermark for all keys",
        )
        for number in _pick(ahead, -middle)
    ]


def _find_busy(counts: Instants) -> list[Finding]:
    """Keys with many more events than usual ones."""
    total, known = int(counts.sum()), counts[counts > 0]
    usual = float(np.median(known)) if len(known) else 0.0
    busy = (counts > _BUSY * usual) & (10 * counts >= total) & (counts >= FEW)
    return [
        Finding(
            number,
            BUSY,
            f"has {int(counts[number]):,} events, {describe_part(int(counts[number]), total)} "
            f"of all; a usual key has {usual:,.0f}",
        )
        for number in _pick(busy, counts)
    ]


def _pick(chosen: Flags, by: Instants) -> list[int]:
    """The numbers of the chosen keys, those with the most `by` first, not too many of them."""
    numbers = np.flatnonzero(chosen)
    ordered = numbers[np.argsort(-by[numbers], kind="stable")]
    found: list[int] = ordered[:MOST_KEYS].tolist()
    return found
