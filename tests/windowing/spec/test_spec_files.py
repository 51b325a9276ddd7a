"""`source.files`: what is read from it, and one sentence for each thing that can't be."""

from pathlib import Path
from typing import Any

import pytest

from tests.windowing.spec.specs import changed
from windowing.errors import SpecError
from windowing.location import Location
from windowing.spec.load import load_pipeline
from windowing.spec.pipeline import CsvForm, Files

PLACES = {"folder": "/drop", "columns": "/spec/columns.yaml"}


def files_of(**fields: Any) -> Files:
    pipeline = load_pipeline(changed(**{"source/files": {**PLACES, **fields}}))
    assert pipeline.source.files is not None
    return pipeline.source.files


def refused(**fields: Any) -> tuple[str, str]:
    with pytest.raises(SpecError) as error:
        files_of(**fields)
    return error.value.field, error.value.message


def test_defaults_are_those_of_the_page() -> None:
    assert files_of() == Files(Location("/drop"), Location("/spec/columns.yaml"))


def test_every_field_is_read() -> None:
    csv = {
        "header": False,
        "delimiter": "\t",
        "quote": "'",
        "escape": "\\",
        "encoding": "windows-1252",
        "decimal": ",",
        "thousands": " ",
    }
    found = files_of(
        **csv, nulls=["NA"], multiline=True, on_new_column="add", on_unfit_value="rescue"
    )
    assert found.csv == CsvForm(**csv, nulls=("NA",))
    assert (found.multiline, found.on_new_column, found.on_unfit_value) == (True, "add", "rescue")


@pytest.mark.parametrize("quote", ['"', "'"])
def test_an_escape_that_is_the_quote_stands_for_doubled_quotes(quote: str) -> None:
    assert files_of(quote=quote, escape=quote).csv == CsvForm(quote=quote)


def test_a_document_with_a_list_of_records_spans_lines() -> None:
    found = files_of(format="json", records="data.items")
    assert (found.records, found.multiline) == (("data", "items"), True)


def test_columns_lie_beside_the_spec(tmp_path: Path) -> None:
    spec = tmp_path / "pipelines" / "shop.yaml"
    spec.parent.mkdir()
    spec.write_text(
        "name: shop\nlake: ../lake\n"
        "source: {table: ../lake/in, event_time: at, key: [k], files: {folder: ../drop}}\n"
        "aggregates: {n: count()}\nwindows: {hourly: {kind: tumbling, size: 1 hour}}\n"
    )
    files = load_pipeline(spec).source.files
    assert files is not None
    assert files.columns.text == f"{tmp_path}/pipelines/columns/shop.yaml"
    assert files.folder.text == f"{tmp_path}/drop"


@pytest.mark.parametrize(
    ("fields", "field", "says"),
    [
        ({"folder": ""}, "source.files.folder", "is not a path"),
        ({"folder": "/lake/../drop${X}"}, "source.files.folder", "environment variables"),
        ({"format": "xml"}, "source.files.format", "'csv', 'json' or 'parquet'"),
        ({"formatt": "csv"}, "source.files.formatt", "did you mean 'format'"),
        ({"delimiter": ";;"}, "source.files.delimiter", "is not one character"),
        ({"delimiter": ""}, "source.files.delimiter", "is not a delimiter"),
        ({"delimiter": "\n"}, "source.files.delimiter", "is not one character"),
        ({"quote": ","}, "source.files.quote", "is the delimiter, too"),
        ({"escape": ","}, "source.files.escape", "is the delimiter, too; give one of them another"),
        ({"thousands": "."}, "source.files.thousands", "stands before decimals, too"),
        ({"decimal": ";"}, "source.files.decimal", "'.' or ','"),
        ({"encoding": "latin9"}, "source.files.encoding", "'utf-8'"),
        ({"header": "yes"}, "source.files.header", "is not true or false"),
        ({"nulls": "NA"}, "source.files.nulls", "is not a list"),
        ({"on_new_column": "drop"}, "source.files.on_new_column", "'add', 'rescue' or 'fail'"),
        (
            {"format": "json", "delimiter": ";"},
            "source.files.delimiter",
            "is for format csv, and the format is json",
        ),
        (
            {"format": "parquet", "multiline": True},
            "source.files.multiline",
            "is for format csv and json",
        ),
        (
            {"records": "features"},
            "source.files.records",
            "is for format json, and the format is csv",
        ),
        ({"format": "json", "records": "a..b"}, "source.files.records", "names no field of JSON"),
        ({"columns": "s3://bucket/columns.yaml"}, "source.files.columns", "not on this machine"),
        ({"columns": None}, "source.files.columns", "is missing"),
    ],
)
def test_what_can_not_be_read_is_one_sentence(
    fields: dict[str, Any], field: str, says: str
) -> None:
    found, message = refused(**fields)
    assert found == field
    assert says in message


@pytest.mark.parametrize("folder", ["/lake/in/flights", "/lake/in", "/lake/in/flights/drop"])
def test_files_do_not_land_in_the_table(folder: str) -> None:
    spec = changed(
        **{"source/table": "/lake/in/flights", "source/files": {**PLACES, "folder": folder}}
    )
    with pytest.raises(SpecError, match=r"source\.files\.folder: .* lie in each other"):
        load_pipeline(spec)


@pytest.mark.parametrize(
    ("field", "path"),
    [
        ("folder", "/data/lake/departures/drop"),
        ("folder", "/data/lake/departures"),
        ("columns", "/data/lake/departures/columns.yaml"),
    ],
)
def test_what_a_reset_deletes_holds_no_files_of_others(field: str, path: str) -> None:
    spec = changed(**{"source/files": {**PLACES, field: path}})
    sentence = f"source.files.{field}: '{path}' lies among this pipeline's own tables in "
    with pytest.raises(SpecError, match=sentence):
        load_pipeline(spec)


def test_files_may_land_in_the_lake_beside_the_pipeline() -> None:
    places = {"folder": "/data/lake/departures_drop", "columns": "/data/lake/columns.yaml"}
    assert load_pipeline(changed(**{"source/files": places})).source.files is not None


def test_files_are_not_appended_to_a_name_of_a_catalog() -> None:
    with pytest.raises(SpecError, match="is a name of a catalog"):
        load_pipeline(changed(**{"source/table": "db.events", "source/files": PLACES}))


def test_files_that_land_are_no_part_of_what_numbers_follow_from() -> None:
    from windowing.spec.fingerprint import fingerprint

    with_files = load_pipeline(changed(**{"source/files": PLACES}))
    assert fingerprint(with_files) == fingerprint(load_pipeline(changed()))
