"""Names, types and the file that pins them: what files say, and what a table can have."""

from pathlib import Path

import pytest

from windowing.errors import SpecError
from windowing.ingest.columns import (
    PinnedColumn,
    add_columns,
    check_content,
    parse_columns,
    read_columns,
    render_columns,
)
from windowing.ingest.header import read_header
from windowing.ingest.inference import Guess, guess_type
from windowing.ingest.names import name_columns, tell_apart
from windowing.spec.pipeline import CsvForm

PLAIN = CsvForm()
SEMICOLON = CsvForm(delimiter=";")
DAYS = [f"{day}.2.2026" for day in range(1, 29)]
DAY_ONLY = Guess("date", "d.M.yyyy")
AMOUNTS = [f"{euros}.50" for euros in range(30)]
DAY_FIRST = Guess("date", "d/M/yyyy")


@pytest.mark.parametrize(
    ("names", "found"),
    [
        (["id", "price"], ["id", "price"]),
        (["Total Amount"], ["Total_Amount"]),
        (["price (EUR), net"], ["price_EUR_net"]),
        (["a.b", "a`b", "a=b", "a\tb"], ["a_b", "a_b_2", "a_b_3", "a_b_4"]),
        (["id", "ID"], ["id", "ID_2"]),
        (["", " ", "x"], ["column_1", "column_2", "x"]),
        (
            ["source_file", "RESCUED", "judged_by", "_change_type"],
            ["source_file_2", "RESCUED_2", "judged_by_2", "_change_type_2"],
        ),
        (["_id", "__v"], ["_id", "v"]),
        (["größe", "価格"], ["größe", "価格"]),
        (["{}", "_"], ["column_1", "column_2"]),
        (["2026", "1st"], ["column_2026", "column_1st"]),
        (["@type", "order-id", "Betrag €"], ["type", "order_id", "Betrag"]),
    ],
)
def test_names_that_a_table_can_not_have_are_changed_by_rule(
    names: list[str], found: list[str]
) -> None:
    assert list(name_columns(names)) == found


def test_names_of_one_header_are_told_apart() -> None:
    assert tell_apart(["a", "a", "a", "", "A"]) == ("a", "a_2", "a_3", "column_4", "A")


EURO = CsvForm(decimal=",", thousands=".")


