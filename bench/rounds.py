"""Measures contenders in turn: each round begins with another one, and medians are compared."""

import statistics
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

import psutil
from pyspark.sql import SparkSession

from bench.figures import Times, Took


@dataclass(frozen=True)
class Ratio:
    """How often one contender's cost contains another one's."""

    cpu: float
    wall: float

    @property
    def beside(self) -> str:
        """The ratio of wall seconds as a reader sees it."""
        return f"wall {self.wall:.2f}"


def read_cpu_seconds() -> float:
    """CPU seconds so far of this process and of all that it started, ended ones included.

    With a session in it that are Python, the JVM and Python's workers.
    """
    this = psutil.Process()
    total = 0.0
    for process in (this, *this.children(recursive=True)):
        try:
            used = process.cpu_times()
        except psutil.NoSuchProcess:
            # What it used counts as that of children of its parent once it has ended.
            continue
        total += used.user + used.system + used.children_user + used.children_system
    return total


def time_action(action: Callable[[], object]) -> Took:
    """What an action took."""
    cpu_before = read_cpu_seconds()
    wall_before = time.monotonic()
    action()
    wall = time.monotonic() - wall_before
    return Took(wall, read_cpu_seconds() - cpu_before)


def time_in_turn(
    spark: SparkSession, contenders: Mapping[str, Callable[[], object]], first: int
) -> dict[str, Took]:
    """What each contender took, the one numbered `first` before the others.

    Each begins without cached tables and without the garbage of the one before it.
    """
    took = {}
    for name in order_of_round(contenders, first):
        spark.catalog.clearCache()
        spark._jvm.System.gc()  # type: ignore[union-attr]
        took[name] = time_action(contenders[name])
    return {name: took[name] for name in contenders}


def order_of_round(names: Iterable[str], number: int) -> list[str]:
    """The names, beginning with another one in each round.

    >>> order_of_round("abc", 4)
    ['b', 'c', 'a']
    """
    listed = list(names)
    begin = number % len(listed)
    return listed[begin:] + listed[:begin]


def gather_times(phase: str, rounds: Sequence[Mapping[str, Took]]) -> list[Times]:
    """The rounds of a phase by contender."""
    return [Times(phase, name, tuple(each[name] for each in rounds)) for name in rounds[0]]


def compare_times(times: Sequence[Times], phase: str, over: str, under: str) -> Ratio:
    """The median of the rounds' ratios, of contender `over` to contender `under`.

    Both of a round ran next to each other, so a machine that gets slower changes no ratio.
    """
    by_name = {each.contender: each.took for each in times if each.phase == phase}
    pairs = list(zip(by_name[over], by_name[under], strict=True))
    return Ratio(
        statistics.median(a.cpu / b.cpu for a, b in pairs),
        statistics.median(a.wall / b.wall for a, b in pairs),
    )
