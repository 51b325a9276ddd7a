"""Calls as they are written in a spec, right ones and wrong ones."""

import pytest

from windowing.errors import SpecError
from windowing.spec.aggregate_description import FUNCTIONS, describe_aggregate
from windowing.spec.aggregates import parse_aggregate
from windowing.spec.kinds import Aggregate, Expression

LATE = Expression("delay > 60", ("delay",))


@pytest.mark.parametrize(
    ("call", "expected"),
    [
        ("count_if(delayed)", Aggregate("a", "count_if", "delayed")),
        ("variance(delay)", Aggregate("a", "variance", "delay")),
        (" stddev ( delay ) ", Aggregate("a", "stddev", "delay")),
        ("median(delay)", Aggregate("a", "quantile", "delay", 0.5)),
        ("min_by(gate, delay)", Aggregate("a", "min_by", "gate", by="delay")),
        ("max_by(gate,delay)", Aggregate("a", "max_by", "gate", by="delay")),
        ("max_by(gate, gate)", Aggregate("a", "max_by", "gate", by="gate")),
        ("top_k(gate, 3)", Aggregate("a", "top_k", "gate", 3)),
        ("top_k(gate, 100)", Aggregate("a", "top_k", "gate", 100)),
        ("collect(gate)", Aggregate("a", "collect", "gate", 100)),
        ("collect(gate, 1)", Aggregate("a", "collect", "gate", 1)),
        ("collect(gate, 10000)", Aggregate("a", "collect", "gate", 10_000)),
    ],
)
def test_calls(call: str, expected: Aggregate) -> None:
    assert parse_aggregate("aggregates.a", "a", call) == expected


@pytest.mark.parametrize(
    ("aggregate_", "text"),
    [
        (Aggregate("a", "max_by", "gate", by="delay"), "max_by(gate, delay)"),
        (Aggregate("a", "top_k", "gate", 3), "top_k(gate, 3)"),
        (Aggregate("a", "collect", "gate", 10_000), "collect(gate, 10000)"),
    ],
)
def test_an_aggregate_prints_as_the_call_it_was_read_from(aggregate_: Aggregate, text: str) -> None:
    assert str(aggregate_) == text
    assert parse_aggregate("aggregates.a", "a", text) == aggregate_


@pytest.mark.parametrize(
    "call", ["count()", "sum(x)", "quantile(x, 0.5)", "min_by(x, y)", "top_k(x, 3)", "collect(x)"]
)
def test_a_condition_is_put_on_the_aggregate(call: str) -> None:
    assert parse_aggregate("aggregates.a", "a", call, LATE).where == LATE
    assert parse_aggregate("aggregates.a", "a", call).where is None


@pytest.mark.parametrize(
    ("call", "sentence"),
    [
        (
            "count(delay)",
            "'count(delay)' has an argument, but count() counts rows and takes no column",
        ),
        ("count_if()", "'count_if()' needs exactly one column, as in count_if(delay)"),
        ("variance(a, b)", "'variance(a, b)' needs exactly one column, as in variance(delay)"),
        (
            "min_by(a)",
            "'min_by(a)' needs two columns, what is shown and what is compared, "
            "as in min_by(gate, delay)",
        ),
        (
            "max_by(a, b, c)",
            "'max_by(a, b, c)' needs two columns, what is shown and what is compared, "
            "as in max_by(gate, delay)",
        ),
        ("max_by(a, 3)", "'3' in 'max_by(a, 3)' is not a column"),
        ("sum(a))", "'sum(a))' is not a call such as count(), sum(delay)"),
        ("sum((a)", "'sum((a)' is not a call such as count(), sum(delay)"),
        ("sum('a)", "is not a call such as count(), sum(delay)"),
        (
            "top_k(a)",
            "'top_k(a)' needs a column and a whole number from 1 to 100, as in top_k(gate, 3)",
        ),
        ("top_k(a, 0)", "'0' in 'top_k(a, 0)' is not a whole number from 1 to 100"),
        ("top_k(a, 101)", "'101' in 'top_k(a, 101)' is not a whole number from 1 to 100"),
        ("top_k(a, 2.0)", "'2.0' in 'top_k(a, 2.0)' is not a whole number from 1 to 100"),
        ("top_k(a, ٣)", "is not a whole number from 1 to 100"),
        ("top_k(3, a)", "'3' in 'top_k(3, a)' is not a column"),
        (
            "collect()",
            "'collect()' needs a column and, if not 100, a whole number from 1 to 10000, "
            "as in collect(gate, 10)",
        ),
        ("collect(a, b, c)", "'collect(a, b, c)' needs a column and, if not 100,"),
        (
            "collect(a, 10001)",
            "'10001' in 'collect(a, 10001)' is not a whole number from 1 to 10000",
        ),
        ("collect(a, )", "'' in 'collect(a, )' is not a whole number from 1 to 10000"),
        (
            "stdev(a)",
            "has the unknown function 'stdev', did you mean 'stddev'; "
            "allowed: count, sum, min, max, avg,",
        ),
    ],
)
def test_wrong_calls_are_one_sentence(call: str, sentence: str) -> None:
    with pytest.raises(SpecError) as caught:
        parse_aggregate("aggregates.a", "a", call)
    assert caught.value.field == "aggregates.a"
    assert sentence in caught.value.message
    assert "\n" not in caught.value.message


@pytest.mark.parametrize("function", FUNCTIONS)
def test_every_function_says_what_it_needs(function: str) -> None:
    with pytest.raises(SpecError, match=r"needs |takes no column"):
        parse_aggregate("aggregates.a", "a", f"{function}(a, b, c, d)")


@pytest.mark.parametrize("function", sorted({*FUNCTIONS} - {"median"}))
def test_every_function_is_read_as_its_form_is_written(function: str) -> None:
    form = describe_aggregate(function).call.value
    call = function + form[form.index("(") :]
    read = parse_aggregate("aggregates.a", "a", call)
    assert (read.function, str(read)) == (function, call)