@pytest.mark.parametrize(
    ("values", "form", "guess"),
    [
        (["1", "-7", "+3", "0"], PLAIN, Guess("bigint")),
        (["1", "007"], PLAIN, Guess("string")),
        # No double holds these, so they would be lost.
        (["9" * 19], PLAIN, Guess("string")),
        (["1790123456789012345"], PLAIN, Guess("string")),
        (["12345678901234567", "1.5"], PLAIN, Guess("string")),
        (["1234567890123456.5"], PLAIN, Guess("string")),
        (["123456789012345.5"], PLAIN, Guess("double")),
        (["123456789.123456789"], PLAIN, Guess("string")),
        (["0.12345678901234567891", "1.5"], PLAIN, Guess("string")),
        (["12345678.901234567e3"], PLAIN, Guess("string")),
        (["1e400"], PLAIN, Guess("string")),
        ([*AMOUNTS, "123456789.123456789"], PLAIN, Guess("string")),
        # Each is what a double is written as, or has zeros more.
        (["0.30000000000000004", "2.5000000000000000000", "1e-7"], PLAIN, Guess("double")),
        (["123456789,123456789"], CsvForm(decimal=","), Guess("string")),
        (["123456789012345678", "7"], PLAIN, Guess("bigint")),
        (["1.5", "2"], PLAIN, Guess("double")),
        (["1e5", ".5"], PLAIN, Guess("double")),
        (["1.50", "-20.00"], PLAIN, Guess("decimal(18,2)")),
        (["1.50", "2"], PLAIN, Guess("double")),
        (["1.50", "2.505"], PLAIN, Guess("double")),
        (["1,5", "2"], PLAIN, Guess("string")),
        (["1,5", "2"], CsvForm(decimal=","), Guess("double")),
        (["1.5"], CsvForm(decimal=","), Guess("string")),
        (["1.234,50", "7,00"], EURO, Guess("decimal(18,2)")),
        (["1.234", "7"], EURO, Guess("bigint")),
        (["1.23,50"], EURO, Guess("string")),
        (["true", "FALSE"], PLAIN, Guess("boolean")),
        (["2026-03-02"], PLAIN, Guess("date")),
        (["2026-03-02T10:05:00Z", "2026-03-02 10:05:00.5+02:00"], PLAIN, Guess("timestamp")),
        (["2026-03-02T10:05Z"], PLAIN, Guess("string")),
        (["2026-03-02T10:05:00.1234560Z"], PLAIN, Guess("timestamp")),
        (["2026-03-02T10:05:00.1234567Z"], PLAIN, Guess("string")),
        (["2026-03-02 10:05:00.123456789"], PLAIN, Guess("string")),
        (["2026-03-02 10:05", "2026-03-02T10:05:01.25"], PLAIN, Guess("timestamp_ntz")),
        (["2026-03-02 10:05", "2026-03-02T10:05:01Z"], PLAIN, Guess("string")),
        (["31/12/2025 23:50"], PLAIN, Guess("timestamp_ntz", "d/M/yyyy H:mm[:ss]")),
        (["12/31/2025 11:50 PM"], PLAIN, Guess("timestamp_ntz", "M/d/yyyy h:mm a")),
        (["1/2/2025"], PLAIN, Guess("string")),
        (["1/2/2025", "13/2/2025"], PLAIN, Guess("date", "d/M/yyyy")),
        (["1.2.2025"], PLAIN, Guess("date", "d.M.yyyy")),
        ([*DAYS[:19], "31.12.2025 25:61"], PLAIN, Guess("date", "d.M.yyyy")),
        ([*DAYS[:18], "soon"], PLAIN, Guess("string")),
        ([*(f"2026-03-{n:02}" for n in range(1, 20)), ""], PLAIN, Guess("date")),
        ([*(f"2026-03-{n:02}" for n in range(1, 20)), "2026-3-1"], PLAIN, Guess("date")),
        ([*(f"{n}/2/2026" for n in range(1, 13)), *(["13/2/2026"] * 9)], PLAIN, DAY_FIRST),
        ([*DAYS, *(["n/a"] * 3)], PLAIN, Guess("string")),
        ([*(["1.2.2026", "13.2.2026"] * 10), "soon"], PLAIN, DAY_ONLY),
        # Codes look like whole numbers, so nothing else may stand among those.
        ([*map(str, range(40)), "x"], PLAIN, Guess("string")),
        ([*AMOUNTS, "abc"], PLAIN, Guess("decimal(18,2)")),
        ([*AMOUNTS, "7", "abc"], PLAIN, Guess("double")),
        ([*AMOUNTS[:18], "abc"], PLAIN, Guess("string")),
        ([*AMOUNTS, *(["n/a"] * 3)], PLAIN, Guess("string")),
        ([*(text.replace(".", ",") for text in AMOUNTS), "abc"], EURO, Guess("decimal(18,2)")),
        # These are numbers of another form, or codes: most likely right, so they are kept as text.
        ([*AMOUNTS, "1.234,50"], PLAIN, Guess("string")),
        ([*AMOUNTS, "1.2.3"], PLAIN, Guess("string")),
        ([*AMOUNTS, "007"], PLAIN, Guess("string")),
        ([*(f"{n}e2" for n in range(1, 40)), "1a2"], PLAIN, Guess("string")),
        (["1-13-2025"], PLAIN, Guess("date", "M-d-yyyy")),
        (["13/13/2025"], PLAIN, Guess("string")),
        (["1", "NA", ""], CsvForm(nulls=("NA",)), Guess("bigint")),
        (["1", "NA"], PLAIN, Guess("string")),
        ([" 1 ", None], PLAIN, Guess("bigint")),
        ([None, ""], PLAIN, Guess("string")),
        (["-", "."], PLAIN, Guess("string")),
    ],
)
def test_a_type_is_the_narrowest_that_loses_nothing(
    values: list[str | None], form: CsvForm, guess: Guess
) -> None:
    assert guess_type(values, form) == guess


