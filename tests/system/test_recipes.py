"""Programs of docs/recipes.md bring each event once, whatever is killed when."""

import importlib
import os
from collections.abc import Iterator
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
import yaml
from deltalake import DeltaTable
from pyspark.sql import SparkSession

from jobs.read import read
from jobs.run import run
from tests.live.databases import Database, serve_database
from tests.support.recipes import KILLED, ROOT, Recipe, read_block
from windowing.spec.load import load_pipeline

COMMIT = "write_deltalake("
ORDERS = pa.schema(
    {"order_id": pa.int64(), "shop": pa.string(), "ordered_at": pa.timestamp("us", "UTC")}
)
TABLE = """
drop table if exists orders;
create table orders (order_id bigint, shop text, ordered_at timestamptz, price numeric);
insert into orders values (1, 'north', '2026-03-02T10:00Z', 1.50);
grant select on orders to reader;
"""


def rows_of(table: Path) -> list[int]:
    """The ids in the Delta table, in order."""
    found = DeltaTable(table).to_pyarrow_table().column("order_id").to_pylist()
    return sorted(int(each) for each in found)


@pytest.fixture
def psycopg(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Any:
    """The driver of Airflow's environment, as a program of this one imports it."""
    packages = list(ROOT.glob(".venv-airflow/lib/python3.*/site-packages"))
    links = tmp_path / "packages"
    links.mkdir()
    for name in ("psycopg", "psycopg_binary", "psycopg_binary.libs"):
        for package in packages:
            (links / name).symlink_to(package / name)
    monkeypatch.syspath_prepend(links)
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join((str(links), str(ROOT))))
    try:
        return importlib.import_module("psycopg")
    except ImportError:
        pytest.skip("psycopg is neither here nor in Airflow's environment")


class Shop:
    """A database with orders, and the recipe that reads them as an ordinary role."""

    def __init__(self, psycopg: Any, postgres: Database, table: Path) -> None:
        self.psycopg, self.table = psycopg, table
        self.url = str(postgres.url).replace("+psycopg2", "")
        self.password = postgres.environ["PGPASSWORD"]
        address = self.url.partition("@")[2]
        environ = {
            "ORDERS_DATABASE": f"postgresql://reader:reader@{address}",
            "ORDERS_TABLE": str(table),
            "PGUSER": "reader",
            "PGPASSWORD": "reader",
        }
        self.recipe = Recipe(read_block("PostgreSQL", "python"), environ)
        with self.connect() as connection:
            if connection.execute("select from pg_roles where rolname = 'reader'").rowcount == 0:
                connection.execute("create role reader login password 'reader'")
            connection.execute(TABLE)
            connection.execute(read_block("PostgreSQL", "sql"))

    def connect(self) -> Any:
        return self.psycopg.connect(self.url, password=self.password)

    def order(self, number: int, connection: Any = None) -> None:
        """Inserts an order; without a connection it is committed at once."""
        statement = "insert into orders values (%s, 'north', '2026-03-02T10:00Z', 2.25)"
        if connection is not None:
            connection.execute(statement, (number,))
            return
        with self.connect() as own:
            own.execute(statement, (number,))

    @property
    def rows(self) -> list[int]:
        return rows_of(self.table)


@pytest.fixture(scope="module")
def postgres() -> Iterator[Database]:
    with serve_database("postgres") as database:
        yield database


@pytest.fixture
def shop(postgres: Database, psycopg: Any, tmp_path: Path) -> Shop:
    return Shop(psycopg, postgres, tmp_path / "bronze" / "orders")


