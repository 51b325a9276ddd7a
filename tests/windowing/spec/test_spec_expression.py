"""Expressions are read or refused by one sentence.

Whatever is read has a canonical text that reads back as the same tree.
"""

import logging
import subprocess
import sys
from decimal import Decimal

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from windowing.errors import SpecError
from windowing.spec import aggregate_description
from windowing.spec.expressions.parse import (
    COMPARISONS,
    parse_expression,
    parse_having,
    print_expression,
    tree,
)
from windowing.spec.expressions.tree import FUNCTIONS, Call, Literal, Name, Node

FIELD = "source.where"
SMALL = settings(max_examples=400)


def refused(text: str) -> str:
    """The message of a refusal, which is one short line in words of ours."""
    with pytest.raises(SpecError) as caught:
        parse_expression(FIELD, text)
    error = caught.value
    assert error.field == FIELD
    assert (
        "\n" not in error.message and not error.message.endswith(".") and len(error.message) < 600
    )
    assert not any(
        word in error.message
        for word in ("sqlglot", "Failed to parse", "Error tokenizing", "\x1b", "<class")
    )
    return error.message


READ = [
    ("trip . rider.`home town` = a", "trip.rider.`home town` = a"),
    ("`a.ts`.`b`.end > `a.ts`", "`a.ts`.b.end > `a.ts`"),
    ("a.b.c.d.e.f[0][1].g['x y'].h", "a.b.c.d.e.f[0][1].g['x y'].h"),
    ("(a).b is null", "a.b is null"),
    (
        "case when a.end then a.case else map['when'] end",
        "case when a.end then a.case else map['when'] end",
    ),
    ("list[0] = array[1]", "list[0] = array[1]"),
    ("DATE_TRUNC('hour', a.at)", "date_trunc('hour', a.at)"),
    ("to_timestamp(a, 'dd/MM/yyyy')", "to_timestamp(a, 'dd/MM/yyyy')"),
    ("get_json_object(a, '$.b')", "get_json_object(a, '$.b')"),
    ("delay", "delay"),
    ("dep_delay + taxi", "dep_delay + taxi"),
    ("  distance>0\n\tand true ", "distance > 0 and true"),
    ("a == b or a<>b", "a = b or a != b"),
    ("a <=> null", "a <=> null"),
    ("a is not distinct from b", "a <=> b"),
    ("NOT a IS NOT NULL", "not a is not null"),
    ("not a in (1,2)", "a not in (1, 2)"),
    ("a in (b, c+1, 'x')", "a in (b, c + 1, 'x')"),
    ("a not between 1 and 2 and b", "a not between 1 and 2 and b"),
    ("a not like 'x%'", "a not like 'x%'"),
    (r"a like '10\%\\\\'", r"a like '10\\%\\\\'"),
    ("a = b is null", "(a = b) is null"),
    ('a like "it\'s"', r"a like 'it\'s'"),
    ("a-(b+c)-(d)*((e))", "a - (b + c) - d * e"),
    ("a-(b-c)", "a - (b - c)"),
    ("(a and b) and c", "a and b and c"),
    ("a and (b and c)", "a and (b and c)"),
    ("a or b and not c", "a or b and not c"),
    ("(a or b) and not (c and d)", "(a or b) and not (c and d)"),
    ("(a = b) = (c < d)", "(a = b) = (c < d)"),
    ("- 5 - -3 + +2", "-5 - -3 + 2"),
    ("-(-a) * -b", "- -a * -b"),
    ("not not (not a)", "not not not a"),
    ("-(5)", "-5"),
    ("0.50 + 007", "0.50 + 7"),
    ("1e5 + 2.5E-7", "100000.0e0 + 2.5e-07"),
    ("9223372036854775807", "9223372036854775807"),
    ("CASE WHEN a THEN 1 WHEN b THEN 2 ELSE 3 END", "case when a then 1 when b then 2 else 3 end"),
    ("case a when 1 then 'x' end", "case a when 1 then 'x' else null end"),
    ("If(a, B, `C`)", "if(a, B, `C`)"),
    (
        "COALESCE(round(abs(a)/2, 1), greatest(b,c))",
        "coalesce(round(abs(a) / 2, 1), greatest(b, c))",
    ),
    (
        "cast(a as DOUBLE) + try_cast(b as decimal( 10,2 ))",
        "cast(a as double) + cast(b as decimal(10, 2))",
    ),
    ("substring(trim(a), 1, 2) = 'AA'", "substring(trim(a), 1, 2) = 'AA'"),
    ("year(at) = 2024 and hour(at) < 6", "year(at) = 2024 and hour(at) < 6"),
    ("at >= '2024-01-01T00:00:00Z'", "at >= '2024-01-01T00:00:00Z'"),
    ("`odd name` + `a.b` + `select` + `x``y`", "`odd name` + `a.b` + `select` + `x``y`"),
    (
        "date > timestamp and count = year and first = left",
        "date > timestamp and count = year and first = left",
    ),
    ("current_date = user", "current_date = user"),
    ("durée > 5 or 距離 < 1", "durée > 5 or 距離 < 1"),
    ("a = '; drop table x -- /* */ ${y} {{z}}'", "a = '; drop table x -- /* */ ${y} {{z}}'"),
    ("(" * 16 + "a" + ")" * 16, "a"),
    ("not " * 16 + "a is not null", "not " * 16 + "a is not null"),
]


