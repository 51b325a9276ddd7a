"""What commands ask of an S3 server, on a pipeline of the standard size.

    python -m tests.support.counted_requests [--kept DIRECTORY]

It starts a server, and prints a line for each command: its requests by kind. With a directory it
keeps all requests there, a file for each command.
"""

import json
import os
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Protocol

import pyarrow as pa
from deltalake import write_deltalake

from tests.support.faulty_proxy import Asked, FaultyProxy, started_proxy
from tests.support.published_readers import options_of
from tests.support.s3_server import S3Server, started_s3_server
from windowing.location import Location

KINDS = ("GET", "HEAD", "LIST", "PUT", "DELETE", "COPY")
START_S = 1_767_225_600
"""When the first event happens: the beginning of 2026."""
_DAY_S = 86_400
_LATE_DAYS = (1, 2, 20)
_PATIENCE = 600


class RequestLog(Protocol):
    """Everything that was asked of a server since it was begun anew."""

    @property
    def asked(self) -> list[Asked]:
        """The requests."""

    def begin(self) -> None:
        """From now on requests are noted anew."""


@dataclass(frozen=True)
class Counted:
    """A command, what it asked of the server, and how long it took."""

    name: str
    asked: tuple[Asked, ...]
    seconds: float

    @property
    def kinds(self) -> Counter[str]:
        """How many requests there were of each kind."""
        return Counter(each.kind for each in self.asked)


@dataclass(frozen=True)
class Shop:
    """A pipeline whose commands are processes of their own, which have some variables besides."""

    spec: Path
    source: str
    requests: RequestLog
    events_a_day: int = 1_000
    variables: Mapping[str, str] = field(default_factory=dict)

    def land(self, first: int, rows: int, late: int = 0) -> None:
        """Appends events to the source, of which so many are late."""
        numbers = range(first, first + rows)
        times = [self._choose_time(n) - _be_late(n, n - first, late) for n in numbers]
        events = {
            "id": [f"e{n}" for n in numbers],
            "user": [f"u{n * 31 % 50}" for n in numbers],
            "at": pa.array([at * 1_000_000 for at in times], pa.timestamp("us", "UTC")),
            "amount": [n * 7919 % 1_000 for n in numbers],
        }
        options = options_of(Location(self.source))
        write_deltalake(self.source, pa.table(events), mode="append", storage_options=options)

    def count(self, name: str, *words: str) -> Counted:
        """What `tidemark WORDS[0] SPEC WORDS[1:]` asks of the server."""
        self.requests.begin()
        began = time.monotonic()
        command = [str(Path(sys.executable).with_name("tidemark")), words[0], str(self.spec)]
        done = subprocess.run(
            [*command, *words[1:]],
            env={**os.environ, **self.variables},
            capture_output=True,
            text=True,
            check=False,
            timeout=_PATIENCE,
        )
        seconds = time.monotonic() - began
        assert done.returncode == 0, (words, done.returncode, done.stdout, done.stderr)
        # A name node tells its calls only every some seconds.
        return Counted(name, tuple(self.requests.asked), seconds)

    def _choose_time(self, number: int) -> int:
        """When an event happens, in seconds: so many of them in a day."""
        return START_S + 25 * _DAY_S + number * _DAY_S // self.events_a_day


def _be_late(number: int, place: int, late: int) -> int:
    """How many seconds earlier it happens, where it is one of the first `late` of its batch."""
    return _LATE_DAYS[number % len(_LATE_DAYS)] * _DAY_S if place < late else 0


def describe_shop(home: str) -> dict[str, object]:
    """A spec with windows on a grid, sessions, ids and a quantile."""
    return {
        "name": "shop",
        "lake": f"{home}/lake",
        "source": {
            "table": f"{home}/bronze/orders",
            "event_time": "at",
            "key": ["user"],
            "event_id": "id",
        },
        "watermark": {"delay": "1 hour", "allowed_lateness": "30 days"},
        "aggregates": {"n": "count()", "total": "sum(amount)", "p95": "quantile(amount, 0.95)"},
        "windows": {
            "hourly": {"kind": "tumbling", "size": "1 hour", "zone": "Europe/Berlin"},
            "busy": {"kind": "session", "gap": "30 minutes"},
        },
    }


def play(shop: Shop) -> Iterator[Counted]:
    """The commands of a pipeline's day, each counted."""
    shop.land(0, 2_000)
    yield shop.count("first run of 2,000 rows", "run")
    yield shop.count("nothing new", "run")
    yield shop.count("validate", "validate")
    yield shop.count("publish", "publish")
    yield shop.count("nothing new, published", "run")
    shop.land(2_000, 1_000, late=200)
    yield shop.count("1,000 rows, 200 of them late", "run")
    shop.land(3_000, 1)
    yield shop.count("one row", "run")
    yield shop.count("show", "show", "hourly", "--key", "user=u1")


def make_shop(server: S3Server, proxy: FaultyProxy, directory: Path) -> Shop:
    """A pipeline in a bucket of its own."""
    home = f"s3://{server.make_bucket()}"
    spec = directory / "shop.yaml"
    # JSON is YAML.
    spec.write_text(json.dumps(describe_shop(home)))
    return Shop(spec, f"{home}/bronze/orders", proxy)


def describe(counted: Counted) -> str:
    """A row of a table in Markdown."""
    kinds = counted.kinds
    numbers = " | ".join(str(kinds[kind]) for kind in KINDS)
    return f"| {counted.name} | {sum(kinds.values())} | {numbers} | {counted.seconds:.1f} |"


def keep(counted: Counted, directory: Path) -> None:
    """Writes all requests of a command into a file of a directory."""
    directory.mkdir(parents=True, exist_ok=True)
    lines = [f"{a.kind:6} {a.status} {a.client[:40]:40} {a.key}\n" for a in counted.asked]
    (directory / f"{counted.name.replace(' ', '_')}.txt").write_text("".join(lines))


def main(kept: str | None) -> None:
    """Prints the table."""
    with TemporaryDirectory(prefix="tidemark-requests-") as directory:
        home = Path(directory)
        with started_s3_server(home / "s3") as server, started_proxy(server.endpoint) as proxy:
            os.environ.update(proxy.environ)
            print(f"| command | all | {' | '.join(KINDS)} | seconds |", flush=True)
            for counted in play(make_shop(server, proxy, home)):
                print(describe(counted), flush=True)
                if kept is not None:
                    keep(counted, Path(kept))


if __name__ == "__main__":
    main(sys.argv[2] if sys.argv[1:2] == ["--kept"] else None)