@pytest.mark.slow
def test_rows_of_postgres_are_appended_once(shop: Shop) -> None:
    assert shop.recipe.run().startswith("rows of transactions 0 to ")
    assert shop.recipe.run().startswith("nothing new since transaction ")
    shop.order(2)
    shop.recipe.stopped_before(COMMIT).run(KILLED)
    assert shop.rows == [1]
    shop.order(3)
    shop.recipe.stopped_before('print(f"rows of').run(KILLED)
    assert shop.rows == [1, 2, 3]
    assert shop.recipe.run().startswith("nothing new")
    found = DeltaTable(shop.table).to_pyarrow_table()
    assert [str(price) for price in found.sort_by("order_id")["price"]] == ["1.50", "2.25", "2.25"]


@pytest.mark.slow
def test_a_transaction_of_postgres_that_commits_late_is_not_lost(shop: Shop) -> None:
    shop.recipe.run()
    with shop.connect() as slow, shop.connect() as withdrawn:
        shop.order(2, slow)
        shop.order(9, withdrawn)
        shop.order(3)
        # What began behind an open transaction waits for it.
        assert shop.recipe.run().startswith("nothing new")
        withdrawn.rollback()
        assert shop.recipe.run().startswith("nothing new")
        slow.commit()
    assert shop.recipe.run().startswith("rows of transactions ")
    assert shop.rows == [1, 2, 3]
    assert shop.recipe.run().startswith("nothing new")


@pytest.mark.deep
def test_many_rows_of_postgres_are_one_commit(shop: Shop) -> None:
    with shop.connect() as connection:
        connection.execute(
            "insert into orders select n, 'south', now(), n from generate_series(2, 120000) n"
        )
    shop.recipe.run()
    assert shop.rows == list(range(1, 120_001))
    assert DeltaTable(shop.table).version() == 1


