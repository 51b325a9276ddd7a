"""The digest of a key follows its values: not how they are shown, nor the type that holds them."""

from hashlib import sha256

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from windowing.admit.erased import digest_values, only_erased, without_erased
from windowing.columns import kept_name
from windowing.ledger.erased import (
    Erasure,
    Erasures,
    find_erasures,
    note_erased,
    note_lifted,
    read_erased,
)


def digests(spark: SparkSession, row: str, salt: str = "salt") -> str | None:
    """The digest of a key with these values, such as `7 as a, 'x' as b`."""
    rows = spark.sql(f"select {row}")
    values = {f.name: (F.col(f"`{f.name}`"), f.dataType) for f in rows.schema.fields}
    (found,) = rows.select(digest_values(values, salt).alias("digest")).collect()
    digest: str | None = found["digest"]
    return digest


EQUAL = [
    ("7Y as k", "7S as k"),
    ("7 as k", "7L as k"),
    ("7L as k", "cast(7 as decimal(20,4)) as k"),
    ("-7 as k", "cast(-7 as decimal(38,0)) as k"),
    ("100 as k", "cast(100 as decimal(12,2)) as k"),
    ("cast(1.5 as decimal(3,2)) as k", "cast(1.5 as decimal(38,18)) as k"),
    ("cast(0 as decimal(3,2)) as k", "cast(0 as decimal(38,18)) as k"),
    (
        "cast('0.00000001' as decimal(9,8)) as k",
        "cast('0.0000000100' as decimal(38,20)) as k",
    ),
    ("1 as a, 'x' as b", "'x' as b, 1L as a"),
    ("7 as k", "7D as k"),
    ("-2147483648 as k", "cast(-2147483648 as double) as k"),
    ("0 as k", "-0D as k"),
    ("date'2013-03-10' as k", "timestamp_ntz'2013-03-10 00:00:00' as k"),
    ("date'0001-01-01' as k", "timestamp_ntz'0001-01-01 00:00:00' as k"),
]
DIFFERENT = [
    ("7 as k", "'7' as k"),
    ("7 as k", "-7 as k"),
    ("10 as k", "100 as k"),
    ("cast(10 as decimal(12,2)) as k", "cast(100 as decimal(12,2)) as k"),
    ("cast(1.5 as decimal(9,2)) as k", "cast(1.05 as decimal(9,2)) as k"),
    ("true as k", "'true' as k"),
    ("date'2013-03-10' as k", "timestamp'2013-03-10 00:00:00' as k"),
    ("date'2013-03-10' as k", "'2013-03-10' as k"),
    ("timestamp'2013-03-10 00:00:00' as k", "timestamp'2013-03-10 00:00:00.000001' as k"),
    ("'a' as k", "'A' as k"),
    ("'a' as k", "'a ' as k"),
    ("'' as k", "' ' as k"),
    ("'ab' as a, 'c' as b", "'a' as a, 'bc' as b"),
    ("'x' as a, 'y' as b", "'y' as a, 'x' as b"),
    ("'1:bs' as a, '' as b", "'' as a, '1:bs' as b"),
    ("1 as a", "1 as b"),
    ("7 as k", "7.5D as k"),
    ("7 as k", "double('NaN') as k"),
    ("7 as k", "1e300 as k"),
    ("date'2013-03-10' as k", "timestamp_ntz'2013-03-10 00:00:00.000001' as k"),
    ("date'2013-03-10' as k", "timestamp_ntz'2013-03-11 00:00:00' as k"),
]


@pytest.mark.parametrize(("one", "other"), EQUAL)
def test_a_value_has_one_digest_whatever_its_type(
    one: str, other: str, spark: SparkSession
) -> None:
    assert digests(spark, one) == digests(spark, other) is not None


@pytest.mark.parametrize(("one", "other"), DIFFERENT)
def test_other_values_have_another_digest(one: str, other: str, spark: SparkSession) -> None:
    assert digests(spark, one) != digests(spark, other)