@pytest.mark.parametrize(
    ("beginning", "form", "names", "line"),
    [
        (b"id,price\n1,2\n", PLAIN, ("id", "price"), "id,price"),
        (b"\xef\xbb\xbfid,price\r\n1,2", PLAIN, ("id", "price"), "id,price"),
        (b'"Total ""A""","b,c"\n', PLAIN, ('Total "A"', "b,c"), '"Total ""A""","b,c"'),
        (b"\n\nid;price\n", SEMICOLON, ("id", "price"), "id;price"),
        (b"id\tprice", CsvForm(delimiter="\t"), ("id", "price"), "id\tprice"),
        (b"caf\xe9,x\n", CsvForm(encoding="windows-1252"), ("café", "x"), "café,x"),
        (b"1,2\n3,4\n", CsvForm(header=False), ("column_1", "column_2"), None),
        (b"", PLAIN, (), None),
        (b"\n \n", PLAIN, (), None),
        (b"a,a,\n", PLAIN, ("a", "a_2", "column_3"), "a,a,"),
        (b"id,price\r1,2\r", PLAIN, ("id", "price"), "id,price"),
        # The names are not always in the first line that is not blank.
        (b";;\r\n \r\nid;x;\r\n1;2;3", SEMICOLON, ("id", "x", "column_3"), "id;x;"),
        (b'""\n"the\nid",x\n1,2\n', PLAIN, ("the\nid", "x"), '"the'),
    ],
)
def test_the_first_line_names_the_columns(
    beginning: bytes, form: CsvForm, names: tuple[str, ...], line: str | None
) -> None:
    found = read_header(beginning, form)
    assert (found.names, found.line) == (names, line)


def test_a_written_file_is_read_as_it_was_meant(tmp_path: Path) -> None:
    columns = (
        PinnedColumn("id", "bigint", "id"),
        PinnedColumn("Total_Amount", "decimal(10,2)", 'Total "Amount"'),
        PinnedColumn("at", "timestamp_ntz", "at", "d/M/yyyy H:mm"),
        PinnedColumn("on", "struct<a:int,b:array<string>>", "on: #"),
        PinnedColumn("null", "string", "null"),
    )
    file = tmp_path / "c.yaml"
    file.write_text(render_columns(columns, ["for people"]))
    assert read_columns(str(file)) == columns
    assert file.read_text().startswith("# for people\ncolumns:\n  id: bigint\n")


@pytest.mark.parametrize("source", ['a "b"\n\tc\\', "\x07\x7f\x85\xa0\u2028\ufeff", "😀", " "])
def test_any_name_of_files_is_written_as_it_was_meant(source: str, tmp_path: Path) -> None:
    columns = (PinnedColumn("id", "bigint", source),)
    file = tmp_path / "c.yaml"
    file.write_text(render_columns(columns, []))
    assert read_columns(str(file)) == columns


ADDED = (PinnedColumn("Unit_Price", "double", "Unit Price"),)
LINE = '  Unit_Price: {type: "double", from: "Unit Price"}\n'
PINNED = (PinnedColumn("id", "bigint", "id"), PinnedColumn("place", "string", "Ort"))
ANEW = 'columns:\n  id: bigint\n  place: {type: "string", from: "Ort"}\n' + LINE


