"""What commands cost on each storage, here and with executors of a cluster: time and requests.

    python -m tests.support.storage_costs [STORAGE ...] [--rows 1000000] [--places here cluster]

The same pipeline gets the same events on a disk, on S3 and on HDFS, all three on this machine, and
each command is a process of its own. Requests of HDFS are calls of the name node. It prints three
tables: the seconds of each command, and as many times those of the first storage; the requests by
kind; and how large the tables are. Seconds on a machine that does other work say little.
"""

import json
import os
from argparse import ArgumentParser
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory

from tests.support.cluster import serve_cluster
from tests.support.counted_requests import Counted, RequestLog, Shop, describe_shop
from tests.support.faulty_proxy import Asked, started_proxy
from tests.support.hdfs_server import HdfsServer, started_hdfs_server
from tests.support.s3_server import started_s3_server
from windowing.location import Location
from windowing.storage.store import store_of

STORAGES = ("disk", "s3", "hdfs")
PLACES = ("here", "cluster")
_EVENTS_A_DAY = 100_000


@dataclass
class NoRequests:
    """A disk, of which nothing is asked over a network."""

    asked: list[Asked] = field(default_factory=list)

    def begin(self) -> None:
        """Nothing is noted."""


@dataclass
class NameNodeCalls:
    """The calls of a name node."""

    server: HdfsServer
    before: Counter[str] = field(default_factory=Counter)

    @property
    def asked(self) -> list[Asked]:
        """One for each call, of which nothing but the name is known."""
        new = self.server.count_calls() - self.before
        return [Asked(kind, "", "", 0) for kind in new.elements()]

    def begin(self) -> None:
        """From now on calls are counted anew."""
        self.before = self.server.count_calls()


@dataclass(frozen=True)
class Cost:
    """A command on a storage, with its tasks here or on a cluster."""

    storage: str
    place: str
    counted: Counted


def make_shop(home: str, directory: Path, requests: RequestLog) -> Shop:
    """A pipeline below a URL or a path; its spec lies in `directory`."""
    spec = directory / f"shop-{len(list(directory.glob('shop-*')))}.yaml"
    # JSON is YAML.
    spec.write_text(json.dumps(describe_shop(home)))
    return Shop(spec, f"{home}/bronze/orders", requests, _EVENTS_A_DAY)


