"""`quantile(delay, 0.95)` -> Aggregate: a function, its columns and numbers, and nothing else."""

import re
from dataclasses import dataclass, replace

from windowing.errors import SpecError
from windowing.spec.aggregate_description import FUNCTIONS, Call, describe_aggregate
from windowing.spec.dialects import native_call
from windowing.spec.expressions.parse import parse_expression
from windowing.spec.kinds import Aggregate, Expression
from windowing.spec.references import Reference, is_marked, read_output_column
from windowing.spec.words import in_quotes, join_names, quote_value, suggest_name

FORM = "a call such as count(), sum(delay) or quantile(delay, 0.95)"
MOST_VALUES = 100
"""How many values top_k shows at most."""
LONGEST_LIST = 10_000
"""How many values collect shows at most."""
USUAL_LIST = 100
"""How many values collect shows if its call gives no number."""

_CALL = re.compile(r"\s*([A-Za-z_]\w*)\s*\((.*)\)\s*", re.ASCII | re.DOTALL)
_COLUMN = re.compile(r"[^\W\d]\w*")
_NUMBER = re.compile(r"(\d+\.?\d*|\.\d+)(e[+-]?\d+)?", re.ASCII | re.IGNORECASE)
_WHOLE = re.compile(r"\d{1,9}", re.ASCII)
_QUOTES = "'\"`"
_LONGEST_EXAMPLE = 100


@dataclass(frozen=True)
class _Call:
    """A call as it is written in `field`."""

    field: str
    text: str
    function: str
    arguments: tuple[str, ...]

    def refused(self, why: str) -> SpecError:
        return SpecError(self.field, f"{quote_value(self.text)} {why}")

    def expect(self, what: str, *example: str) -> None:
        """SpecError unless there are as many arguments as in the example."""
        if len(self.arguments) != len(example):
            example_call = f"{self.function}({', '.join(example)})"
            raise self.refused(f"needs {what}, as in {example_call}")

    def column(self, at: int) -> str:
        return self.reference(at).name

    def reference(self, at: int) -> Reference:
        """The column that an argument names, or the part of one."""
        found = _find_column(self.field, self.arguments[at])
        if found is None:
            raise self._wrong(at, f"a column; {self._advice(self.arguments[at])}")
        return found

    def fraction(self) -> float:
        """The second argument."""
        text = self.arguments[1]
        if not _NUMBER.fullmatch(text) or not 0 <= float(text) <= 1:
            raise self._wrong(1, "a number from 0 to 1")
        return float(text)

    def whole(self, most: int) -> int:
        """The second argument."""
        text = self.arguments[1]
        if not _WHOLE.fullmatch(text) or not 1 <= int(text) <= most:
            raise self._wrong(1, f"a whole number from 1 to {most}")
        return int(text)

    def _advice(self, text: str) -> str:
        """What to do about `text`, which is no column."""
        name = _name_expression(text)
        if name is None:
            plain = "a name is letters, digits and _, and does not begin with a digit"
            if "`" in text or not re.search(r"[^\W\d]", text):
                return plain
            return f"{plain}; another one is written in backticks: {self._with_argument(text)}"
        expression = " ".join(text.split())
        if len(expression) > _LONGEST_EXAMPLE:
            expression = "..."
        example = f"columns: {{{name}: {in_quotes(expression)}}}"
        call = self._with_argument(text, name)
        place = "an expression is given a name in source.columns"
        return f"{place}, as in {example}, and is used by it: {call}"

    def _with_argument(self, text: str, instead: str | None = None) -> str:
        """The call with another argument for `text`; without one, with `text` in backticks."""
        other = f"`{text}`" if instead is None else instead
        arguments = [other if argument == text else argument for argument in self.arguments]
        return f"{self.function}({', '.join(arguments)})"

    def _wrong(self, at: int, what: str) -> SpecError:
        return SpecError(
            self.field,
            f"{quote_value(self.arguments[at])} in {quote_value(self.text)} is not {what}",
        )


def parse_aggregate(field: str, name: str, call: str, where: Expression | None = None) -> Aggregate:
    """The output column `name` that `call` spells, of the events with `where`.

    median is quantile 0.5. A part of a column is there under the name that it has as a column of
    its own. SpecError at `field` for any other text.

    >>> parse_aggregate("aggregates.p95", "p95", "quantile(delay, 0.95)")
    Aggregate(name='p95', function='quantile', column='delay', argument=0.95, by=None, where=None)
    """
    written = _parse_call(field, call)
    return replace(_read_call(name, written), where=where)


def read_columns(field: str, call: str) -> tuple[Reference, ...]:
    """The columns that a call of an aggregate names, and the parts of columns."""
    written = _parse_call(field, call)
    found = _read_call("", written)
    count = sum(name is not None for name in (found.column, found.by))
    return tuple(written.reference(at) for at in range(count))


