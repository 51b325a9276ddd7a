"""What the first look at landed files finds: columns, files that are none, files that are gone."""

import gzip
from dataclasses import replace
from pathlib import Path

import pytest

from jobs.landing.reading import sort_files
from windowing.errors import UsageError
from windowing.ingest.rule import LandedFile
from windowing.location import Location
from windowing.spec.pipeline import CsvForm, Files

OPEN = 'id,place\n1,"a\n2,b\n3,c\n'
LANDED = LandedFile("a.csv", 1, 1)


def files_in(folder: Path) -> Files:
    """CSV files that land in a folder."""
    return Files(Location(str(folder)), Location(str(folder / "columns.yaml")))


@pytest.mark.parametrize("form", ["csv", "json", "parquet"])
def test_a_file_that_was_moved_away_is_a_sentence(form: str, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"/a\.csv was written to or removed while it was read"):
        sort_files(replace(files_in(tmp_path), format=form), [LANDED])


@pytest.mark.parametrize("encoding", ["utf-8", "windows-1252"])
def test_a_file_whose_last_quote_is_not_closed_is_told(encoding: str, tmp_path: Path) -> None:
    files = replace(files_in(tmp_path), multiline=True, csv=CsvForm(encoding=encoding))
    closed = (OPEN + '4,"é"\n').replace('"a\n', '"a\n"\n')
    for content, is_open in ((OPEN, True), (closed, False)):
        for name in ("a.csv", "a.csv.gz"):
            raw = content.encode(encoding)
            (tmp_path / name).write_bytes(gzip.compress(raw) if name.endswith(".gz") else raw)
            found = sort_files(files, [LandedFile(name, 1, 1)])
            reasons = {name: "has a quote that is not closed"} if is_open else {}
            assert (found.unreadable, found.files) == (reasons, [] if is_open else [name])


def test_where_records_are_lines_no_quote_goes_beyond_one(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text(OPEN)
    assert sort_files(files_in(tmp_path), [LANDED]).files == ["a.csv"]
