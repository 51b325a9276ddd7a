"""What other systems write is named with what it is called here."""

import pytest

from tests.windowing.spec.specs import changed, refused
from windowing.spec import dialects
from windowing.spec.aggregate_description import DESCRIPTIONS, FUNCTIONS, describe_aggregate
from windowing.spec.aggregates import parse_aggregate
from windowing.spec.duration import Duration
from windowing.spec.expressions.parse import parse_expression
from windowing.spec.yaml.document import PipelineDocument, model_at
from windowing.spec.yaml.window_document import KINDS


@pytest.mark.parametrize(
    ("call", "here"),
    [
        ("mean(price)", "avg(price)"),
        ("average(price)", "avg(price)"),
        ("MEAN(price)", "avg(price)"),
        ("percentile_approx(price, 0.95)", "quantile(price, 0.95)"),
        ("percentile_approx(price, 0.95, 100)", "quantile(price, 0.95)"),
        ("percentile(price, 95)", "quantile(price, 0.95)"),
        ("approx_percentile(price, 0.5)", "quantile(price, 0.5)"),
        ("percentile(price, array(0.5, 0.9))", "quantile(price, p)"),
        ("percentile(price)", "quantile(price, p)"),
        ("percentile(price, 950)", "quantile(price, p)"),
        ("approx_count_distinct(plane)", "count_distinct(plane)"),
        ("approx_count_distinct(plane, 0.05)", "count_distinct(plane)"),
        ("COUNT(DISTINCT plane)", "count_distinct(plane)"),
        ("collect_list(gate)", "collect(gate)"),
        ("first_value(gate, true)", "first(gate)"),
        ("argmax(gate, delay)", "max_by(gate, delay)"),
        ("stddev_samp(delay)", "stddev(delay)"),
    ],
)
def test_a_function_of_another_system_is_named_with_the_one_here(call: str, here: str) -> None:
    error = refused(changed(**{"aggregates/a": call}))
    assert error.field == "aggregates.a"
    assert error.message.startswith(f"'{call}' has the unknown function ")
    assert f"; write {here}; allowed: count, sum, min," in error.message
    if "(price, p)" not in here:
        parse_aggregate("aggregates.a", "a", here)


@pytest.mark.parametrize("other", sorted(dialects.FUNCTIONS))
def test_what_is_named_for_a_function_of_another_system_is_a_call(other: str) -> None:
    ours = dialects.FUNCTIONS[other]
    form = describe_aggregate(ours).call.value
    inside = form[form.index("(") + 1 : -1]
    here = dialects.native_call(other, inside.split(", "))
    assert here is not None
    assert parse_aggregate("aggregates.a", "a", here).function == ours


@pytest.mark.parametrize(
    ("call", "here"),
    [
        ("count(distinct plane)", "count_distinct(plane)"),
        ("count( DISTINCT  plane )", "count_distinct(plane)"),
        ("count(distinct(plane))", "count_distinct(plane)"),
        ("count(distinct a, b)", "count_distinct(c) of one column c, which source.columns can"),
        ("count(*)", "count()"),
        ("count(distinct_planes)", "{call: count(), where: distinct_planes is not null} for those"),
    ],
)
def test_a_count_of_something_is_named_with_what_counts_that(call: str, here: str) -> None:
    error = refused(changed(**{"aggregates/a": call}))
    assert error.field == "aggregates.a"
    assert f"count() counts rows and takes no column; write {here}" in error.message


def test_every_function_and_kind_that_is_named_is_there() -> None:
    elsewhere = [other for described in DESCRIPTIONS.values() for other in described.elsewhere]
    assert sorted(dialects.FUNCTIONS) == sorted(elsewhere)
    assert not {*elsewhere} & {*FUNCTIONS}
    assert {*dialects.KINDS.values()} <= {*KINDS}
    assert not {*dialects.KINDS} & {*KINDS}


@pytest.mark.parametrize(
    ("call", "columns", "here"),
    [
        ("sum(price*2)", '{price_2: "price*2"}', "sum(price_2)"),
        ("sum(a + b)", '{a_b: "a + b"}', "sum(a_b)"),
        ("sum(2 * price)", '{value_2_price: "2 * price"}', "sum(value_2_price)"),
        ("sum(-price)", '{value_price: "-price"}', "sum(value_price)"),
        ("sum(coalesce(tip, 0))", '{coalesce_tip_0: "coalesce(tip, 0)"}', "sum(coalesce_tip_0)"),
        ("quantile(abs(price), 0.95)", '{abs_price: "abs(price)"}', "quantile(abs_price, 0.95)"),
        ("max_by(gate, -delay)", '{value_delay: "-delay"}', "max_by(gate, value_delay)"),
        ("sum(`odd name` * 2)", '{odd_name_2: "`odd name` * 2"}', "sum(odd_name_2)"),
        ('sum(if(a = "x", 1, 0))', "{if_a_x_1_0: 'if(a = \"x\", 1, 0)'}", "sum(if_a_x_1_0)"),
    ],
)
def test_an_expression_in_a_call_is_shown_where_it_belongs(
    call: str, columns: str, here: str
) -> None:
    error = refused(changed(**{"aggregates/a": call}))
    assert error.field == "aggregates.a"
    place = "an expression is given a name in source.columns"
    assert f"{place}, as in columns: {columns}," in error.message
    assert error.message.endswith(f"and is used by it: {here}")
    parse_aggregate("aggregates.a", "a", here)


