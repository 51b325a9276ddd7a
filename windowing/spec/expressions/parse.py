"""`delay > 60 and gate is not null` -> a tree of names, literals and calls, and nothing else.

text -> tree (syntax.py) -> canonical text, which reads back as the same tree
Text is never executed: whoever needs the expression builds it from the tree.
"""

import re
from collections.abc import Collection
from decimal import Decimal
from functools import lru_cache

from windowing.columns import quoted
from windowing.errors import SpecError
from windowing.spec.expressions.tree import Call, Literal, Name, Node, path_of
from windowing.spec.kinds import Expression, Having
from windowing.spec.words import join_names, quote_value, suggest_name

Path = tuple[str | int, ...]
"""The name of a column, and the fields and elements that lead to a part of it."""
COMPARISONS = ("=", "!=", "<=>", "<", "<=", ">", ">=")
PREDICATES = ("in", "between", "like", "is null")
HEAVIEST = 1_000
"""How many nodes the column of an expression may have."""

HAVING_FORM = (
    "an aggregate, one of = != < <= > >= "
    "and a number of up to 18 digits before and after the point, as in flights >= 3"
)

_REPEATS = {"regexp_extract": 2, "abs": 3, "floor": 2, "ceil": 2, "between": 2, "nullif": 2}
"""How often some operations use their first argument; all others use it once."""
_KEEPING_FUNCTIONS = (
    "concat",
    "length",
    "lower",
    "regexp_like",
    "regexp_replace",
    "replace",
    "trim",
    "upper",
    "year",
    "month",
    "day",
    "hour",
    "minute",
    "second",
    "date_trunc",
)
_KEEPING = frozenset((*COMPARISONS, *PREDICATES, "and", "or", "not", *_KEEPING_FUNCTIONS))
"""What has a value wherever all its arguments have one."""
_BINDS = {
    "or": 1,
    "and": 2,
    "not": 3,
    **dict.fromkeys((*COMPARISONS, *PREDICATES), 4),
    "+": 5,
    "-": 5,
    "*": 6,
    "/": 6,
    "%": 6,
    "negate": 7,
}
"""How strongly each operator binds its operands; of two operators the stronger one goes first."""
_SUM = _BINDS["+"]
_WHOLE = 8
"""A name, a literal and a call need no parentheses anywhere."""
_WORD = re.compile(r"[^\W\d]\w*")
_OPERATORS = {"==": "=", "<>": "!="}
_LONGEST_HAVING = 1_000
_HAVING = re.compile(
    r"\s*(?:`([^`]+)`|([^\W\d]\w*))\s*(==?|!=|<>|<=|>=|<|>)"
    r"\s*([+-]?\s*[0-9]{1,18}(?:\.[0-9]{1,18})?)\s*"
)


def parse_expression(field: str, text: str) -> Expression:
    """The checked expression that `text` spells.

    SpecError at `field` for anything but columns, literals, operators and FUNCTIONS.

    >>> parse_expression("source.where", "NOT `gate` IN ('A1') AND -delay<>1.50")
    Expression(sql="`gate` not in ('A1') and -delay != 1.50", columns=('gate', 'delay'))
    """
    from windowing.spec.expressions import syntax

    node = syntax.parse_tree(field, text)
    if _count_nodes(node) > HEAVIEST:
        raise SpecError(
            field,
            f"{quote_value(text)} nests case, between, nullif, abs or regexp_extract so that it "
            "grows too large; write it flatter",
        )
    canonical = print_expression(node)
    # The canonical text is what is stored, so it has to be readable as well.
    syntax.parse_tree(field, canonical, longest=None)
    columns = dict.fromkeys(str(path[0]) for path in _find_inputs(node))
    return Expression(canonical, tuple(columns))


@lru_cache(maxsize=256)
def tree(checked: Expression) -> Node:
    """The tree of an expression."""
    from windowing.spec.expressions import syntax

    return syntax.parse_tree("expression", checked.sql, longest=None)


def may_lose(checked: Expression) -> bool:
    """Whether the expression may be null for a row where each of its inputs has a value.

    >>> may_lose(parse_expression("source.where", "delay > 60"))
    False
    >>> may_lose(parse_expression("source.where", "cast(t as bigint) > 60"))
    True
    """
    return bool(checked.columns) and not _keeps_values(tree(checked))


def parse_having(field: str, text: str, aggregates: Collection[str]) -> Having:
    """One comparison of one of `aggregates` with one number.

    >>> parse_having("windows.busy.having", "flights>=3", ["flights", "worst"])
    Having(aggregate='flights', operator='>=', number='3')
    """
    match = None
    if len(text) <= _LONGEST_HAVING:
        match = _HAVING.fullmatch(text)
    if match is None:
        raise SpecError(field, f"{quote_value(text)} is not {HAVING_FORM}")
    in_backticks, plain, operator, number = match.groups()
    name = in_backticks or plain
    if name not in aggregates:
        known = f"{suggest_name(name, aggregates)}; the window has {join_names(aggregates)}"
        raise SpecError(
            field,
            f"{quote_value(text)} compares {quote_value(name)}, "
            f"which is none of its aggregates{known}",
        )
    # The number may have a plus, and blanks between its sign and its digits, as in `flights > - 3`.
    digits = re.sub(r"[\s+]", "", number)
    return Having(name, _OPERATORS.get(operator, operator), _print_number(Decimal(digits)))


