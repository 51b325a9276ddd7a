"""Tokens -> tree of an expression: sqlglot parses, then every node it found is checked.

A text is refused unless each node is of a kind that is known here. Only
windowing.spec.expressions.parse imports this module, and only once there is an expression to read,
because sqlglot takes a while to load.
"""

import re
from collections.abc import Iterable, Sequence
from decimal import Decimal

from sqlglot import exp
from sqlglot.dialects.spark import Spark
from sqlglot.errors import ErrorLevel, ParseError, TokenError
from sqlglot.parsers.spark import SparkParser

from windowing.errors import SpecError
from windowing.spec.expressions.forms import FORMS
from windowing.spec.expressions.tokens import FORM, LONGEST, MOST_DIGITS, Refused, read_tokens
from windowing.spec.expressions.tree import (
    ANY_NUMBER,
    ELEMENT,
    FIELD,
    FUNCTIONS,
    Call,
    Literal,
    Name,
    Node,
    path_of,
)
from windowing.spec.words import quote_value

LONGEST_CHAIN = 100
"""How many operators may follow each other, as in a + b + c."""
TYPES = f"bigint, double, string and decimal(p, s) with up to {MOST_DIGITS} digits"

_BINARY: dict[type[exp.Expr], str] = {
    exp.And: "and",
    exp.Or: "or",
    exp.Add: "+",
    exp.Sub: "-",
    exp.Mul: "*",
    exp.Div: "/",
    exp.Mod: "%",
}
_COMPARISONS: dict[type[exp.Expr], str] = {
    exp.EQ: "=",
    exp.NEQ: "!=",
    exp.NullSafeEQ: "<=>",
    exp.LT: "<",
    exp.LTE: "<=",
    exp.GT: ">",
    exp.GTE: ">=",
}
_COMPARED = (*_COMPARISONS, exp.Is, exp.In, exp.Between, exp.Like, exp.Not)
_TYPES = {exp.DType.BIGINT: "bigint", exp.DType.DOUBLE: "double", exp.DType.TEXT: "string"}
_FLAGS = {"typed", "safe", "negate"}
"""What sqlglot records about a node in addition to its parts."""

_PATTERN = re.compile(r"(?:[^\\]|\\[\\%_])*")


class _Parser(SparkParser):
    """Spark's grammar without Spark's functions: each call is a name and its arguments."""

    FUNCTIONS = {}
    NO_PAREN_FUNCTIONS = {}
    ARRAY_CONSTRUCTORS = {}
    FUNCTION_PARSERS = {name: SparkParser.FUNCTION_PARSERS[name] for name in ("CAST", "TRY_CAST")}
    NO_PAREN_FUNCTION_PARSERS = {"CASE": SparkParser.NO_PAREN_FUNCTION_PARSERS["CASE"]}


def parse_tree(field: str, text: str, longest: int | None = LONGEST) -> Node:
    """The tree that `text` spells, or a SpecError at `field`, whatever the text."""
    try:
        return _parse_checked(text, longest)
    except Refused as refused:
        problem = str(refused)
    except TokenError:
        problem = "has a quote, a backtick or a comment that is not closed"
    except ParseError as error:
        problem = f"can't be read{_describe_place(error)}; {FORM}"
    except RecursionError:
        problem = "is nested too deeply; write it flatter"
    raise SpecError(field, f"{quote_value(text)} {problem}")


def _describe_place(error: ParseError) -> str:
    """` near 'x'` if the parser names the place of its error."""
    if not error.errors:
        return ""
    near = error.errors[0].get("highlight")
    return f" near {quote_value(near)}" if near else ""


def _parse_checked(text: str, longest: int | None) -> Node:
    parser = _Parser(dialect=Spark(), error_level=ErrorLevel.IMMEDIATE)
    roots = parser.parse_into(exp.Condition, read_tokens(text, longest), text)
    if len(roots) != 1 or roots[0] is None:
        raise Refused(f"is not one expression; {FORM}")
    _check_chains(roots[0])
    return _build_node(roots[0])


def _check_chains(root: exp.Expr) -> None:
    """Refuses a tree with too many levels, one of which each operator of a chain is."""
    depth = 0
    level = [root]
    while level:
        depth += 1
        children: list[exp.Expr] = []
        for node in level:
            children += node.iter_expressions()
        level = children
    if depth > LONGEST_CHAIN:
        raise Refused(
            f"has more than {LONGEST_CHAIN} operators in a row; for many values write in ('a', 'b')"
        )


