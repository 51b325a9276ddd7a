"""What is read of files that land, and what is said of those that gzip has not written."""

import errno
import gzip
import os
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from windowing.location import Location
from windowing.storage.landed_files import (
    UnreadableFile,
    check_gzip,
    read_beginning,
    read_parquet_columns,
)
from windowing.storage.store import LocalStore

ROWS = b"".join(b"%d,a\n" % (n * n) for n in range(9000))
ZIPPED = gzip.compress(ROWS)
CUT_OFF = "ends in the middle of what gzip has compressed"
NO_GZIP = "is not compressed by gzip, as its name says"


def landed(folder: Path, content: bytes) -> Location:
    file = folder / "a.csv.gz"
    file.write_bytes(content)
    return Location(str(file))


@pytest.mark.parametrize(
    "content",
    [
        ZIPPED,
        gzip.compress(b"") + ZIPPED,
        gzip.compress(ROWS[:7]) + gzip.compress(b"") + gzip.compress(ROWS[7:]),
        ZIPPED + b"\0" * 512,
    ],
    ids=["one part", "an empty part first", "more parts", "padded"],
)
def test_what_gzip_has_compressed_in_any_parts_is_read(content: bytes, tmp_path: Path) -> None:
    file = landed(tmp_path, content)
    check_gzip(file)
    assert read_beginning(file, 100, is_gzip=True) == ROWS[:100]
    assert read_beginning(file, 2 * len(ROWS), is_gzip=True) == ROWS


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (ZIPPED[:-2000], CUT_OFF),
        (ZIPPED[:-4], CUT_OFF),
        (ROWS, NO_GZIP),
        (ZIPPED + ROWS, NO_GZIP),
        (ZIPPED[:100] + bytes(100) + ZIPPED[200:], NO_GZIP),
    ],
    ids=["cut off", "without its end", "text", "text behind it", "damaged"],
)
def test_what_gzip_has_not_compressed_is_told(content: bytes, reason: str, tmp_path: Path) -> None:
    file = landed(tmp_path, content)
    for read in (lambda: check_gzip(file), lambda: read_beginning(file, 1 << 20, is_gzip=True)):
        with pytest.raises(UnreadableFile) as error:
            read()
        assert error.value.reason == reason


def test_a_file_that_is_not_compressed_is_read_as_it_is(tmp_path: Path) -> None:
    file = landed(tmp_path, ZIPPED)
    assert read_beginning(file, 100, is_gzip=False) == ZIPPED[:100]


@pytest.mark.parametrize(
    ("old", "new"),
    [(b"place", b"\xff" * 5), (b"id", b"\xff\xff")],
)
def test_a_parquet_file_with_a_damaged_footer_is_told(
    old: bytes, new: bytes, tmp_path: Path
) -> None:
    file = tmp_path / "a.parquet"
    pq.write_table(pa.table({"id": [1], "place": ["a"]}), file, store_schema=False)
    assert read_parquet_columns(Location(str(file)))[0] == ("id", "place")
    whole = file.read_bytes()
    for content in (whole.replace(old, new), whole[:-60] + b"\xff" * 50 + whole[-10:]):
        file.write_bytes(content)
        with pytest.raises(UnreadableFile) as error:
            read_parquet_columns(Location(str(file)))
        assert error.value.reason == "is not a Parquet file, or is not complete"


def test_an_error_of_the_system_says_nothing_of_a_parquet_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(store: LocalStore, file: Location) -> pa.NativeFile:
        raise OSError(errno.EIO, os.strerror(errno.EIO), file.text)

    monkeypatch.setattr(LocalStore, "open", fail)
    with pytest.raises(OSError, match="Input/output error"):
        read_parquet_columns(Location(str(tmp_path / "a.parquet")))