@pytest.mark.parametrize(("text", "canonical"), READ, ids=[text[:30] for text, _ in READ])
def test_texts_that_are_read(text: str, canonical: str) -> None:
    found = parse_expression(FIELD, text)
    assert found.sql == canonical
    assert parse_expression(FIELD, canonical) == found
    assert print_expression(tree(found)) == canonical


REFUSED = [
    ("", "is empty; write an expression such as delay > 60"),
    (" \n", "is empty"),
    ("a" * 1001, "has 1,001 characters; an expression has at most 1,000"),
    # more than one expression
    ("a; b", "has ';', a second statement"),
    ("a > 1; drop table x", "has ';', a second statement"),
    ("a b", "can't be read near 'b'; an expression is made of columns, literals"),
    ("a as b", "can't be read near 'as'"),
    ("a, b", "can't be read near ','"),
    ("(a, b)", "has an operation that is not allowed (tuple)"),
    ("()", "not allowed (tuple)"),
    # subqueries, windows, aggregates, lambdas, statements
    ("(select 1)", "has a subquery; an expression looks at one row"),
    ("a in (SELECT b FROM c)", "has a subquery"),
    ("exists(select 1)", "has a subquery"),
    ("exists(a)", "calls 'exists', a subquery, but an expression looks at one row"),
    ("with x as (a) b", "can't be read"),
    (
        "sum(a) > 3",
        "calls 'sum', an aggregate, but an expression looks at one row; the functions are abs, ",
    ),
    ("COUNT(*)", "calls 'COUNT', an aggregate"),
    ("abs(a) over (partition by b)", "has 'partition by'"),
    ("abs(a) over ()", "calls 'over', a window function"),
    ("abs(a) over w", "not allowed (window)"),
    ("abs(a) filter (where b)", "calls 'filter'"),
    ("abs(a order by b)", "has 'order by'"),
    ("abs(distinct a)", "not allowed (distinct)"),
    ("x -> x + 1", "has '->', a lambda"),
    ("transform(a, x -> x)", "has '->', a lambda"),
    ("show tables", "begins with a command; write a column of that name in backticks"),
    ("drop table x", "can't be read"),
    ("set x = 1", "can't be read"),
    ("insert into x values (1)", "calls 'values'"),
    # functions
    ("abz(a)", "calls 'abz', did you mean 'abs'; the functions are abs, "),
    ("`abs`(a)", "calls 'abs'"),
    ("java_method('java.lang.System', 'exit')", "calls 'java_method'; the functions are"),
    ("reflect('a', 'b')", "calls 'reflect'"),
    ("rand() > 0.5", "calls 'rand'"),
    ("sleep(a)", "calls 'sleep'"),
    ("current_user()", "calls 'current_user'"),
    ("struct(a)", "calls 'struct'"),
    ("sqrt(a)", "calls 'sqrt'"),
    ("s.abs(a)", "calls 'abs'; the functions are"),
    ("abs()", "gives abs 0 arguments, but it takes 1"),
    ("abs(a, b)", "gives abs 2 arguments, but it takes 1"),
    ("if(a, b)", "gives if 2 arguments, but it takes 3"),
    ("least(a)", "gives least 1 arguments, but it takes 2 or more"),
    ("round(a, b)", "has a round to something else than 0 to 18 digits"),
    ("round(a, -1)", "has a round to something else than 0 to 18 digits"),
    ("trim(both 'x' from a)", "has the text 'x' where an operator is needed"),
    ("substring(a from 1)", "can't be read near 'from'"),
    ("cast(a as int)", "casts to 'int'; allowed are bigint, double, string and decimal(p, s)"),
    ("cast(a as timestamp)", "casts to 'timestamp'"),
    ("cast(a as decimal)", "casts to 'decimal'"),
    ("cast(a as decimal(39, 1))", "casts to 'decimal(39, 1)'"),
    ("cast(a as decimal(3, 4))", "casts to 'decimal(3, 4)'"),
    ("cast(a as array<string>)", "casts to 'array<string>'"),
    ("a::int", "has '::'"),
    # columns
    ("a.1 > 1", "has '1' after a point, where the name of a field is needed"),
    ("a..b", "has '.' after a point"),
    ("a.", "can't be read near '.'"),
    ("(a + b).c", "has a point after something else than a column; write a field as in trip.at"),
    ("lower(a).b", "has a point after something else than a column"),
    ("'a'.b", "has a point after something else than a column"),
    ("a[b]", "has brackets that are not an element of a column; write tags[0]"),
    ("a[-1]", "has brackets that are not an element"),
    ("a[true]", "has brackets that are not an element"),
    ("a[1.5]", "has brackets that are not an element"),
    ("a[2147483648]", "has brackets that are not an element"),
    ("a[0, 1]", "has brackets that are not an element"),
    ("lower(a)[0]", "has brackets that are not an element"),
    ("a[0:1]", "has ':', a parameter"),
    ("[0]", "not allowed (array)"),
    # forms of functions
    ("date_trunc('hours', a)", "gives date_trunc the unit 'hours', which is none, did you mean"),
    ("date_trunc(a, 'hour')", "gives date_trunc the unit that is no text; write one, as in"),
    ("convert_timezone('Berlin', a)", "the zone 'Berlin', which is no name of the tz database"),
    ("convert_timezone('localtime', a)", "the zone 'localtime', which is no name"),
    ("get_json_object(a, 'b')", "gives get_json_object the path 'b', which is no path; write one"),
    ("get_json_object(a, '$.b[*]')", "which is no path"),
    ("get_json_object(a, '$..b')", "which is no path"),
    ("to_timestamp(a)", "gives to_timestamp 1 arguments, but it takes 2"),
    ("to_timestamp(a, b)", "gives to_timestamp the pattern that is no text; write one, as in"),
    ("to_timestamp(a, 'YYYY-MM-dd')", "in which 'YYYY' reads nothing; allowed: yyyy, MM"),
    ("to_timestamp(a, 'dd/MM/yy')", "in which 'yy' reads nothing"),
    ("to_timestamp(a, 'dd/dd/yyyy')", "which reads the day twice, by 'dd' and 'dd'"),
    ("to_timestamp(a, 'HH:mm')", "which reads no year; a time has year, month and day"),
    ("to_timestamp(a, 'dd/MM/yyyy mm')", "which reads the minute without the hour"),
    ("to_timestamp(a, 'dd/MM/yyyy HH:mm:ss SSSSSSS')", "in which 'SSSSSSS' reads nothing"),
    ("to_timestamp(a, 'dd/MM/yyyy hh:mm')", "which has one of hh and a; they belong together"),
    ("to_timestamp(a, 'dd/MM/yyyy HH hh a')", "which reads the hour twice"),
    ("to_timestamp(a, 'dd/MM/yyyy{HH}')", "in which '{' is not allowed; write other marks in"),
    ("to_timestamp(a, 'dd/MM/yyyy[HH]')", "in which '[' is not allowed"),
    ('to_timestamp(a, "dd/MM/yyyy\'T")', 'in which "\'" is not allowed'),
    ("*", "not allowed (star)"),
    ("abs(*)", "not allowed (star)"),
    ("__t > 1", "names '__t', but names that begin with '__' are reserved"),
    ("`__t` > 1", "names '__t'"),
    ("1a > 2", "has '1a'"),
    ("１ > 2", "has '１'"),
    ("a\u200bb > 1", "holds the invisible character U+200B"),
    ("a\u202eb > 1", "holds the invisible character U+202E"),
    ("a\u00a0> 1", "holds the invisible character U+00A0"),
    ("a \0", "holds the invisible character U+0000"),
    ("a \ud800", "holds the invisible character U+D800"),
    # parameters, comments, templates
    ("a > ?", "has '?', a parameter"),
    ("a > :b", "has ':', a parameter"),
    ("a > @b", "has '@', a parameter"),
    ("${env:HOME}", "has '$', a parameter"),
    ("$(rm -rf x)", "has '$', a parameter"),
    ("{{ ds }} > a", "has '{'"),
    ("{% if a %}", "has '{%'"),
    ("a -- b", "has a comment; write comments outside"),
    ("/* b */ a", "has a comment"),
    ("a /*+ broadcast(b) */", "has a comment"),
    ("{# b #} a", "has a comment"),
    ("a /* b", "has a quote, a backtick or a comment that is not closed"),
    # operators
    ("a || b", "has '||'"),
    ("a::int", "has '::'; write cast(x as bigint)"),
    ("a ~ 'b'", "has '~'; write regexp_like(x, 'a')"),
    ("a regexp 'b'", "has 'regexp'; write regexp_like(x, 'a')"),
    ("a ilike 'b'", "has 'ilike'; write lower(x) like 'a%'"),
    ("a & b", "has '&'"),
    ("!a", "has '!'"),
    ("~a", "has '~'"),
    ("a => b", "has '=>'"),
    ("a := 1", "has ':='"),
    ("a div b", "not allowed (int div)"),
    ("a rlike '.*'", "has 'rlike'; write regexp_like(x, 'a')"),
    ("a rlike b", "not allowed (regexp like)"),
    ("a ilike b", "not allowed (ilike)"),
    ("a collate b", "not allowed (collate)"),
    ("a is true", "has is before something else than null"),
    ("a is distinct from b", "not allowed"),
    ("a in ()", "has in without a list of values; write in ('a', 'b')"),
    ("a in b", "has in without a list of values"),
    ("a like b", "has like before something else than a text"),
    ("a like 'x' escape 'y'", "has the text 'y' where an operator is needed"),
    (r"a like 'x\\'", "has a like with a backslash that stands before neither % nor _"),
    ("a < b < c", "has comparisons side by side; put one of them in parentheses"),
    ("a in (b) in (c)", "has comparisons side by side"),
    ("a between symmetric 1 and 2", "not allowed (between)"),
    ("case when a then 1", "has a 'case' that is not closed"),
    ("(a", "has a '(' that is not closed"),
    ("a)", "has a parenthesis that closes nothing"),
    ("cast(a as double", "has a '(' that is not closed"),
    ("a +", "can't be read"),
    # literals
    ("'a", "has a quote, a backtick or a comment that is not closed"),
    ("`a", "has a quote, a backtick or a comment that is not closed"),
    (
        "a = 'it''s'",
        "has the text 's' where an operator is needed; "
        "times are texts without a word before them, a quote inside a text",
    ),
    ("date '2024-01-01'", "times are texts without a word before them"),
    ("interval '1' day", "has the text '1' where an operator is needed"),
    (r"a = '\u0041'", "has a backslash in a text that stands before none of"),
    (r"a = r'\d'", "has \"r'\\\\d'\""),
    ("x'ff'", "has \"x'ff'\""),
    ("0xff", "has '0xff'"),
    (".5", "a number without its zero"),
    ("5.", "has '5.'; a number is written 5, 0.5 or 5e3"),
    ("5L", "has '5L'; a number is written"),
    (
        "9223372036854775808",
        "has the number '9223372036854775808', which is too large; a whole number is below 2^63",
    ),
    ("9" * 400, "which is too large"),
    ("1e400", "has the number '1e400', which is too large"),
    ("0." + "1" * 39, "a decimal has up to 38 digits"),
    # depth
    ("(" * 17 + "a" + ")" * 17, "is nested more than 16 deep; write it flatter"),
    ("(" * 490 + "a" + ")" * 490, "is nested more than 16 deep"),
    ("(" * 990, "is nested more than 16 deep"),
    ("a" + " = b is null" * 20, "is nested more than 16 deep"),
    ("not " * 240 + "a", "is nested more than 16 deep"),
    ("- " * 490 + "a", "is nested more than 16 deep"),
    ("abs(" * 190 + "a" + ")" * 190, "is nested more than 16 deep"),
    ("case when a then " * 40 + "a" + " end" * 40, "is nested more than 16 deep"),
    ("a+" * 400 + "a", "has more than 100 operators in a row; for many values write in ('a', 'b')"),
    ("a or " * 190 + "a", "has more than 100 operators in a row"),
    (
        "case " * 8 + "a" + " when 1 then 1 when 2 then 2 when 3 then 3 when 4 then 4 end" * 8,
        "grows too large; write it flatter",
    ),
    ("abs(" * 6 + "a" + ")" * 6, "grows too large"),
]


