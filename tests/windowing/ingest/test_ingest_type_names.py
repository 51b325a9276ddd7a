"""Words that are no types are found without a JVM, and no type of Spark is refused."""

import pytest

from windowing.errors import SpecError
from windowing.ingest.columns import parse_columns
from windowing.ingest.type_names import find_unknown_type


@pytest.mark.parametrize(
    "text",
    [
        *("bigint", "BIGINT", "decimal(10,2)", "decimal( 10 , 2 )", "varchar(20)", "char(3)"),
        *("timestamp_ntz", "timestamp_ltz", "binary", "variant", "void", "interval day to second"),
        *("array<int>", "array< array<decimal(5,2)> >", "map<string,array<double>>"),
        "map<decimal(10,2),decimal(5,2)>",
        "struct<a:int,b:string>",
        "struct<a int, b: struct<c: array<double>, d map<string,int>>>",
        "struct<a: int NOT NULL COMMENT 'a: bigit, (', b: decimal(5,2) COMMENT \"x\">",
        "struct<`a b`:int,`c,d: e`:decimal(5,2),`<`:int>",
        *("struct<>", "struct<order:int,int:int>", "string collate UTF8_BINARY"),
    ],
)
def test_types_of_spark_are_known(text: str) -> None:
    assert find_unknown_type(text) is None


@pytest.mark.parametrize(
    ("text", "word"),
    [
        ("bigit", "bigit"),
        ("number(10)", "number"),
        ("array<bigit>", "bigit"),
        ("map<string,bigit>", "bigit"),
        ("map<strng,bigint>", "strng"),
        ("struct<a:int,b:bigit>", "bigit"),
        ("struct<a:struct<b bigit>,c:int>", "bigit"),
        ("struct<a:decimal(5,2),b:decmal(5,2)>", "decmal"),
        ("list<int>", "list"),
    ],
)
def test_a_word_that_is_no_type_is_found(text: str, word: str) -> None:
    assert find_unknown_type(text) == word
    for given in (text, {"type": text, "from": "x"}):
        with pytest.raises(SpecError, match="is no type of Spark"):
            parse_columns({"columns": {"v": given}})


@pytest.mark.parametrize(
    "text", ["", "array<", "struct<a", ">>", "array<int", "a b c", "struct<a:>"]
)
def test_texts_that_are_no_types_raise_nothing_here(text: str) -> None:
    assert find_unknown_type(text) in (None, "a")