def test_a_digest_is_salted_and_pinned(spark: SparkSession) -> None:
    """It is stored in ledgers, so it must never change."""
    expected = sha256(b"salt1:an1:7" + "1:bs2:äb".encode()).hexdigest()
    assert digests(spark, "7 as a, 'äb' as b") == expected
    assert digests(spark, "7 as a, 'äb' as b", "pepper") != expected
    at = sha256(b"salt1:kt13:1363000000000").hexdigest()
    assert digests(spark, "timestamp_micros(1363000000000) as k") == at
    assert digests(spark, "date'1970-01-11' as k") == sha256(b"salt1:kd2:10").hexdigest()
    assert digests(spark, "false as k") == sha256(b"salt1:kb5:false").hexdigest()
    assert digests(spark, "12.50BD as k") == sha256(b"salt1:kn4:12.5").hexdigest()


def erased_of(spark: SparkSession, row: str, column: str | None = None) -> Erasures:
    """What is erased where that is the key or value of a row."""
    return Erasures("salt", frozenset({Erasure(digests(spark, row) or "", column)}))


def test_a_key_with_a_null_is_never_erased(spark: SparkSession) -> None:
    assert digests(spark, "1 as a, cast(null as string) as b") is None
    rows = spark.sql("select * from values (1, 'x'), (1, null), (null, 'x'), (2, 'x') as t(a, b)")
    erased = erased_of(spark, "1 as a, 'x' as b")
    kept = without_erased(rows, ("a", "b"), erased).collect()
    assert [(row["a"], row["b"]) for row in kept] == [(1, None), (None, "x"), (2, "x")]
    gone = only_erased(rows, ("a", "b"), erased).collect()
    assert [(row["a"], row["b"]) for row in gone] == [(1, "x")]


def test_a_value_is_erased_in_its_column_whatever_the_key(spark: SparkSession) -> None:
    rows = spark.sql("select * from values (1, 'x'), (null, 'x'), (1, 'y'), (2, null) as t(a, b)")
    erased = erased_of(spark, "'x' as b", "b")
    kept = without_erased(rows, ("a",), erased).collect()
    assert [(row["a"], row["b"]) for row in kept] == [(1, "y"), (2, None)]
    gone = only_erased(rows, ("a",), erased).collect()
    assert [(row["a"], row["b"]) for row in gone] == [(1, "x"), (None, "x")]
    as_key = erased_of(spark, "'x' as b")
    assert only_erased(rows, ("b",), as_key).count() == 2
    assert only_erased(rows, ("a",), erased.select([None])).count() == 0


def test_a_value_is_in_no_row_of_a_frame_without_its_column(spark: SparkSession) -> None:
    rows = spark.sql("select 1 as a")
    erased = erased_of(spark, "'x' as b", "b")
    assert without_erased(rows, ("a",), erased) is rows
    assert only_erased(rows, ("a",), erased).count() == 0


def test_a_value_is_found_under_the_name_that_a_table_gives_its_column(
    spark: SparkSession,
) -> None:
    rows = spark.sql("select 1 as a, 'y' as run, 'x' as source_run")
    erased = erased_of(spark, "'x' as run", "run")
    assert only_erased(rows, ("a",), erased, kept_name).count() == 1
    assert only_erased(rows, ("a",), erased).count() == 0


def test_where_nothing_is_erased_rows_stay_as_they_are(spark: SparkSession) -> None:
    rows = spark.range(3)
    assert without_erased(rows, ("id",), Erasures()) is rows
    assert without_erased(rows, ("id",), Erasures("salt")) is rows
    assert only_erased(rows, ("id",), Erasures()).count() == 0


def test_notes_say_what_is_erased_now() -> None:
    a, b, of_column = Erasure("a"), Erasure("b"), Erasure("a", "customer")
    notes = [None, *(note_erased("s", each) for each in (a, b, a, of_column))]
    assert find_erasures(notes[:1]) == Erasures()
    assert find_erasures(notes) == Erasures("s", frozenset({a, b, of_column}))
    lifted = [*notes, note_lifted("s", a), note_lifted("s", Erasure("c"))]
    assert find_erasures(lifted) == Erasures("s", frozenset({b, of_column}), any_lifted=True)
    again = [*lifted, note_lifted("s", b), note_lifted("s", of_column), note_erased("s", a)]
    assert find_erasures(again) == Erasures("s", frozenset({a}), any_lifted=True)
    assert [read_erased(note) for note in notes] == [None, a, b, a, of_column]
    assert read_erased(note_lifted("s", a)) is None


def test_a_note_of_an_earlier_release_erases_a_key() -> None:
    note = '{"salt": "s", "erased": "a"}'
    assert note_erased("s", Erasure("a")) == note
    assert read_erased(note) == Erasure("a")