@pytest.mark.parametrize(
    ("text", "sentence"), REFUSED, ids=[f"{i}-{text[:30]!a}" for i, (text, _) in enumerate(REFUSED)]
)
def test_texts_that_are_refused(text: str, sentence: str) -> None:
    assert sentence in refused(text)


@pytest.mark.parametrize("function", aggregate_description.FUNCTIONS)
def test_every_aggregate_is_called_an_aggregate(function: str) -> None:
    sentence = f"calls {function!r}, an aggregate, but an expression looks at one row"
    assert sentence in refused(f"{function}(delay) > 1")


def test_columns_come_once_each_in_order_of_appearance() -> None:
    assert parse_expression(FIELD, "b > `a b` and coalesce(c, b) in (a, 'd')").columns == (
        "b",
        "a b",
        "c",
        "a",
    )
    assert parse_expression(FIELD, "1 = 1").columns == ()


def test_literals_keep_their_kind() -> None:
    found = tree(parse_expression(FIELD, "f in (5, 5.0, 5e0, '5', true, null, -0.0)"))
    assert isinstance(found, Call)
    values = [part.value for part in found.arguments[1:] if isinstance(part, Literal)]
    assert [repr(v) for v in values] == [
        "5",
        "Decimal('5.0')",
        "5.0",
        "'5'",
        "True",
        "None",
        "Decimal('-0.0')",
    ]


