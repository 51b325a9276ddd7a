"""Functions of regular expressions, none of which can run away on a text.

A pattern is searched for anywhere in a text, from the left; nothing of it means anything else than
in windowing.spec.expressions.regex.
"""

from collections.abc import Callable

from pyspark.sql import functions as F

from windowing.expressions.values import (
    TEXT,
    TRUTH,
    Built,
    Unfit,
    Values,
    literal_value,
    require_families,
)
from windowing.spec.expressions.parse import print_expression
from windowing.spec.expressions.regex import read_regex, write_java
from windowing.spec.expressions.regex_parts import Regex, count_groups
from windowing.spec.expressions.tree import Call, Literal
from windowing.spec.words import quote_value


def _read_regex(call: Call) -> Regex:
    return read_regex(str(literal_value(call.arguments[1])))


def _build_like(call: Call, values: Values) -> Built:
    """Whether the pattern fits a part of the text."""
    require_families("a text", call, values)
    return TRUTH, values[0].column.rlike(write_java(_read_regex(call)))


def _build_extracted(call: Call, values: Values) -> Built:
    """The part of the text that the group of the pattern fits, or else all of the pattern does.

    It is null where the pattern fits nothing.
    """
    require_families("a text", call, values)
    regex, text = _read_regex(call), values[0].column
    pattern = write_java(regex)
    # Spark gives an empty text where a pattern does not fit.
    found = F.regexp_extract(text, pattern, count_groups(regex.part))
    return TEXT, F.when(text.rlike(pattern), found)


def _build_replaced(call: Call, values: Values) -> Built:
    """The text with each part that the pattern fits replaced by another text."""
    require_families("a text", call, values)
    by = call.arguments[2]
    if not isinstance(by, Literal):
        raise Unfit(f"{quote_value(print_expression(call))} replaces by something else than a text")
    # In Java a backslash and a dollar sign mean something in what replaces.
    written = str(by.value).replace("\\", "\\\\").replace("$", "\\$")
    return TEXT, F.regexp_replace(values[0].column, write_java(_read_regex(call)), written)


REGEX_FUNCTIONS: dict[str, Callable[[Call, Values], Built]] = {
    "regexp_like": _build_like,
    "regexp_extract": _build_extracted,
    "regexp_replace": _build_replaced,
}
"""By function of regular expressions the function that builds its column from a call and values."""
