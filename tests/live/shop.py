"""A pipeline of orders, its source table, and what its outputs must be by plain loops.

Nothing here starts a JVM: the source is written, and outputs are read, by delta-rs.
"""

import json
import os
import subprocess
import sys
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
from deltalake import DeltaTable, write_deltalake

from tests.oracle import Event, Oracle, Session, Tumbling
from windowing.grid.zone import micros

SPEC = """\
name: {name}
lake: ../lake
source: {{table: ../lake/bronze/{name}, event_time: at, key: [shop], event_id: id}}
watermark: {{delay: 0 seconds, allowed_lateness: 7 days}}
aggregates: {{orders: count(), total: sum(price)}}
windows:
  hourly: {{kind: tumbling, size: 1 hour}}
  visits: {{kind: session, gap: 30 minutes}}
{more}"""
SCHEMA = pa.schema(
    {
        "id": pa.string(),
        "shop": pa.string(),
        "at": pa.timestamp("us", "UTC"),
        "price": pa.int64(),
    }.items()
)
HOUR = 3_600_000_000
FOREVER = 100 * 365 * 24 * HOUR
WINDOWS = (Tumbling("hourly", size=HOUR), Session("visits", gap=HOUR // 2))
MORNING = datetime(2013, 1, 1, 6, tzinfo=UTC)


@dataclass(frozen=True)
class Order:
    """A row of the source, so many minutes after six."""

    id: str
    shop: str
    minute: int
    price: int

    @property
    def at(self) -> datetime:
        """When it was ordered."""
        return MORNING + timedelta(minutes=self.minute)


@dataclass
class Shop:
    """The pipeline `name` in the directory of specs `folder`; the lake lies next to it."""

    folder: Path
    name: str
    more: str = ""
    held: list[Order] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.spec.write_text(SPEC.format(name=self.name, more=self.more))

    @property
    def spec(self) -> Path:
        """The file of the spec."""
        return self.folder / f"{self.name}.yaml"

    @property
    def _lake(self) -> Path:
        return self.folder.parent / "lake"

    def expect(self, window: str, most: int) -> None:
        """The suite: a row of `window` counts at most so many orders."""
        wanted = (
            "{type: expect_column_values_to_be_between, severity: critical, "
            f"kwargs: {{column: orders, max_value: {most}}}}}"
        )
        suites = self.folder / "expectations"
        suites.mkdir(exist_ok=True)
        (suites / f"{self.name}.yaml").write_text(f"{window}:\n  - {wanted}\n")

    def land(self, *orders: Order) -> None:
        """Appends rows to the source."""
        rows = [{"id": o.id, "shop": o.shop, "at": o.at, "price": o.price} for o in orders]
        source = str(self._lake / "bronze" / self.name)
        write_deltalake(source, pa.Table.from_pylist(rows, schema=SCHEMA), mode="append")
        self.held += orders

    def take_out(self, shop: str) -> None:
        """Deletes a shop's rows from the source."""
        DeltaTable(str(self._lake / "bronze" / self.name)).delete(f"shop = '{shop}'")
        self.held = [order for order in self.held if order.shop != shop]

    def command(self, name: str, *words: str) -> "subprocess.CompletedProcess[str]":
        """The command line, as somebody types it."""
        line = [sys.executable, "-P", "-m", "jobs", name, str(self.spec), *words]
        environ = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])}
        return subprocess.run(line, capture_output=True, text=True, check=False, env=environ)

    def wanted(self, window: str) -> dict[tuple[Any, ...], tuple[Any, ...]]:
        """What readers must see of the rows that the source holds: orders and total by window."""
        oracle = Oracle(
            delay=0, lateness=FOREVER, max_future=FOREVER, horizon=None, windows=WINDOWS
        )
        events = [
            Event(o.shop, micros(o.at), float(o.price), o.id, order)
            for order, o in enumerate(self.held)
        ]
        oracle.run(events, micros(datetime(2026, 1, 1, tzinfo=UTC)))
        return {place: (row["count"], row["sum"]) for place, row in oracle.table(window).items()}

    def shown(self, window: str) -> dict[tuple[Any, ...], tuple[Any, ...]]:
        """What readers see: the version that was published."""
        version = self.published[window]["version"]
        table = DeltaTable(str(self._lake / self.name / window), version=version)
        rows = table.to_pyarrow_table().to_pylist()
        places = [(r["shop"], micros(r["window_start"]), micros(r["window_end"])) for r in rows]
        assert len(places) == len({*places}), "a window has two rows"
        return {
            place: (row["orders"], row["total"]) for place, row in zip(places, rows, strict=True)
        }

    @property
    def lock(self) -> Path:
        """The file that names who writes."""
        return self._lake / self.name / "_lock"

    @property
    def published(self) -> dict[str, dict[str, Any]]:
        """By output what the pointer of readers says."""
        pointer = json.loads((self._lake / self.name / "_published.json").read_text())
        outputs: dict[str, dict[str, Any]] = pointer["outputs"]
        return outputs