@pytest.mark.deep
def test_of_two_programs_that_read_postgres_at_once_one_fails(shop: Shop, tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    program.write_text(shop.recipe.text)
    meanwhile = (
        f"import sys, subprocess; subprocess.run([sys.executable, {str(program)!r}], check=True)"
    )
    said = shop.recipe.stopped_before(COMMIT, meanwhile).run(1)
    assert "Concurrent transaction failed" in said
    assert shop.rows == [1]
    assert shop.recipe.run().startswith("nothing new")


@pytest.mark.slow
def test_what_postgres_had_is_a_source(shop: Shop, spark: SparkSession, tmp_path: Path) -> None:
    spec: dict[str, Any] = yaml.safe_load(read_block("Parquet, CSV and JSON", "yaml"))
    del spec["source"]["files"]
    spec["source"]["table"] = str(shop.table)
    pipeline = load_pipeline(spec | {"lake": str(tmp_path / "lake")})
    shop.recipe.run()
    run(spark, pipeline)
    # A mark that is lost reads all again.
    shop.order(2)
    shop.recipe.changed("table.transaction_version(name) or 0", "0").run()
    assert shop.rows == [1, 1, 2]
    report = run(spark, pipeline)
    assert (report.read, report.accepted, report.duplicate) == (2, 1, 1)
    (row,) = read(spark, pipeline, "hourly", published=False).collect()
    assert (row["orders"], row["revenue"]) == (2, Decimal("3.75"))


class Glacier:
    """An Iceberg table of orders in a catalog of SQLite, and the recipe that reads it."""

    def __init__(self, home: Path) -> None:
        catalog = {
            "PYICEBERG_CATALOG__SHOP__TYPE": "sql",
            "PYICEBERG_CATALOG__SHOP__URI": f"sqlite:///{home}/catalog.db",
            "PYICEBERG_CATALOG__SHOP__WAREHOUSE": f"file://{home}/warehouse",
        }
        self.table = home / "bronze" / "orders"
        environ = {**catalog, "ORDERS_TABLE": str(self.table)}
        self.recipe = Recipe(read_block("Iceberg", "python"), environ)
        properties = {name.rpartition("__")[2].lower(): value for name, value in catalog.items()}
        module = importlib.import_module("pyiceberg.catalog")
        opened = module.load_catalog("shop", **properties)
        opened.create_namespace("shop")
        self.orders = opened.create_table("shop.orders", schema=ORDERS)

    def append(self, *numbers: int) -> None:
        """One snapshot with these orders."""
        at = datetime(2026, 3, 2, 10, tzinfo=UTC)
        rows = [{"order_id": n, "shop": "north", "ordered_at": at} for n in numbers]
        self.orders.append(pa.Table.from_pylist(rows, schema=ORDERS))

    @property
    def rows(self) -> list[int]:
        return rows_of(self.table)


@pytest.fixture
def glacier(tmp_path: Path) -> Glacier:
    reason = "pyiceberg and SQLAlchemy are no dependencies; put them into PYTHONPATH to run it"
    for name in ("pyiceberg", "sqlalchemy"):
        pytest.importorskip(name, reason=reason)
    return Glacier(tmp_path)


def test_snapshots_of_iceberg_are_appended_once(glacier: Glacier) -> None:
    glacier.append(1, 2)
    glacier.append(3)
    glacier.recipe.run()
    assert glacier.rows == [1, 2, 3]
    assert glacier.recipe.run().startswith("0 new snapshots")
    glacier.append(4)
    glacier.append(5, 6)
    glacier.recipe.stopped_before(COMMIT).run(KILLED)
    assert glacier.rows == [1, 2, 3]
    glacier.recipe.stopped_before("table.update_incremental()").run(KILLED)
    assert glacier.rows == [1, 2, 3, 4]
    assert "2 rows of snapshot" in glacier.recipe.run()
    assert glacier.rows == [1, 2, 3, 4, 5, 6]
    assert glacier.recipe.run().startswith("0 new snapshots")


def test_a_snapshot_of_iceberg_that_expired_unread_is_told(glacier: Glacier) -> None:
    glacier.append(1)
    glacier.recipe.run()
    glacier.append(2)
    read = glacier.orders.current_snapshot().parent_snapshot_id
    glacier.orders.maintenance.expire_snapshots().by_id(read).commit()
    glacier.recipe.run()
    assert glacier.rows == [1, 2]
    glacier.append(3)
    unread = glacier.orders.current_snapshot().snapshot_id
    glacier.append(4)
    glacier.orders.maintenance.expire_snapshots().by_id(unread).commit()
    assert "has expired unread" in glacier.recipe.run(1)
    assert glacier.rows == [1, 2]


def test_a_rollback_of_iceberg_behind_what_was_read_is_told(glacier: Glacier) -> None:
    glacier.append(1)
    first = glacier.orders.current_snapshot().snapshot_id
    glacier.append(2)
    glacier.recipe.run()
    glacier.orders.manage_snapshots().set_current_snapshot(first).commit()
    assert "has expired or was replaced" in glacier.recipe.run(1)
    glacier.append(3)
    assert "has expired or was replaced" in glacier.recipe.run(1)
    assert glacier.rows == [1, 2]


def test_a_column_that_iceberg_adds_is_null_before(glacier: Glacier) -> None:
    glacier.append(1)
    glacier.recipe.run()
    glacier.append(2)
    with glacier.orders.update_schema() as change:
        change.add_column("price", importlib.import_module("pyiceberg.types").LongType())
    at = datetime(2026, 3, 2, 10, tzinfo=UTC)
    row = {"order_id": 3, "shop": "north", "ordered_at": at, "price": 7}
    glacier.orders.append(pa.Table.from_pylist([row], ORDERS.append(pa.field("price", pa.int64()))))
    glacier.recipe.run()
    found = DeltaTable(glacier.table).to_pyarrow_table().sort_by("order_id")
    assert found["price"].to_pylist() == [None, None, 7]


def test_rows_of_iceberg_that_were_deleted_are_told(glacier: Glacier) -> None:
    glacier.append(1, 2)
    glacier.recipe.run()
    glacier.orders.delete("order_id = 1")
    assert "is no append but " in glacier.recipe.run(1)
    assert glacier.rows == [1, 2]