@pytest.mark.parametrize(
    ("text", "longer"),
    [
        (
            "columns:\n  place: {type: string, from: Ort} # by hand\n  id: bigint\n\n",
            f"columns:\n  place: {{type: string, from: Ort}} # by hand\n  id: bigint\n{LINE}",
        ),
        ("columns:\n  id: bigint\n  place:\n    type: string\n    from: Ort", None),
        ("columns: {id: bigint, place: {type: string, from: Ort}}\n", ANEW),
        ("{columns: {id: bigint, place: {type: string, from: Ort}}}", ANEW),
        ("columns:\n    id: bigint\n    place: {type: string, from: Ort}\n", ANEW),
        (
            "# ours\r\n\n#  kept\ncolumns: {id: bigint, place: {type: string, from: Ort}} # not\n",
            "# ours\r\n\n#  kept\n" + ANEW,
        ),
        ("# only\n---\ncolumns:\n  id: bigint\n  place: {type: string, from: Ort}\n...\n", None),
    ],
)
def test_columns_are_added_to_any_way_of_writing_the_file(
    text: str, longer: str | None, tmp_path: Path
) -> None:
    file = tmp_path / "c.yaml"
    file.write_text(text, newline="")
    pinned = read_columns(str(file))
    assert sorted(pinned, key=lambda column: column.name) == list(PINNED)
    found = add_columns(text, pinned, ADDED)
    file.write_text(found, newline="")
    assert read_columns(str(file)) == (*pinned, *ADDED)
    assert longer is None or found == longer


def test_more_columns_than_a_file_can_have_are_refused_before_it_is_written() -> None:
    columns = [PinnedColumn(f"column_{n}", "string", f"{n} {'x' * 200}") for n in range(2000)]
    with pytest.raises(SpecError, match=r"^/c\.yaml: is larger than 256 KB"):
        check_content("/c.yaml", render_columns(columns, []).encode())


@pytest.mark.parametrize(
    ("given", "field", "says"),
    [
        (["id"], "columns", "nothing else"),
        ({"columns": {}}, "columns", "is empty"),
        ({"columns": {"id": 5}}, "columns.id", "neither a type"),
        ({"columns": {"id": {"typ": "int"}}}, "columns.id.typ", "did you mean 'type'"),
        ({"columns": {"id": {"from": "x"}}}, "columns.id.type", "is missing"),
        ({"columns": {"id": {"type": 5}}}, "columns.id.type", "no text"),
        ({"columns": {"a b": "int"}}, "columns.a b", 'call it a_b, with from: "a b"'),
        ({"columns": {"id": "int", "ID": "int"}}, "columns.ID", "call it ID_2"),
        ({"columns": {"rescued": "int"}}, "columns.rescued", "is not source_file or rescued"),
        (
            {"columns": {"a": "int", "b": {"type": "int", "from": "a"}}},
            "columns.b.from",
            "the column a already",
        ),
        (
            {"columns": {"a": {"type": "int", "format": "d/M/yyyy"}}},
            "columns.a.format",
            "is for date, timestamp, timestamp_ntz",
        ),
        (
            {"columns": {"a": {"type": "timestamp", "format": "d/M/yyyy H:mm"}}},
            "columns.a.format",
            "timestamp_ntz",
        ),
        (
            {"columns": {"a": {"type": "timestamp_ntz", "format": "yyyy-MM-dd'T'HH:mmX"}}},
            "columns.a.format",
            "timestamp",
        ),
        (
            {"columns": {"a": {"type": "date", "format": "JJJJ"}}},
            "columns.a.format",
            "is 'JJJJ', in which 'JJJJ' reads nothing; allowed: yyyy, MM,",
        ),
    ],
)
def test_a_wrong_file_is_told_by_field(given: object, field: str, says: str) -> None:
    with pytest.raises(SpecError) as error:
        parse_columns(given)
    assert error.value.field == field
    assert says in error.value.message


def parse_format(kind: str, pattern: str) -> str | None:
    """The pattern of a column that is pinned with it."""
    (column,) = parse_columns({"columns": {"a": {"type": kind, "format": pattern}}})
    return column.format