def _build_node(found: exp.Expr) -> Node:
    kind = type(found)
    if kind in _BINARY:
        return Call(_BINARY[kind], _build_nodes(_take_parts(found, "this", "expression")))
    if kind in _COMPARISONS:
        return Call(_COMPARISONS[kind], _build_nodes(_take_compared(found, "this", "expression")))
    match found:
        case exp.Paren():
            return _build_node(*_take_parts(found, "this"))
        case exp.Column():
            return _build_column(_take_parts(found, "catalog", "db", "table", "this"))
        case exp.Dot():
            inner, field = _take_parts(found, "this", "expression")
            return _take_field(_build_node(inner), field)
        case exp.Bracket():
            return _build_element(found)
        case exp.Null() | exp.Boolean() | exp.Literal():
            return _build_literal(found)
        case exp.Neg():
            return _negate(_build_node(*_take_parts(found, "this")))
        case exp.Not():
            return Call("not", (_build_node(*_take_parts(found, "this")),))
    predicate = _build_predicate(found)
    if predicate is not None:
        return predicate
    return _build_call(found)


def _build_nodes(found: Iterable[exp.Expr]) -> tuple[Node, ...]:
    return tuple(map(_build_node, found))


def _take_parts(found: exp.Expr, *names: str) -> list[exp.Expr]:
    """The children under `names`, in their order; refuses a node that has any others."""
    given = {}
    for key, value in found.args.items():
        if value is not None and value is not False and value != []:
            given[key] = value
    others = given.keys() - {*names} - _FLAGS
    if others:
        raise _unknown_operation(found)
    parts: list[exp.Expr] = []
    for name in names:
        value = given.get(name, [])
        if isinstance(value, list):
            parts += value
        else:
            parts.append(value)
    return parts


def _take_compared(found: exp.Expr, *names: str) -> tuple[exp.Expr, ...]:
    """The sides of a comparison; refuses one that is a comparison itself without parentheses."""
    return _check_sides(*_take_parts(found, *names))


def _check_sides(*parts: exp.Expr) -> tuple[exp.Expr, ...]:
    if any(isinstance(part, _COMPARED) for part in parts):
        raise Refused(
            "has comparisons side by side; put one of them in parentheses or write and between them"
        )
    return parts


def _unknown_operation(found: exp.Expr) -> Refused:
    operation = re.sub("(?<=[a-z])(?=[A-Z])", " ", type(found).__name__).lower()
    return Refused(f"has an operation that is not allowed ({operation}); {FORM}")


def _build_column(parts: Sequence[exp.Expr]) -> Node:
    """A column, or a field of it: what sqlglot takes for a table before a column is a struct."""
    first, *fields = parts
    if not isinstance(first, exp.Identifier):
        raise _unknown_operation(first)
    node: Node = Name(first.name, bool(first.args.get("quoted")))
    for field in fields:
        node = _take_field(node, field)
    return node


def _take_field(inner: Node, field: exp.Expr) -> Node:
    if not path_of(inner) or not isinstance(field, exp.Identifier):
        raise Refused("has a point after something else than a column; write a field as in trip.at")
    return Call(FIELD, (inner, Literal(field.name)))


def _build_element(found: exp.Expr) -> Node:
    inner, *places = _take_parts(found, "this", "expressions")
    place = _build_node(places[0]) if len(places) == 1 else None
    step = place.value if isinstance(place, Literal) else None
    node = _build_node(inner)
    # bool is a subclass of int, but true is no place.
    is_step = isinstance(step, str) or (type(step) is int and 0 <= step < 2**31)
    if not path_of(node) or not is_step:
        raise Refused(
            "has brackets that are not an element of a column; "
            "write tags[0] for the first one of an array, attributes['k'] for that of a map"
        )
    return Call(ELEMENT, (node, Literal(step)))


def _build_literal(found: exp.Expr) -> Literal:
    if isinstance(found, exp.Null):
        return Literal(None)
    if isinstance(found, exp.Boolean) or found.is_string:
        return Literal(found.this)
    text = found.name
    if "e" in text.lower():
        return Literal(float(text))
    if "." in text:
        return Literal(Decimal(text))
    return Literal(int(text))


def _negate(node: Node) -> Node:
    """Minus a number is a number: -5 and - 5 are one literal."""
    match node:
        case Literal(Decimal() as number):
            return Literal(number.copy_negate())
        # bool is a subclass of int, but true is no number.
        case Literal(int() | float() as number) if not isinstance(number, bool):
            return Literal(-number)
    return Call("negate", (node,))


