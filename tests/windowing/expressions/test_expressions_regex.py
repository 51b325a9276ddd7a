"""Regular expressions in Spark find what Python finds, and take no time on texts made for that."""

import re
import time
from random import Random
from typing import Any

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import types as T

from tests.windowing.spec.test_spec_regex import draw_usable
from windowing.errors import SpecError
from windowing.expressions.compile import compile_value
from windowing.spec.expressions.parse import parse_expression, print_expression
from windowing.spec.expressions.tree import Literal

SCHEMA = T.StructType().add("text", T.StringType()).add("number", T.LongType())
WITH = "[$1\\]"


def spell(text: str) -> str:
    """A text as a literal of an expression."""
    return print_expression(Literal(text))


def compute(spark: SparkSession, texts: list[str | None], expressions: list[str]) -> list[Any]:
    """By text the values of the expressions."""
    rows = spark.createDataFrame([(text, 1) for text in texts], SCHEMA)
    columns = [
        compile_value(parse_expression("f", expression), SCHEMA, "f").column.alias(f"c{n}")
        for n, expression in enumerate(expressions)
    ]
    return [tuple(row) for row in rows.select(*columns).collect()]


@pytest.mark.parametrize("seed", range(2))
def test_random_patterns_find_what_python_finds(spark: SparkSession, seed: int) -> None:
    rng = Random(f"spark {seed}")
    patterns = [text for text, _ in draw_usable(rng, 40)]
    letters = "ab1,\né𝄞"
    texts: list[str | None] = [
        "".join(rng.choices(letters, k=rng.randint(0, 14))) for _ in range(60)
    ]
    asked: list[str] = []
    for pattern in patterns:
        asked.append(f"regexp_like(text, {spell(pattern)})")
        asked.append(f"regexp_extract(text, {spell(pattern)})")
        asked.append(f"regexp_replace(text, {spell(pattern)}, {spell(WITH)})")
    for text, found in zip(texts, compute(spark, texts, asked), strict=True):
        assert text is not None
        for n, pattern in enumerate(patterns):
            regex = re.compile(pattern.replace("$", r"\Z"), re.ASCII)
            match = regex.search(text)
            taken = match and match[regex.groups]
            expected = (match is not None, taken, regex.sub(lambda _: WITH, text))
            assert found[3 * n : 3 * n + 3] == expected, (pattern, text)


def test_null_gives_null_and_types_are_told(spark: SparkSession) -> None:
    asked = ["regexp_like(text, 'a')", "regexp_extract(text, 'a')", "regexp_replace(text, 'a', '')"]
    assert compute(spark, [None], asked) == [(None, None, None)]
    kinds = [compile_value(parse_expression("f", each), SCHEMA, "f").kind for each in asked]
    assert kinds == [T.BooleanType(), T.StringType(), T.StringType()]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("pattern", "text"),
    [
        ("a{1,68}a{1,68}b", "a" * 100_000),
        ("^[^,]*,[^,]*,x$", "a" * 500_000 + "," + "b" * 500_000 + ",y"),
        (",[^,]+;", ",aaaa" * 200_000),
        ("^.*[.](?:csv|json)$", "." * 1_000_000),
        ("(?:(?:a|b){1,9},){1,9}x", ("ab" * 4 + ",") * 110_000),
        ("(?:[0-9]{1,3}[.]){3}[0-9]{1,3}x", "123." * 250_000),
    ],
)
def test_no_text_takes_long(spark: SparkSession, pattern: str, text: str) -> None:
    """A million characters; a search that runs away would take hours on them."""
    began = time.monotonic()
    (found,) = compute(spark, [text], [f"regexp_like(text, {spell(pattern)})"])
    assert found == (False,)
    assert time.monotonic() - began < 30


@pytest.mark.usefixtures("spark")
@pytest.mark.parametrize(
    ("expression", "problem"),
    [
        ("regexp_like(number, '1')", "where a text is needed"),
        ("regexp_replace(text, '1', text)", "replaces by something else than a text"),
        ("regexp_replace(text, '1', 2)", "where a text is needed"),
    ],
)
def test_types_that_do_not_fit_are_refused(expression: str, problem: str) -> None:
    with pytest.raises(SpecError) as refused:
        compile_value(parse_expression("source.where", expression), SCHEMA, "source.where")
    assert problem in str(refused.value)
