"""What is read of files that land, and what is said of those that gzip has not written."""

import gzip
from pathlib import Path

import pytest

from windowing.location import Location
from windowing.storage.landed_files import UnreadableFile, check_gzip, read_beginning

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