def _build_predicate(found: exp.Expr) -> Node | None:
    match found:
        case exp.Is():
            subject, null = _take_compared(found, "this", "expression")
            if not isinstance(null, exp.Null):
                raise Refused(
                    "has is before something else than null; write is null, is not null, = or <=>"
                )
            return Call("is null", (_build_node(subject),))
        case exp.In():
            if not found.expressions:
                raise Refused("has in without a list of values; write in ('a', 'b')")
            _take_parts(found, "this", "expressions")
            _check_sides(found.this)
            return Call("in", _build_nodes([found.this, *found.expressions]))
        case exp.Between():
            return Call("between", _build_nodes(_take_compared(found, "this", "low", "high")))
        case exp.Like():
            subject, pattern = _take_compared(found, "this", "expression")
            like = Call("like", (_build_node(subject), _build_pattern(pattern)))
            if found.args.get("negate"):
                return Call("not", (like,))
            return like
    return None


def _build_pattern(found: exp.Expr) -> Literal:
    if not isinstance(found, exp.Literal) or not found.is_string:
        raise Refused("has like before something else than a text; write like 'A%'")
    if not _PATTERN.fullmatch(found.name):
        raise Refused(
            "has a like with a backslash that stands before neither % nor _ nor another one, "
            "where it would mean nothing"
        )
    return _build_literal(found)


def _build_call(found: exp.Expr) -> Node:
    match found:
        case exp.Case():
            return _build_case(found)
        case exp.Cast():
            subject, kind = _take_parts(found, "this", "to")
            return Call("cast", (_build_node(subject), _cast_type(kind)))
        case exp.Anonymous() if isinstance(found.this, str) and found.this.lower() in FUNCTIONS:
            return _build_function(found.this.lower(), _build_nodes(found.expressions))
    raise _unknown_operation(found)


def _build_case(found: exp.Case) -> Call:
    _take_parts(found, "this", "ifs", "default")
    operand = found.args.get("this")
    default = found.args.get("default")
    arms: list[Node] = []
    for arm in found.args["ifs"]:
        arms += _build_nodes(_take_parts(arm, "this", "true"))
    otherwise = Literal(None) if default is None else _build_node(default)
    if operand is None:
        return Call("case", (*arms, otherwise))
    return Call("case of", (_build_node(operand), *arms, otherwise))


def _cast_type(found: exp.Expr) -> Literal:
    if found.this in _TYPES and not found.expressions:
        return Literal(_TYPES[found.this])
    digits = [int(size.name) for size in found.expressions if size.name.isdecimal()]
    if found.this == exp.DType.DECIMAL and len(digits) == 2:
        precision, scale = digits
        if 1 <= precision <= MOST_DIGITS and 0 <= scale <= precision:
            return Literal(f"decimal({precision}, {scale})")
    raise Refused(f"casts to {quote_value(found.sql('spark').lower())}; allowed are {TYPES}")


def _build_function(name: str, arguments: tuple[Node, ...]) -> Call:
    fewest, most = FUNCTIONS[name]
    if not fewest <= len(arguments) <= most:
        wanted = _describe_arguments(fewest, most)
        raise Refused(f"gives {name} {len(arguments)} arguments, but it takes {wanted}")
    if name == "round" and len(arguments) == 2:
        _check_digits(arguments[1])
    if name in FORMS:
        return _check_form(name, arguments)
    return Call(name, arguments)


def _check_form(name: str, arguments: tuple[Node, ...]) -> Call:
    """A call whose form is a literal that is read before any row: a unit, a path or a pattern."""
    form = FORMS[name]
    node = arguments[form.place]
    given = node.value if isinstance(node, Literal) else None
    if not isinstance(given, str):
        raise Refused(f"gives {name} {form.what} that is no text; write one, as in {form.example}")
    problem = form.find_problem(given)
    if problem is not None:
        raise Refused(f"gives {name} {form.what} {quote_value(given)}, {problem}")
    return Call(name, arguments)


def _describe_arguments(fewest: int, most: int) -> str:
    if fewest == most:
        return f"{fewest}"
    if most == ANY_NUMBER:
        return f"{fewest} or more"
    return f"{fewest} or {most}"


def _check_digits(node: Node) -> None:
    digits = node.value if isinstance(node, Literal) else None
    # bool is a subclass of int, so isinstance would let true pass as 1.
    if type(digits) is not int or not 0 <= digits <= 18:
        raise Refused("has a round to something else than 0 to 18 digits, as in round(delay, 2)")