@pytest.mark.parametrize(
    ("kind", "pattern"),
    [
        ("date", "d/M/yyyy"),
        ("date", "M-d-yyyy"),
        ("date", "dd.MM.yy"),
        ("date", "d MMM yyyy"),
        ("timestamp_ntz", "d/M/yyyy H:mm"),
        ("timestamp_ntz", "d.M.yyyy H:mm[:ss]"),
        ("timestamp_ntz", "M/d/yyyy h:mm a"),
        ("timestamp_ntz", "yyyy-MM-dd'T'HH:mm[:ss[.SSSSSSSSS]]"),
        ("timestamp_ntz", "yyyyMMdd HHmmss"),
        ("timestamp_ntz", "d/M/yyyy"),
        ("timestamp_ntz", "d/M/yyyy H:mm 'o''clock [CET]'"),
        ("timestamp", "yyyy-MM-dd'T'HH:mm:ssX"),
        ("timestamp", "yyyy-MM-dd HH:mm:ss[.SSS]xxx"),
        ("timestamp", "yyyy-MM-dd HH:mm Z"),
        ("timestamp", "yyyy-MM-dd HH:mm OOOO"),
        ("timestamp", "yyyy-MM-dd HH:mm VV"),
        ("timestamp", "d/M/yyyy h:mm a z"),
    ],
)
def test_times_are_read_by_a_pattern(kind: str, pattern: str) -> None:
    assert parse_format(kind, pattern) == pattern


NO_DAY = "a time has year, month and day, as in dd/MM/yyyy"


@pytest.mark.parametrize(
    ("kind", "pattern", "says"),
    [
        ("date", "dd/mm/yyyy", f"is 'dd/mm/yyyy', which reads no month; {NO_DAY}"),
        ("timestamp_ntz", "HH:mm", f"is 'HH:mm', which reads no year; {NO_DAY}"),
        ("timestamp_ntz", "yyyy-MM-dd HH:mm:SS", "which reads the fraction without the second"),
        ("timestamp_ntz", "dd/MM/yyyy hh:mm", "which has one of hh and a; they belong together"),
        ("timestamp_ntz", "dd/MM/yyyy HH:mm a", "which has one of hh and a; they belong together"),
        ("date", "E d/M/yyyy", "in which 'E' reads nothing"),
        ("date", "uuuu-MM-dd", "in which 'uuuu' reads nothing"),
        ("date", "YYYY-MM-dd", "in which 'YYYY' reads nothing"),
        ("date", "d/M/y", "in which 'y' reads nothing"),
        ("timestamp", "yyyy-MM-dd HH:mm V", "in which 'V' reads nothing"),
        ("timestamp", "yyyy-MM-dd HH:mm X z", "which reads the offset twice, by 'X' and 'z'"),
        ("date", "d/M/yyyy 'at", 'in which "\'" is not allowed; write other marks in quotes'),
        ("date", "d/M/yyyy {}", "in which '{' is not allowed"),
        (
            "timestamp_ntz",
            "[yyyy-MM-dd ]HH:mm",
            "'[yyyy-MM-dd ]HH:mm' has too much in brackets: without that it is one which reads no "
            f"year; {NO_DAY}",
        ),
        ("timestamp_ntz", "d/M/yyyy h:mm[ a]", "without that it is one which has one of hh and a"),
        ("timestamp_ntz", "d/M/yyyy H[H]:mm", "which reads the hour twice, by 'H' and 'H'"),
        ("timestamp_ntz", "d/M/yyyy H:mm[:ss", "has a bracket without the other one"),
        ("timestamp_ntz", "d/M/yyyy H:mm]:ss[", "has a bracket without the other one"),
        ("timestamp", "yyyy-MM-dd HH:mm[X]", "has no zone, which an instant needs"),
        ("timestamp_ntz", "yyyy-MM-dd HH:mm[X]", "has a zone, so the times are instants"),
    ],
)
def test_a_pattern_that_reads_no_time_is_refused(kind: str, pattern: str, says: str) -> None:
    with pytest.raises(SpecError) as error:
        parse_format(kind, pattern)
    assert error.value.field == "columns.a.format"
    assert says in error.value.message