def print_expression(node: Node) -> str:
    """The canonical text of a tree, with no more parentheses than it needs.

    >>> print_expression(Call("*", (Call("+", (Name("a"), Literal(1))), Literal(Decimal("0.50")))))
    '(a + 1) * 0.50'
    """
    if isinstance(node, Name):
        return _print_name(node)
    if isinstance(node, Literal):
        return _print_literal(node)
    match node.operation, node.arguments:
        case ".", (inner, Literal(field)):
            return f"{print_expression(inner)}.{_print_field(str(field))}"
        case "[]", (inner, place):
            return f"{print_expression(inner)}[{print_expression(place)}]"
        case "not", (Call(operation) as inner,) if operation in PREDICATES:
            return _print_predicate(inner, "not ")
        case "not", (inner,):
            return f"not {_print_operand(inner, _BINDS['not'])}"
        case "negate", (inner,):
            text = _print_operand(inner, _BINDS["negate"])
            # Two minus signs without a blank begin a comment in SQL.
            return f"- {text}" if text.startswith("-") else f"-{text}"
        case "case", arms:
            return f"case {_print_arms(arms)}"
        case "case of", (operand, *arms):
            return f"case {print_expression(operand)} {_print_arms(tuple(arms))}"
        case "cast", (inner, Literal(kind)):
            return f"cast({print_expression(inner)} as {kind})"
        case operation, _ if operation in PREDICATES:
            return _print_predicate(node, "")
        case operation, (left, right) if operation in _BINDS:
            binds = _BINDS[operation]
            # a + b + c is (a + b) + c, but comparisons never stand side by side.
            least = _SUM if operation in COMPARISONS else binds
            return f"{_print_operand(left, least)} {operation} {_print_operand(right, binds + 1)}"
    return f"{node.operation}({_print_list(node.arguments)})"


def _print_name(node: Name) -> str:
    return quoted(node.name) if node.quoted else node.name


def _print_field(name: str) -> str:
    """The name of a field, in backticks unless it is a word."""
    return name if _WORD.fullmatch(name) else quoted(name)


def _print_list(nodes: tuple[Node, ...]) -> str:
    return ", ".join(map(print_expression, nodes))


def _print_predicate(node: Call, negation: str) -> str:
    subject, *others = (_print_operand(argument, _SUM) for argument in node.arguments)
    match node.operation:
        case "in":
            return f"{subject} {negation}in ({_print_list(node.arguments[1:])})"
        case "between":
            return f"{subject} {negation}between {others[0]} and {others[1]}"
        case "like":
            return f"{subject} {negation}like {others[0]}"
    return f"{subject} is {negation}null"


def _print_arms(arguments: tuple[Node, ...]) -> str:
    *pairs, otherwise = map(print_expression, arguments)
    arms = [f"when {when} then {then}" for when, then in zip(pairs[::2], pairs[1::2], strict=True)]
    return " ".join([*arms, f"else {otherwise}", "end"])


def _print_operand(node: Node, least: int) -> str:
    """`node` in parentheses if it binds less than `least`."""
    binds = _BINDS.get(node.operation, _WHOLE) if isinstance(node, Call) else _WHOLE
    text = print_expression(node)
    return text if binds >= least else f"({text})"


def _print_literal(node: Literal) -> str:
    value = node.value
    if isinstance(value, str):
        escaped = value.replace("\\", "\\\\").replace("'", "\\'")
        return f"'{escaped}'"
    if isinstance(value, Decimal):
        return format(value, "f")
    if isinstance(value, float):
        # Only an exponent makes a number a float; without one it would be read as a decimal.
        text = repr(value)
        return text if "e" in text else f"{text}e0"
    if value is None:
        return "null"
    return str(value).lower()


def _print_number(number: Decimal) -> str:
    """Without a point that nothing follows, leading and trailing zeros and the sign of zero."""
    if number.is_zero():
        number = abs(number)
    text = format(number, "f")
    if "." not in text:
        return text
    return text.rstrip("0").rstrip(".")


def _keeps_values(node: Node) -> bool:
    """Whether the node surely has a value wherever its columns have one."""
    if not isinstance(node, Call):
        return node != Literal(None)
    if path_of(node):
        # A part of a column is an input itself.
        return True
    return node.operation in _KEEPING and all(map(_keeps_values, node.arguments))


def inputs_of(checked: Expression) -> tuple[Path, ...]:
    """The columns that an expression reads, and the parts of columns, each once.

    >>> inputs_of(parse_expression("source.where", "delay > 60 and trip.stops[0] = gate"))
    (('delay',), ('trip', 'stops', 0), ('gate',))
    """
    return tuple(dict.fromkeys(_find_inputs(tree(checked))))


def _find_inputs(node: Node) -> list[Path]:
    """The inputs of a node in order of appearance, each as often as it appears."""
    path = path_of(node)
    if path:
        return [path]
    found: list[Path] = []
    if isinstance(node, Call):
        for argument in node.arguments:
            found += _find_inputs(argument)
    return found


def _count_nodes(node: Node) -> int:
    """How many nodes the expression has once it is built as a column.

    Some operations use their first argument several times, and each use is a copy.
    """
    if not isinstance(node, Call):
        return 1
    first, *others = map(_count_nodes, node.arguments)
    if node.operation == "case of":
        # Each arm compares the operand; after it there are two arguments an arm, and the else.
        times = (len(others) - 1) // 2
    else:
        times = _REPEATS.get(node.operation, 1)
    return 1 + times * first + sum(others)