def test_a_long_chain_may_have_many_values() -> None:
    text = f"a in ({', '.join(map(str, range(180)))})"
    assert parse_expression(FIELD, text).sql == text


def test_what_is_read_far_down_a_stack_is_read_or_refused() -> None:
    def deep(levels: int) -> None:
        if levels:
            deep(levels - 1)
        elif sys.getrecursionlimit():
            try:
                parse_expression(FIELD, "abs(" * 5 + "(" * 11 + "a" + ")" * 16)
            except SpecError as error:
                assert "is nested too deeply" in error.message

    for levels in (0, 300, 600, 780):
        deep(levels)


PLAIN = ["a", "delay", "date", "count", "If", "été"]
ODD = ["a b", "x`y", "select", "case", "not", "a.b", "", "'", "1"]
LEAVES = st.one_of(
    st.sampled_from([Name(n) for n in PLAIN] + [Name(n, quoted=True) for n in (*PLAIN, *ODD) if n]),
    st.builds(
        Literal,
        st.integers(-(2**63) + 1, 2**63 - 1)
        | st.booleans()
        | st.none()
        | st.floats(allow_nan=False, allow_infinity=False),
    ),
    st.builds(
        Literal,
        st.decimals(-(10**9), 10**9, places=3)
        | st.text(st.characters(categories=["L", "N", "P", "S"]), max_size=6),
    ),
)


