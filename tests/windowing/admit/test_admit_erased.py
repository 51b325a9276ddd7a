"""The digest of a key follows its values: not how they are shown, nor the type that holds them."""

from hashlib import sha256

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from windowing.admit.erased import key_digest, only_erased, without_erased
from windowing.ledger.erased import (
    ErasedKeys,
    find_erased_keys,
    note_erased,
    note_lifted,
    read_erased,
)


def digests(spark: SparkSession, row: str, salt: str = "salt") -> str | None:
    """The digest of a key with these values, such as `7 as a, 'x' as b`."""
    rows = spark.sql(f"select {row}")
    values = {f.name: (F.col(f"`{f.name}`"), f.dataType) for f in rows.schema.fields}
    (found,) = rows.select(key_digest(values, salt).alias("digest")).collect()
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


def test_a_key_with_a_null_is_never_erased(spark: SparkSession) -> None:
    assert digests(spark, "1 as a, cast(null as string) as b") is None
    rows = spark.sql("select * from values (1, 'x'), (1, null), (null, 'x'), (2, 'x') as t(a, b)")
    erased = ErasedKeys("salt", frozenset({digests(spark, "1 as a, 'x' as b") or ""}))
    kept = without_erased(rows, ("a", "b"), erased).collect()
    assert [(row["a"], row["b"]) for row in kept] == [(1, None), (None, "x"), (2, "x")]
    gone = only_erased(rows, {"a": "a", "b": "b"}, erased).collect()
    assert [(row["a"], row["b"]) for row in gone] == [(1, "x")]


def test_where_nothing_is_erased_rows_stay_as_they_are(spark: SparkSession) -> None:
    rows = spark.range(3)
    assert without_erased(rows, ("id",), ErasedKeys()) is rows
    assert without_erased(rows, ("id",), ErasedKeys("salt")) is rows
    assert only_erased(rows, {"id": "id"}, ErasedKeys()).count() == 0


def test_notes_say_what_is_erased_now() -> None:
    notes = [None, note_erased("s", "a"), note_erased("s", "b"), note_erased("s", "a")]
    assert find_erased_keys(notes[:1]) == ErasedKeys()
    assert find_erased_keys(notes) == ErasedKeys("s", frozenset("ab"))
    lifted = [*notes, note_lifted("s", "a"), note_lifted("s", "c")]
    assert find_erased_keys(lifted) == ErasedKeys("s", frozenset("b"))
    again = [*lifted, note_lifted("s", "b"), note_erased("s", "a")]
    assert find_erased_keys(again) == ErasedKeys("s", frozenset("a"))
    assert [read_erased(note) for note in notes] == [None, "a", "b", "a"]