def _read_call(name: str, call: _Call) -> Aggregate:
    function = call.function
    match describe_aggregate(function).call:
        case Call.NOTHING:
            _refuse_arguments(call)
            return Aggregate(name, function)
        case Call.COLUMN:
            call.expect("exactly one column", "delay")
            return Aggregate(name, function, call.column(0))
        case Call.MIDDLE:
            call.expect("exactly one column", "delay")
            return Aggregate(name, "quantile", call.column(0), 0.5)
        case Call.TWO_COLUMNS:
            call.expect("two columns, what is shown and what is compared", "gate", "delay")
            return Aggregate(name, function, call.column(0), by=call.column(1))
        case Call.FRACTION:
            call.expect("a column and a number from 0 to 1", "delay", "0.95")
            return Aggregate(name, function, call.column(0), call.fraction())
        case Call.PLACES:
            call.expect(f"a column and a whole number from 1 to {MOST_VALUES}", "gate", "3")
            return Aggregate(name, function, call.column(0), call.whole(MOST_VALUES))
        case Call.LIST:
            most = _read_length(call)
            return Aggregate(name, function, call.column(0), most)


def _parse_call(field: str, call: str) -> _Call:
    match = _CALL.fullmatch(call)
    if match is None:
        raise SpecError(field, f"{quote_value(call)} is not {_advise_call(call.strip())}")
    function = match[1]
    arguments = _split_arguments(match[2])
    if arguments is None:
        raise SpecError(field, f"{quote_value(call)} is not {FORM}")
    if function in FUNCTIONS:
        return _Call(field, call, function, arguments)
    meant = native_call(function, arguments)
    hint = f"; write {meant}" if meant else suggest_name(function, FUNCTIONS)
    wrong = f"{quote_value(call)} has the unknown function {function!r}"
    raise SpecError(field, f"{wrong}{hint}; allowed: {join_names(FUNCTIONS)}")


def _advise_call(written: str) -> str:
    """What a text without parentheses should be: the call of a function, or any call."""
    if written not in FUNCTIONS:
        return FORM
    form = describe_aggregate(written).call
    _, opened, arguments = form.value.partition("(")
    example = f"{written}{opened}{arguments}"
    return f"a call; write {'' if form is Call.NOTHING else 'it as in '}{example}"


def _split_arguments(inside: str) -> tuple[str, ...] | None:
    """The arguments that commas separate in the text between the parentheses of a call.

    Commas in quotes and in inner parentheses separate nothing. None if a quote or an inner
    parenthesis is not closed, or if one closes that was not opened.
    """
    if not inside.strip():
        return ()
    arguments = []
    begin = 0
    depth = 0
    quote = ""
    for at, letter in enumerate(inside):
        if quote:
            if letter == quote:
                quote = ""
        elif letter in _QUOTES:
            quote = letter
        elif letter == "(":
            depth += 1
        elif letter == ")":
            depth -= 1
        elif letter == "," and depth == 0:
            arguments.append(inside[begin:at])
            begin = at + 1
        if depth < 0:
            return None
    if depth or quote:
        return None
    arguments.append(inside[begin:])
    return tuple(argument.strip() for argument in arguments)


def _find_column(field: str, text: str) -> Reference | None:
    """The column that a text names, or the part of one; None where it names none."""
    if _COLUMN.fullmatch(text):
        return Reference(field, text)
    if not is_marked(text):
        # Any text would be taken for a name.
        return None
    try:
        return read_output_column(field, text)
    except SpecError:
        return None


def _name_expression(text: str) -> str | None:
    """A name for the column that the expression `text` computes; None if it is no expression."""
    try:
        columns = parse_expression("", text).columns
    except SpecError:
        return None
    if not columns:
        return None
    name = "_".join(re.findall(r"\w+", text)).strip("_")[:40]
    if not name or name[0].isdigit() or name in columns:
        name = f"value_{name}".rstrip("_")
    return name


def _refuse_arguments(call: _Call) -> None:
    if call.arguments:
        wrong = "has an argument, but count() counts rows and takes no column"
        raise call.refused(f"{wrong}; write {_suggest_count(call)}")


def _suggest_count(call: _Call) -> str:
    """What to write for a count of something: of what differs, of what is not null, or of rows."""
    first, *others = call.arguments
    meant = native_call("count", call.arguments)
    if meant is not None:
        return meant
    if others and first.lower().startswith("distinct"):
        return "count_distinct(c) of one column c, which source.columns can make of several"
    if _find_column(call.field, first) is not None and not others:
        return f"{{call: count(), where: {first} is not null}} for those that are not null"
    return "count()"


def _read_length(call: _Call) -> int:
    """How many values collect shows."""
    if len(call.arguments) == 1:
        return USUAL_LIST
    what = f"a column and, if not {USUAL_LIST}, a whole number from 1 to {LONGEST_LIST}"
    call.expect(what, "gate", "10")
    return call.whole(LONGEST_LIST)
