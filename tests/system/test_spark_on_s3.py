"""Spark sessions and delta-rs at once on tables of one S3 server."""

import subprocess
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from itertools import count
from multiprocessing import get_context

import pyarrow as pa
import pytest
from deltalake import CommitProperties, DeltaTable, write_deltalake
from deltalake.exceptions import CommitFailedError

from jobs.foreign_errors.commit_errors import explain_commit_error
from tests.support.s3_server import KEYS, S3Server
from tests.support.spark_on_s3 import SparkOnS3, started_spark
from windowing.errors import Busy
from windowing.storage.files import locate_uri
from windowing.storage.s3_settings import read_s3_settings
from windowing.storage.spark_internals import FENCED
from windowing.storage.store import store_of

VERSIONS = 150
"""How many versions two writers make together, as far as there is time."""
ONCE = CommitProperties(max_commit_retries=0)
_NUMBERS = count(1)


@pytest.fixture(scope="module")
def bucket(s3_server: S3Server) -> str:
    return s3_server.make_bucket()


@pytest.fixture(scope="module")
def one(jvm: None, s3_server: S3Server) -> Iterator[SparkOnS3]:
    with started_spark(s3_server.environ) as started:
        yield started


@pytest.fixture
def rust(s3_server: S3Server, monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    """The options of delta-rs, which reads the keys itself."""
    for name, value in s3_server.environ.items():
        monkeypatch.setenv(name, value)
    return read_s3_settings(s3_server.environ).for_rust()


@pytest.fixture
def lake(bucket: str) -> str:
    return f"{bucket}/lake-{next(_NUMBERS)}"


def append_by_rust(table: str, options: dict[str, str], rows: Sequence[int]) -> list[int]:
    """Appends rows by a commit each, without a retry; those that were acknowledged."""
    done = []
    for each in rows:
        try:
            write_deltalake(
                table,
                pa.table({"id": [each]}),
                mode="append",
                storage_options=options,
                commit_properties=ONCE,
            )
            done.append(each)
        except CommitFailedError:
            continue
    return done


def append_all_by_rust(table: str, options: dict[str, str], rows: Sequence[int]) -> int:
    """Appends all rows by a commit each, again where that was refused; how often it was."""
    left, refused = [*rows], 0
    while left:
        done = append_by_rust(table, options, left)
        refused += len(left) - len(done)
        left = [row for row in left if row not in done]
    return refused


def rows_by_rust(table: str, options: dict[str, str]) -> list[int]:
    found = DeltaTable(table, storage_options=options)
    return sorted(found.to_pyarrow_table(columns=["id"]).column("id").to_pylist())


def list_data(table: str) -> list[str]:
    """The files of a table that have rows."""
    files = store_of(locate_uri(table)).list_files(locate_uri(table))
    return [name for name in files if name.endswith(".parquet") and "/" not in name]


def check_table(one: SparkOnS3, table: str, rust: dict[str, str], rows: list[int]) -> None:
    """Both readers find these rows and no other, and as many versions."""
    assert one.ask("read", table) == rows
    assert rows_by_rust(table, rust) == rows
    assert DeltaTable(table, storage_options=rust).version() == len(rows) - 1


@pytest.mark.parametrize("versions", [20, pytest.param(VERSIONS, marks=pytest.mark.deep)])
def test_two_sparks_lose_and_double_nothing(
    one: SparkOnS3,
    jvm: None,
    s3_server: S3Server,
    lake: str,
    rust: dict[str, str],
    versions: int,
) -> None:
    table, each = f"s3a://{lake}/table", versions // 2
    with started_spark(s3_server.environ) as other:
        one.ask("append", table, 0, 1)
        one.begin("append", table, 1000, each)
        other.begin("append", table, 2000, each)
        assert (one.end(), other.end()) == (each, each)
    check_table(one, table, rust, [0, *range(1000, 1000 + each), *range(2000, 2000 + each)])


@pytest.mark.parametrize("of_spark", [20, pytest.param(VERSIONS, marks=pytest.mark.deep)])
def test_spark_and_delta_rs_lose_and_double_nothing(
    one: SparkOnS3, lake: str, rust: dict[str, str], of_spark: int
) -> None:
    """Whoever has more to do goes on alone at the end; who is refused says so."""
    table = f"s3a://{lake}/table"
    one.ask("append", table, 0, 1)
    with ThreadPoolExecutor(1) as pool:
        one.begin("append", table, 1, of_spark)
        by_rust = pool.submit(append_by_rust, table, rust, range(1000, 1000 + VERSIONS))
        assert one.end() == of_spark
        done = by_rust.result()
    check_table(one, table, rust, [*range(of_spark + 1), *done])
    assert len(done) > VERSIONS // 2


def test_two_of_delta_rs_lose_and_double_nothing(
    one: SparkOnS3, lake: str, rust: dict[str, str]
) -> None:
    """Each of 150 versions is one of both, until all rows are there."""
    table = f"s3a://{lake}/table"
    one.ask("append", table, 0, 1)
    ranges = [range(first, first + VERSIONS // 2) for first in (1000, 2000)]
    # Threads of one process share a connection, and processes have their own.
    with ProcessPoolExecutor(2, get_context("spawn")) as pool:
        writing = [pool.submit(append_all_by_rust, table, rust, rows) for rows in ranges]
        refused = [each.result() for each in writing]
    check_table(one, table, rust, [0, *ranges[0], *ranges[1]])
    assert sum(refused), "they have met"


def test_who_was_overtaken_commits_nothing_more(
    one: SparkOnS3, lake: str, rust: dict[str, str]
) -> None:
    table = f"s3a://{lake}/table"
    one.ask("fence", f"s3a://{lake}")
    assert FENCED in one.ask("append", table, 0, 1)
    one.ask("allow", table, 0)
    assert one.ask("append", table, 0, 2) == 2
    assert append_by_rust(table, rust, [100]) == [100]
    for refused in (one.ask("append", table, 2, 1), one.ask("merge", table, 3)):
        assert f"{FENCED}: version 3 of {table} may not be committed" in refused
        assert isinstance(explain_commit_error(refused), Busy)
    assert one.ask("read", table) == rows_by_rust(table, rust) == [0, 1, 100]
    one.ask("allow", table, 3)
    assert one.ask("merge", table, 3) == 3


def test_who_was_overtaken_deletes_no_file(one: SparkOnS3, lake: str, rust: dict[str, str]) -> None:
    """Those that the next one has not committed yet would be among them."""
    table = f"s3a://{lake}/table"
    assert (one.ask("append", table, 0, 1), one.ask("overwrite", table, 1)) == (1, 1)
    one.ask("fence", f"s3a://{lake}")
    one.ask("allow", table, 2)
    assert append_by_rust(table, rust, [100]) == [100]
    before = list_data(table)
    assert f"{FENCED}: version 3 of {table} may not be committed" in one.ask("vacuum", table)
    assert list_data(table) == before
    one.ask("allow", table, 3)
    assert one.ask("vacuum", table) == ["VACUUM END", "VACUUM START"]
    assert len(list_data(table)) == len(before) - 1 == 2


def test_the_secret_is_in_no_setting_and_on_no_command_line(one: SparkOnS3) -> None:
    said = one.ask("settings")
    assert "spark.hadoop.fs.s3a.endpoint" in said
    assert KEYS.secret not in said
    assert KEYS.access not in said
    command_lines = subprocess.run(
        ["ps", "-eww", "-o", "args"], capture_output=True, text=True, check=True
    ).stdout
    assert "tests.support.spark_on_s3" in command_lines
    assert "fs.s3a.endpoint" in command_lines
    assert KEYS.secret not in command_lines