def _grown(inner: st.SearchStrategy[Node]) -> st.SearchStrategy[Node]:
    def calls(operations: list[str], fewest: int, most: int) -> st.SearchStrategy[Node]:
        return st.builds(
            Call,
            st.sampled_from(operations),
            st.lists(inner, min_size=fewest, max_size=most).map(tuple),
        )

    signed = inner.filter(
        lambda n: not (isinstance(n, Literal) and type(n.value) in (int, float, Decimal))
    )
    odd = st.lists(inner, min_size=3, max_size=5).filter(lambda n: len(n) % 2).map(tuple)
    even = st.lists(inner, min_size=4, max_size=6).filter(lambda n: not len(n) % 2).map(tuple)
    kinds = st.sampled_from([Literal(k) for k in ("bigint", "double", "string", "decimal(10, 2)")])
    return st.one_of(
        calls([*COMPARISONS, "+", "-", "*", "/", "%", "and", "or"], 2, 2),
        calls(["not", "is null"], 1, 1),
        st.builds(lambda n: Call("negate", (n,)), signed),
        calls(["in"], 2, 4),
        calls(["between", "if", "replace"], 3, 3),
        calls([name for name, (fewest, _) in FUNCTIONS.items() if fewest == 1], 1, 1),
        calls(["coalesce", "concat", "least", "greatest", "nullif", "substring"], 2, 2),
        st.builds(
            lambda n, p: Call("like", (n, Literal(p))),
            inner,
            st.sampled_from(["", "a%", "'_'", "\\%\\\\", '"']),
        ),
        st.builds(lambda n, k: Call("cast", (n, k)), inner, kinds),
        st.builds(lambda n: Call("case", n), odd),
        st.builds(lambda n: Call("case of", n), even),
    )


