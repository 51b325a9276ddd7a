"""The program of docs/recipes.md that reads a topic brings each record once, and it is a source."""

import json
import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from deltalake import DeltaTable

from tests.support.kafka_server import Broker, class_path, started_broker
from tests.support.recipes import Recipe, read_block


@pytest.fixture(scope="module")
def broker(jvm: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Broker]:
    with started_broker(tmp_path_factory.mktemp("kafka")) as server:
        yield server


def order(number: int) -> str:
    """A record as its producer writes it."""
    at = f"2026-03-02T10:00:{number:02}Z"
    return json.dumps({"order_id": number, "shop": "north", "ordered_at": at, "price": "1.50"})


@pytest.mark.deep
@pytest.mark.timeout(1500)
def test_records_of_kafka_are_appended_once(broker: Broker, tmp_path: Path) -> None:
    table, checkpoint = tmp_path / "bronze" / "orders", tmp_path / "checkpoint"
    environ = {
        "ORDERS_BROKERS": broker.address,
        "ORDERS_TABLE": str(table),
        "ORDERS_CHECKPOINT": str(checkpoint),
    }
    # The connector is on this disk already, so nothing is downloaded.
    recipe = Recipe(read_block("Kafka", "python"), environ).changed(
        '"spark.jars.packages": CONNECTOR',
        f'"spark.jars": {class_path("connector").replace(os.pathsep, ",")!r}',
    )

    def rows() -> list[int]:
        found = DeltaTable(table).to_pyarrow_table()
        names = found["record"].to_pylist()
        assert len(set(names)) == len(names)
        return sorted(n for n in found["order_id"].to_pylist() if n is not None)

    broker.send("orders", map(order, (1, 2, 3)))
    assert recipe.run() == "3 records were read\n"
    assert rows() == [1, 2, 3]
    assert recipe.run() == "0 records were read\n"
    broker.send("orders", [order(4), '{"order_id": "broken', order(5)])
    recipe.run()
    assert rows() == [1, 2, 3, 4, 5]
    found = DeltaTable(table).to_pyarrow_table().to_pylist()
    (broken,) = (row for row in found if row["ordered_at"] is None)
    assert broken["value"] == '{"order_id": "broken'
    # A kill between the two leaves a batch that is committed to the table and not yet done.
    last = max((checkpoint / "commits").glob("[0-9]*"), key=lambda file: int(file.name))
    last.unlink()
    last.with_name(f".{last.name}.crc").unlink(missing_ok=True)
    broker.send("orders", [order(6)])
    recipe.run()
    assert rows() == [1, 2, 3, 4, 5, 6]
    assert len(found) + 1 == DeltaTable(table).to_pyarrow_table().num_rows
