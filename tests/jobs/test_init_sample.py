"""What `init` looks at of a file, and what it says of files that can't be read."""

import gzip
import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from jobs.init_sample import FileSample, TableSample, check_apart, find_sample
from windowing.errors import UsageError
from windowing.location import Location


def test_a_document_on_one_long_line_is_read_as_a_whole(tmp_path: Path) -> None:
    features = [{"type": "Feature", "properties": {"note": "x" * 100}} for _ in range(40_000)]
    content = json.dumps({"type": "FeatureCollection", "features": features}).encode()
    assert len(content) > 4_000_000
    file = tmp_path / "quakes of May.json"
    file.write_bytes(content)
    expected = FileSample(file.name, content, {"format": "json", "records": "features"}, file)
    assert find_sample(str(file)) == expected
    assert find_sample(file.as_uri()) == expected
    file.write_bytes(json.dumps(features).encode())
    sample = find_sample(str(file))
    assert isinstance(sample, FileSample)
    assert sample.form == {"format": "json", "multiline": True}


def test_of_lines_the_last_one_is_whole(tmp_path: Path) -> None:
    file = tmp_path / "long.jsonl"
    line = json.dumps({"note": "x" * 2000}).encode() + b"\n"
    file.write_bytes(line * 3000)
    sample = find_sample(str(file))
    assert isinstance(sample, FileSample)
    assert sample.content == line * (4_000_000 // len(line))


@pytest.mark.parametrize(
    ("text", "form"),
    [
        ("at,shop\n2026-03-02 10:00:00,a\n", {}),
        ("at;shop\n2026-03-02 10:00:00;a\n", {"delimiter": ";"}),
    ],
)
def test_a_table_of_text_is_read_by_its_lines(
    text: str, form: dict[str, object], tmp_path: Path
) -> None:
    file = tmp_path / "sales.csv"
    file.write_text(text)
    assert find_sample(str(file)) == FileSample(file.name, text.encode(), form, file)


LONG = f'"POLYGON(({"1.5 2.5, " * 20_000}))"'


@pytest.mark.parametrize(
    "rows",
    [
        f"1;{LONG};2,5\n2;POINT;3,5\n",
        f"2;POINT;3,5\n1;{LONG};2,5\n",
        # What a quote has begun goes on over lines.
        '2;POINT;3,5\n1;"POLYGON;4,5\n' + f"2;{'POINT ' * 1000};3,5\n" * 90,
    ],
    ids=["first", "later", "open quote"],
)
def test_a_value_that_no_reader_takes_hides_no_form(rows: str, tmp_path: Path) -> None:
    file = tmp_path / "geo.csv"
    file.write_text(f"id;shape;size\n{rows}")
    sample = find_sample(str(file))
    assert isinstance(sample, FileSample)
    assert sample.form == {"delimiter": ";", "decimal": ","}


@pytest.mark.parametrize("name", ["cut.csv.gz", "cut.geojson.gz"])
def test_a_file_that_is_cut_off_is_one_sentence(name: str, tmp_path: Path) -> None:
    file = tmp_path / name
    content = gzip.compress(b"".join(b"%d,a\n" % (n * n) for n in range(9000)))
    file.write_bytes(content[:-2000])
    with pytest.raises(UsageError, match="can't be read \\(it is cut off or damaged\\)"):
        find_sample(str(file))


EMPTY = "is empty; name a file that has some records"
NO_ROWS = "has a header and no rows; name a file that has some"
NO_RECORD = "has no record; name a file that has some"


@pytest.mark.parametrize(
    ("name", "content", "says"),
    [
        ("e.csv", b"", EMPTY),
        ("e.csv", b"\xef\xbb\xbf\r\n \n", EMPTY),
        ("e.csv.gz", gzip.compress(b"", mtime=0), EMPTY),
        ("e.jsonl", b"\n\n", EMPTY),
        ("e.csv", b"at;shop\r\n\r\n", NO_ROWS),
        ("e.csv", b'at,"the\nshop"\n', NO_ROWS),
        ("e.json", b" []", NO_RECORD),
        ("e.json", b'[{"a": 1}]', None),
        ("e.json", b"[", None),
        ("e.jsonl", b"{}\n{}\n", NO_RECORD),
        ("e.jsonl", b"{}\n{", None),
        ("e.geojson", b'{"features": []}', NO_RECORD),
        ("e.geojson", b'{"features": 1}', None),
        ("e.csv", b"at,shop\n1,2\n", None),
        ("e.csv", b"1,2\n", None),
    ],
)
def test_a_file_without_a_record_is_one_sentence(
    name: str, content: bytes, says: str | None, tmp_path: Path
) -> None:
    file = tmp_path / name
    file.write_bytes(content)
    if says is None:
        assert isinstance(find_sample(str(file)), FileSample)
        return
    with pytest.raises(UsageError) as refused:
        find_sample(str(file))
    assert str(refused.value) == f"--from {file}: {says}"


def test_a_parquet_file_without_a_row_is_one_sentence(tmp_path: Path) -> None:
    file = tmp_path / "e.parquet"
    pq.write_table(pa.table({"at": pa.array([], pa.timestamp("us"))}), file)
    with pytest.raises(UsageError, match=NO_RECORD):
        find_sample(str(file))


def test_what_is_not_there_is_one_sentence(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="there is no Delta table"):
        find_sample(tmp_path.as_uri())
    with pytest.raises(UsageError, match="can't be read \\(File name too long\\)"):
        find_sample("x" * 300)


def test_a_folder_in_the_table_is_refused() -> None:
    table = TableSample(Location("/data/sales"))
    check_apart(Path("/data/sales-by-hour"), table)
    with pytest.raises(UsageError, match="lies in the table /data/sales; name a folder elsewhere"):
        check_apart(Path("/data/sales/windows"), table)