def play(shop: Shop, rows: int) -> Iterator[Counted]:
    """A first load, 1 % more, the standard run, and a run with nothing new."""
    shop.land(0, rows)
    yield shop.count(f"first load of {rows:,}", "run")
    shop.land(rows, rows // 100)
    yield shop.count("1 % more", "run")
    shop.land(rows + rows // 100, 1_000, late=200)
    yield shop.count("1,000 rows, 200 of them late", "run")
    yield shop.count("nothing new", "run")


def count_bytes(shop: Shop) -> Counter[str]:
    """The bytes of all files of each table of a pipeline, and of its other files by their names."""
    root = Location(shop.source.replace("bronze/orders", "lake/shop"))
    found = Counter[str]()
    for name, file in store_of(root).list_files(root).items():
        found[name.partition("/")[0]] += file.bytes
    return found


def load_on_cluster(shop: Shop, rows: int) -> Iterator[Counted]:
    """The first load alone, because short runs need no cluster."""
    shop.land(0, rows)
    yield shop.count(f"first load of {rows:,}", "run")


def measure(
    storages: Sequence[str],
    places: Sequence[str],
    rows: int,
    directory: Path,
    sizes: dict[str, Counter[str]],
) -> Iterator[Cost]:
    """The costs of all commands, one after the other; adds the `sizes` of each storage."""
    with ExitStack() as ended:
        s3 = ended.enter_context(started_s3_server(directory / "s3"))
        proxy = ended.enter_context(started_proxy(s3.endpoint))
        os.environ.update(proxy.environ)
        homes: dict[str, tuple[str, RequestLog]] = {"disk": (str(directory), NoRequests())}
        homes["s3"] = (f"s3://{s3.make_bucket()}", proxy)
        if "hdfs" in storages:
            hdfs = ended.enter_context(started_hdfs_server(directory / "hdfs"))
            homes["hdfs"] = (hdfs.make_home(), NameNodeCalls(hdfs))
        for storage in storages if "here" in places else ():
            home, requests = homes[storage]
            shop = make_shop(f"{home}/here", directory, requests)
            for counted in play(shop, rows):
                yield Cost(storage, "here", counted)
            sizes[storage] = count_bytes(shop)
        if "cluster" not in places:
            return
        (directory / "cluster").mkdir()
        cluster = ended.enter_context(serve_cluster(directory / "cluster", s3))
        for storage in storages:
            home, requests = homes[storage]
            shop = make_shop(f"{home}/cluster", directory, requests)
            variables = {**cluster.variables(), **proxy.environ}
            shop = Shop(shop.spec, shop.source, requests, shop.events_a_day, variables)
            for counted in load_on_cluster(shop, rows):
                yield Cost(storage, "cluster", counted)


def describe_times(costs: Sequence[Cost]) -> str:
    """A table of seconds: a row for each command, a column for each storage and place."""
    columns = list(dict.fromkeys((cost.storage, cost.place) for cost in costs))
    seconds = {(c.counted.name, c.storage, c.place): c.counted.seconds for c in costs}
    heads = [f"{storage}, {place}" for storage, place in columns]
    lines = [_make_row(["seconds", *heads]), _make_row(["---"] * (len(heads) + 1))]
    for name in dict.fromkeys(cost.counted.name for cost in costs):
        cells = [seconds.get((name, *column)) for column in columns]
        lines.append(_make_row([name, *(_describe_seconds(cell, cells[0]) for cell in cells)]))
    return "\n".join(lines)


def _describe_seconds(seconds: float | None, first: float | None) -> str:
    if seconds is None or first is None:
        return ""
    return f"{seconds:.1f} ({seconds / first:.2f})"


def describe_requests(costs: Sequence[Cost]) -> str:
    """A table of requests: a row for each command on each storage."""
    lines = [_make_row(["storage", "command", "all", "by kind"]), _make_row(["---"] * 4)]
    for cost in costs:
        kinds = cost.counted.kinds
        if kinds:
            named = ", ".join(f"{n} {kind}" for kind, n in kinds.most_common())
            where = cost.storage if cost.place == "here" else f"{cost.storage}, {cost.place}"
            lines.append(_make_row([where, cost.counted.name, str(kinds.total()), named]))
    return "\n".join(lines)


def describe_sizes(sizes: Mapping[str, Counter[str]]) -> str:
    """A table of kilobytes: a row for each table of the pipeline, a column for each storage."""
    names = sorted({name for found in sizes.values() for name in found})
    lines = [_make_row(["kB", *sizes]), _make_row(["---"] * (len(sizes) + 1))]
    for name in names:
        cells = [f"{found[name] / 1_000:,.1f}" for found in sizes.values()]
        lines.append(_make_row([name, *cells]))
    return "\n".join(lines)


def _make_row(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"


def main() -> None:
    """Prints what each command took as soon as it has ended, and then both tables."""
    parser = ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("storages", nargs="*", choices=[*STORAGES, []], metavar="STORAGE")
    parser.add_argument("--places", nargs="+", choices=PLACES, default=PLACES)
    parser.add_argument("--rows", type=int, default=1_000_000, help="of the first load")
    asked = parser.parse_args()
    storages, places = asked.storages or STORAGES, asked.places
    costs: list[Cost] = []
    sizes: dict[str, Counter[str]] = {}
    with TemporaryDirectory(prefix="tidemark-costs-") as directory:
        for cost in measure(storages, places, asked.rows, Path(directory), sizes):
            costs.append(cost)
            counted = cost.counted
            load = os.getloadavg()[0]
            total = counted.kinds.total()
            said = f"{counted.name}: {counted.seconds:.1f} s, {total} requests, load {load:.1f}"
            print(f"{cost.storage}, {cost.place}: {said}", flush=True)
    print("", describe_times(costs), describe_requests(costs), describe_sizes(sizes), sep="\n\n")


if __name__ == "__main__":
    main()