@pytest.mark.parametrize(
    "call", ["sum(max(a))", "sum(5)", "sum(a.)", "sum(rand(a))", "sum(distinct a)", "sum(a; b)"]
)
def test_what_no_expression_may_hold_is_not_sent_there(call: str) -> None:
    message = refused(changed(**{"aggregates/a": call})).message
    assert "is not a column; a name is letters, digits and _" in message


def test_a_long_expression_is_cut_in_the_sentence_and_its_name() -> None:
    text = "+".join(["price"] * 60)
    message = refused(changed(**{"aggregates/a": f"sum({text})"})).message
    assert 'as in columns: {price_price_price_price_price_price_pric: "..."}' in message
    parse_expression("source.columns.x", text)


@pytest.mark.parametrize(
    ("kind", "here"),
    [
        ("hopping", "sliding"),
        ("hop", "sliding"),
        ("HOP", "sliding"),
        ("tumble", "tumbling"),
        ("sesion", "session"),
    ],
)
def test_a_kind_of_another_system_is_named_with_the_one_here(kind: str, here: str) -> None:
    error = refused(changed(**{"windows/hourly": {"kind": kind, "size": "1 hour"}}))
    assert error.field == "windows.hourly.kind"
    sentence = f"{kind!r} is not a kind of window, did you mean {here!r}; allowed: tumbling,"
    assert sentence in error.message


@pytest.mark.parametrize(
    ("text", "here"),
    [
        ("1h", "1 hour"),
        ("PT1H", "1 hour"),
        ("15m", "15 minutes"),
        ("PT15M", "15 minutes"),
        ("1d", "1 day"),
        ("P1D", "1 day"),
        ("30s", "30 seconds"),
        ("PT30S", "30 seconds"),
        ("500ms", "500 milliseconds"),
        ("2w", "2 weeks"),
        ("1h30m", "1 hour 30 minutes"),
        ("PT1H30M", "1 hour 30 minutes"),
        ("P1DT12H", "1 day 12 hours"),
        ("15minutes", "15 minutes"),
        ("90 min", "90 minutes"),
        ("1 h", "1 hour"),
        ("-5m", "-5 minutes"),
        ("-1h30m", "-1 hour -30 minutes"),
        ("-1h+30m", "-1 hour 30 minutes"),
        ("-PT5M", "-5 minutes"),
        ("P1M", "1 month"),
        ("1mo", "1 month"),
    ],
)
def test_a_short_length_is_named_in_whole_words(text: str, here: str) -> None:
    advice = f"; write {here!r}; units are microsecond, .*year"
    with pytest.raises(ValueError, match=advice) as caught:
        Duration.parse(text)
    assert str(caught.value).startswith(f"{text!r} ")
    assert Duration.parse(here) != Duration()


@pytest.mark.parametrize(
    "text",
    ["1M", "1.5h", "PT0.5S", "P", "PT", "P1M1D", "1 mo 1 d", "3 fortnights", "soon", "1h,5m"],
)
def test_a_length_that_may_mean_several_is_not_guessed(text: str) -> None:
    with pytest.raises(ValueError, match="units are") as caught:
        Duration.parse(text)
    assert "write" not in str(caught.value)


@pytest.mark.parametrize(
    "path", ["windows/hourly/size", "watermark/delay", "windows/busy/gap", "retention/output"]
)
def test_lengths_of_every_field_are_named_in_whole_words(path: str) -> None:
    error = refused(changed(**{path: "1h"}))
    assert error.field == path.replace("/", ".")
    assert error.message.startswith("'1h' is not a duration such as '15 minutes'")
    assert "; write '1 hour'; units are" in error.message


def test_what_others_call_a_field_is_a_field_here_and_has_no_other_meaning() -> None:
    sections = [model_at((name,)) for name in PipelineDocument.model_fields]
    models = [PipelineDocument, model_at(("source", "files")), *KINDS.values()]
    models += [model_at(("aggregates", "n", ":mapping")), *sections]
    known = [model.model_fields.keys() for model in models if model is not None]
    for theirs, ours in dialects.FIELDS.items():
        having = [fields for fields in known if ours in fields]
        assert having, ours
        assert not any(theirs in fields for fields in having), theirs