SMALLEST = st.deferred(lambda: LEAVES | _grown(LEAVES))
MIDDLE = st.deferred(lambda: SMALLEST | _grown(SMALLEST))
TREES = st.deferred(lambda: MIDDLE | _grown(MIDDLE))


@pytest.mark.slow
@SMALL
@given(TREES)
def test_a_printed_tree_reads_back_as_itself(node: Node) -> None:
    text = print_expression(node)
    try:
        found = parse_expression(FIELD, text)
    except SpecError as error:
        assert any(
            limit in error.message
            for limit in ("nested more than", "characters; an", "grows too large")
        )
        return
    assert found.sql == text
    assert repr(tree(found)) == repr(node)


SOUP = """
a b `x y` and or not in between like is null true case when then else end ( ) , + - * / % = != < <=> 1 2.5 1e3 'x' "z" abs( round( if(
cast( as double bigint decimal(9,2) select from where over order by ; . -- /* */ { } [ ] : :: -> => ? @ $ | ! ~ ^ # \\ ` ' __a date
timestamp interval union all any exists array map set show with distinct escape at time zone div xor rlike partition
"""  # noqa: E501
WORDS = st.sampled_from(SOUP.split())


@SMALL
@given(
    st.text()
    | st.lists(WORDS, max_size=25).map(" ".join)
    | st.lists(WORDS, max_size=12).map("".join)
)
def test_any_text_is_read_or_refused(text: str) -> None:
    try:
        found = parse_expression(FIELD, text)
    except SpecError as error:
        assert error.field == FIELD and "\n" not in error.message
        return
    assert print_expression(tree(found)) == found.sql
    assert parse_expression(FIELD, found.sql) == found


def test_reading_says_nothing_in_logs(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.DEBUG):
        for text, _ in [*READ, *REFUSED]:
            try:
                parse_expression(FIELD, text)
            except SpecError:
                continue
    # Python may collect objects of an earlier test's JVM meanwhile, which py4j logs.
    assert [record for record in caplog.records if not record.name.startswith("py4j")] == []


def test_the_parser_is_loaded_by_the_first_expression() -> None:
    code = (
        "import sys, windowing.spec.expressions.parse as e; e.parse_having('f', 'n > 1', ['n']); "
        "print('sqlglot' in sys.modules)"
    )
    assert (
        subprocess.run(
            [sys.executable, "-c", code], capture_output=True, text=True, check=True
        ).stdout
        == "False\n"
    )


@pytest.mark.parametrize(
    ("text", "operator", "number"),
    [
        ("flights >= 3", ">=", "3"),
        (" flights==-2.50 ", "=", "-2.5"),
        ("flights <> 03", "!=", "3"),
        ("`flights`<+100", "<", "100"),
        ("flights != - 0.00", "!=", "0"),
        (
            "flights > 999999999999999999.999999999999999999",
            ">",
            "999999999999999999.999999999999999999",
        ),
    ],
)
def test_having(text: str, operator: str, number: str) -> None:
    found = parse_having("windows.busy.having", text, ["flights", "worst"])
    assert (found.aggregate, found.operator, found.number) == ("flights", operator, number)


NO_HAVING = [
    "",
    "flights",
    "flights >= 3 and worst < 2",
    "3 < flights",
    "count() > 3",
    "flights => 3",
    "flights <=> 3",
    "flights > 3;",
]
NO_NUMBER = ["'3'", "x", "nan", "1e3", "null", "٣", "1" * 19, "--3", ".5", "3 3", "1_0"]
WRONG = (
    "is not an aggregate, one of = != < <= > >= and a number of up to 18 digits "
    "before and after the point, as in flights >= 3"
)


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        (
            "fligts >= 3",
            "compares 'fligts', which is none of its aggregates, did you mean 'flights'; "
            "the window has flights, worst",
        ),
        ("Worst >= 3", "did you mean 'worst'"),
        *[(text, WRONG) for text in [*NO_HAVING, *(f"flights > {n}" for n in NO_NUMBER)]],
    ],
)
def test_havings_that_are_refused(text: str, sentence: str) -> None:
    with pytest.raises(SpecError) as caught:
        parse_having("windows.busy.having", text, ["flights", "worst"])
    assert caught.value.field == "windows.busy.having"
    assert sentence in caught.value.message and "\n" not in caught.value.message
