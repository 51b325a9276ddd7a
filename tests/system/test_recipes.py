"""Programs of docs/recipes.md bring each event once, whatever is killed when."""

import importlib
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from deltalake import DeltaTable

from tests.live.databases import Database, serve_database
from tests.support.recipes import KILLED, ROOT, Recipe, read_block

COMMIT = "write_deltalake("
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
