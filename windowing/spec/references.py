"""Columns and parts of columns as a spec names them, and the columns that parts become.

`trip.rider.country` as a key becomes a computed column `country`. From there on the pipeline knows
that column alone, under that name.
"""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from windowing.errors import SpecError
from windowing.spec.expressions.parse import parse_expression, print_expression, tree
from windowing.spec.expressions.tree import Call, Literal, Name, Node, path_of
from windowing.spec.kinds import Expression
from windowing.spec.reserved import NO_DELTA_NAME
from windowing.spec.words import in_quotes, quote_value

Computed = tuple[str, Expression]
"""A column by its name, and the expression that computes it."""

FORM = "a column such as delay, `odd name` or trip.rider.country"

_MARKS = re.compile(r"[.`\[]")


@dataclass(frozen=True)
class Reference:
    """A column or a part of one that `field` of a spec names, and the `name` that it has then.

    It is `computed` by an expression, unless it is a column of the source that keeps its name.
    """

    field: str
    name: str
    computed: Expression | None = None


def is_marked(text: str) -> bool:
    """Whether a text has points, backticks or brackets, so that it is more than a bare name."""
    return _MARKS.search(text) is not None


def read_column(field: str, text: str) -> Reference:
    """What `text` names: a column as it is called, or a part of one.

    Without points, backticks and brackets the whole text is the name of a column. SpecError at
    `field` where it is none of these.

    >>> read_column("source.event_time", "Event Time")
    Reference(field='source.event_time', name='Event Time', computed=None)
    >>> read_column("source.event_time", "trip.at").name
    'at'
    """
    if not is_marked(text):
        return Reference(field, text)
    node = _read_node(field, text)
    # A backtick in a name can't be told from those around it everywhere.
    if isinstance(node, Name) and "`" not in node.name:
        return Reference(field, node.name)
    return _refer(field, node)


def read_output_column(field: str, text: str) -> Reference:
    """The same for a column that gives its name to a column of a table.

    One with a name that no such column can have gets another one.

    >>> read_output_column("aggregates.total", "`Total Amount`").name
    'Total_Amount'
    """
    found = read_column(field, text)
    if found.computed is None and NO_DELTA_NAME.search(found.name):
        return _refer(field, Name(found.name, quoted=True))
    return found


def _read_node(field: str, text: str) -> Node:
    try:
        node = tree(parse_expression(field, text))
    except SpecError:
        node = Literal(None)
    if not path_of(node):
        advice = "a name with other characters than letters, digits and _ is in backticks"
        raise SpecError(field, f"{quote_value(text)} is not {FORM}; {advice}")
    return node


def _refer(field: str, node: Node) -> Reference:
    computed = parse_expression(field, print_expression(node))
    return Reference(field, _name_part(node), computed)


def _name_part(node: Node) -> str:
    """The name of a part: its last field, and the places and keys of elements that follow it.

    Each character that a column of a Delta table can't have becomes an _.

    >>> _name_part(Call("[]", (Call(".", (Name("trip"), Literal("stops"))), Literal(0))))
    'stops_0'
    """
    words: list[str] = []
    while True:
        match node:
            case Call("[]", (inner, Literal(step))):
                words.insert(0, str(step))
                node = inner
            case Call(".", (_, Literal(last))):
                return NO_DELTA_NAME.sub("_", "_".join([str(last), *words]))
            case Name(last):
                return NO_DELTA_NAME.sub("_", "_".join([last, *words]))
            case _:
                raise ValueError(f"internal error: {node} is no part of a column")


def name_parts(field: str, expression: Expression) -> tuple[Expression, tuple[Reference, ...]]:
    """The expression with a column of its own for each part that it reads, and these columns.

    >>> name_parts("aggregates.n.where", parse_expression("", "trip.kind = 'taxi'"))[0].sql
    "kind = 'taxi'"
    """
    found: list[Reference] = []
    node = _name_parts_of(field, tree(expression), found)
    if not found:
        return expression, ()
    return parse_expression(field, print_expression(node)), tuple(found)


def _name_parts_of(field: str, node: Node, found: list[Reference]) -> Node:
    """The node with names for parts of columns, which are added to `found`."""
    if not isinstance(node, Call):
        return node
    if path_of(node):
        found.append(_refer(field, node))
        return _name_column(found[-1].name)
    arguments = (_name_parts_of(field, argument, found) for argument in node.arguments)
    return Call(node.operation, tuple(arguments))


def _name_column(name: str) -> Name:
    """The column, in backticks where its bare name is read as something else.

    >>> _name_column("country"), _name_column("net-total")
    (Name(name='country', quoted=False), Name(name='net-total', quoted=True))
    """
    bare = Name(name)
    try:
        is_read_back = tree(parse_expression("expression", name)) == bare
    except SpecError:
        is_read_back = False
    return bare if is_read_back else Name(name, quoted=True)


def columns_of(
    references: Iterable[Reference], given: Sequence[Computed]
) -> tuple[tuple[Computed, ...], tuple[tuple[str, str], ...]]:
    """The columns that parts become, without those `given`, and by name the field that needs each.

    SpecError where two would have one name: the same part may be named as often as needed.
    """
    taken = {name.lower(): (name, computed) for name, computed in given}
    columns: list[Computed] = []
    fields: list[tuple[str, str]] = []
    for reference in references:
        if reference.computed is None:
            continue
        wanted = (reference.name, reference.computed)
        other = taken.get(reference.name.lower())
        if other is None:
            taken[reference.name.lower()] = wanted
            columns.append(wanted)
            fields.append((reference.name, reference.field))
        elif other != wanted:
            raise SpecError(reference.field, _describe_clash(wanted, other))
    return tuple(columns), tuple(fields)


def _describe_clash(wanted: Computed, other: Computed) -> str:
    name, computed = wanted
    other_name, other_computed = other
    wrong = f"{computed.sql!r} would be called {name!r}"
    return f"{wrong}, but {other_name!r} is {other_computed.sql!r}; {advise_name(computed)}"


def advise_name(computed: Expression) -> str:
    """How a part of a column gets another name than that of its last part."""
    name = re.sub(r"\W+", "_", computed.sql).strip("_")
    example = f"columns: {{{name}: {in_quotes(computed.sql)}}}"
    return f"give it another name in source.columns, as in {example}, and use that"
