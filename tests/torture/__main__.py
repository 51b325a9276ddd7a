"""Tortures pipelines for a while; stopped or killed, it goes on where it was.

    python -m tests.torture [--minutes 60] [--home build/torture]

Two lanes are played beside each other, each with two pipelines of its own. Each round of a lane is
a process that finishes what the last one left, compares all there is with what must be, lives on
for a run, and is killed at a named place: itself, its JVM, or both. Every third round it is killed
while it finishes, too. After every eighth, in turn, two runs race, or two runs, a backfill, a
maintenance and a publication do, while somebody reads the pointer. The first difference ends it.
"""

import sys
import time
from argparse import ArgumentParser
from concurrent.futures import FIRST_EXCEPTION, ThreadPoolExecutor, wait
from pathlib import Path
from threading import Event

from tests.torture.plan import COMBINATIONS, LANES, plan_round
from tests.torture.rounds import ROOT, play_crowd, play_race, play_round
from tests.torture.tally import Tally, load_tally, show_tally, sum_tallies


def main() -> None:
    """Tortures until the time is up, or until a lane has found a difference."""
    parser = ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--minutes", type=float, default=60)
    parser.add_argument("--home", type=Path, default=ROOT / "build" / "torture")
    asked = parser.parse_args()
    stop = Event()
    until = time.monotonic() + asked.minutes * 60
    tallies = {lane: load_tally(asked.home / lane) for lane in LANES}
    with ThreadPoolExecutor(len(LANES)) as pool:
        lanes = [
            pool.submit(play_lane, lane, tally, asked.home / lane, until, stop)
            for lane, tally in tallies.items()
        ]
        try:
            wait(lanes, return_when=FIRST_EXCEPTION)
        finally:
            stop.set()
    total = sum_tallies(tallies.values())
    show_tally(total, len(total.kills), len(COMBINATIONS))
    for played in lanes:
        played.result()


def play_lane(lane: str, tally: Tally, home: Path, until: float, stop: Event) -> None:
    """Plays rounds of one lane until that moment of the monotonic clock, or until it is stopped."""
    began, before = time.monotonic(), tally.seconds
    while time.monotonic() < until and not stop.is_set():
        plan = plan_round(tally.rounds, tally.seed, LANES[lane])
        play_round(tally, home, plan)
        if tally.rounds % 16 == 7:
            play_race(tally, home, plan["family"])
        if tally.rounds % 16 == 15:
            play_crowd(tally, home, plan["family"])
        tally.rounds += 1
        tally.seconds = before + time.monotonic() - began
        tally.save(home)
        print(f"{lane}: {tally.rounds} rounds, {dict(tally.done)}", file=sys.stderr, flush=True)


if __name__ == "__main__":
    main()
