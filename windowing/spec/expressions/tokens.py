"""Text -> tokens of sqlglot, each of which an expression may have.

They are checked before the parser reads them, because it accepts more than an expression may have.

Only windowing.spec.expressions.syntax imports this.
"""

import re
from collections.abc import Iterable, Sequence
from itertools import pairwise
from math import isfinite

from sqlglot import Token, TokenType
from sqlglot.dialects.spark import Spark

from windowing.spec import aggregate_description
from windowing.spec.expressions.tree import FUNCTIONS
from windowing.spec.words import join_names, quote_value, suggest_name

LONGEST = 1_000
DEEPEST = 16
"""How many brackets, cases and signs may stand inside each other."""
MOST_DIGITS = 38
FORM = (
    "an expression is made of columns, literals, comparisons, arithmetic, and, or, not, in, "
    "between, like, is null, case, cast"
    f" and {join_names(FUNCTIONS)}"
)

_CALLED = (*FUNCTIONS, "cast", "try_cast")
"""Words that may stand before a parenthesis as the name of a function."""
_KNOWN = (
    "and",
    "or",
    "not",
    "in",
    "between",
    "like",
    "is",
    "null",
    "case",
    "when",
    "then",
    "else",
    "end",
    "true",
    "false",
    "as",
)
_MARKS = (
    "(",
    ")",
    ",",
    "+",
    "-",
    "*",
    "/",
    "%",
    "=",
    "==",
    "!=",
    "<>",
    "<",
    "<=",
    ">",
    ">=",
    "<=>",
    ".",
    "[",
    "]",
)
# mean is what other systems call avg.
_AGGREGATES = (*aggregate_description.FUNCTIONS, "mean")
_BEFORE_TEXT = tuple(mark for mark in (*_MARKS, *_KNOWN) if mark not in (")", "]", "."))
"""What may stand before a text: every mark but those that end a value, and every known word."""
_MEANT = {
    ";": "a second statement",
    "->": "a lambda",
    **dict.fromkeys("?:@$", "a parameter"),
}
"""What a mark that is not allowed would be in SQL."""
_WORDS = {
    **dict.fromkeys(("&&", "&"), "and"),
    **dict.fromkeys(("||", "|"), "or, and for texts concat(a, b)"),
    "!": "not",
    "::": "cast(x as bigint)",
    **dict.fromkeys(("~", "rlike", "regexp"), "regexp_like(x, 'a')"),
    "ilike": "lower(x) like 'a%'",
}
"""What is written in place of a mark, or of a word before a text, that other languages have."""
_CALLS_MEANT = {
    "over": "a window function",
    "exists": "a subquery",
    **dict.fromkeys(_AGGREGATES, "an aggregate"),
}
"""What a call that is not allowed would be in SQL."""
_NAME = re.compile(r"[^\W\d]\w*")
_NUMBER = re.compile(r"(\d+)(\.\d+)?(e[+-]?\d+)?", re.ASCII | re.IGNORECASE)
_TEXT = re.compile(r"(?:[^\\]|\\[\\'\"%_])*")


class Refused(Exception):
    """Raised with what is wrong with a text, as the rest of a sentence that begins with it."""


def read_tokens(text: str, longest: int | None) -> list[Token]:
    """The tokens of `text`: names, literals, operators, known words and known functions.

    Refused if there is anything else, or if they are nested too deeply.
    """
    if not text.strip():
        raise Refused("is empty; write an expression such as delay > 60")
    if longest is not None and len(text) > longest:
        raise Refused(f"has {len(text):,} characters; an expression has at most {longest:,}")
    _check_visible(text)
    found = _name_fields(Spark().tokenize(text))
    _check_gaps(text, found)
    _check_nesting(found)
    before: Token | None = None
    for token in found:
        _check_token(text[token.start : token.end + 1], token, before)
        before = token
    _check_calls(found)
    return found


def _name_fields(found: Sequence[Token]) -> list[Token]:
    """The tokens, where each word after a point is the name of a field, as end is in `trip.end`."""
    fields = list(found)
    for at, (before, token) in enumerate(pairwise(found), start=1):
        if before.token_type != TokenType.DOT or token.token_type == TokenType.IDENTIFIER:
            continue
        if not _NAME.fullmatch(token.text):
            raise Refused(
                f"has {quote_value(token.text)} after a point, where the name of a field is needed,"
                " or is a number without its zero;"
                " a name with other characters than letters, digits and _ is in backticks"
            )
        place = token.line, token.col, token.start, token.end
        fields[at] = Token(TokenType.IDENTIFIER, token.text, *place)
    return fields


def _check_visible(text: str) -> None:
    for character in text:
        if not character.isprintable() and character not in "\n\t":
            raise Refused(
                f"holds the invisible character U+{ord(character):04X}; "
                "write visible characters, blanks and line ends"
            )


def _check_gaps(text: str, found: Sequence[Token]) -> None:
    """Nothing but white space stands before, between and after tokens."""
    # sqlglot makes no token of a comment.
    end = 0
    gaps = []
    for token in found:
        gaps.append(text[end : token.start])
        end = token.end + 1
    gaps.append(text[end:])
    if any(gap.strip() for gap in gaps):
        raise Refused("has a comment; write comments outside of the expression")


def _check_nesting(found: Iterable[Token]) -> None:
    """Counts what is open at each token: parentheses, cases, and signs that follow each other."""
    # (word, 1 and the signs before it) of each parenthesis and case that is open.
    opened: list[tuple[str, int]] = []
    signs = 0
    for token in found:
        word = _lower_word(token)
        if word in ("(", "case"):
            opened.append((word, 1 + signs))
        elif word == ")":
            if not opened or opened[-1][0] != "(":
                raise Refused("has a parenthesis that closes nothing; check the parentheses")
            opened.pop()
        elif word == "end" and opened and opened[-1][0] == "case":
            opened.pop()
        if word in ("not", "-", "+"):
            signs += 1
        else:
            signs = 0
        if signs + sum(depth for _, depth in opened) > DEEPEST:
            raise Refused(f"is nested more than {DEEPEST} deep; write it flatter")
    if opened:
        raise Refused(
            f"has a {quote_value(opened[-1][0])} that is not closed; "
            "check the parentheses and the ends of cases"
        )


def _check_token(written: str, token: Token, before: Token | None) -> None:
    kind = token.token_type
    if kind == TokenType.STRING and written[0] not in "'\"":
        raise Refused(
            "begins with a command; write a column of that name in backticks, as in `show` > 1"
        )
    if kind == TokenType.STRING:
        _check_text(written[1:-1], before)
    elif kind == TokenType.NUMBER:
        _check_number(written)
    elif before is not None and before.token_type == TokenType.DOT:
        # Names of fields are never those of helper columns.
        return
    elif kind == TokenType.IDENTIFIER or (_NAME.fullmatch(written) and written == token.text):
        _check_name(token)
    elif token.text not in _MARKS or written != token.text:
        if written in _WORDS:
            raise Refused(f"has {quote_value(written)}; write {_WORDS[written]}")
        meant = _MEANT.get(written)
        explained = f", {meant}" if meant else ""
        raise Refused(f"has {quote_value(written)}{explained}; {FORM}")


def _check_text(inside: str, before: Token | None) -> None:
    # Spark joins neighbouring texts, and reads a word before a text as its type: date '2024-01-01'.
    if before is not None and _lower_word(before) not in _BEFORE_TEXT:
        if _lower_word(before) in _WORDS:
            raise Refused(f"has {quote_value(before.text)}; write {_WORDS[_lower_word(before)]}")
        form = "times are texts without a word before them, a quote inside a text is written \\'"
        raise Refused(f"has the text {quote_value(inside)} where an operator is needed; {form}")
    if not _TEXT.fullmatch(inside):
        raise Refused(
            "has a backslash in a text that stands before none of \\ ' \" % _; "
            "write \\\\ for one that is meant"
        )


def _check_number(written: str) -> None:
    match = _NUMBER.fullmatch(written)
    if match is None:
        raise Refused(f"has {written!r}; a number is written 5, 0.5 or 5e3")
    whole, fraction, exponent = match.groups()
    if exponent:
        fits = isfinite(float(written))
    elif fraction:
        fits = len(whole + fraction) - 1 <= MOST_DIGITS
    else:
        fits = len(whole) <= MOST_DIGITS and int(whole) < 2**63
    if not fits:
        limits = f"a whole number is below 2^63, a decimal has up to {MOST_DIGITS} digits"
        raise Refused(f"has the number {quote_value(written)}, which is too large; {limits}")


def _check_name(token: Token) -> None:
    if token.text.startswith("__"):
        raise Refused(
            f"names {token.text!r}, but names that begin with '__' are reserved; rename the column"
        )
    if _lower_word(token) == "select":
        raise Refused("has a subquery; an expression looks at one row of the source")


def _check_calls(found: Sequence[Token]) -> None:
    before: Token | None = None
    for token, after in pairwise(found):
        # cast(price as decimal(9, 2)) calls nothing.
        is_type = before is not None and _lower_word(before) == "as"
        if _lower_word(after) == "(" and not is_type:
            _check_call(token)
        before = token


def _check_call(token: Token) -> None:
    """Refuses the name before a parenthesis unless it is that of a function."""
    word = _lower_word(token)
    is_name = token.token_type == TokenType.IDENTIFIER or _NAME.fullmatch(word)
    if not is_name or word in _CALLED or word in _KNOWN:
        return
    meant = _CALLS_MEANT.get(word)
    if meant is None:
        hint = suggest_name(word, _CALLED)
    else:
        hint = f", {meant}, but an expression looks at one row"
    raise Refused(f"calls {token.text!r}{hint}; the functions are {join_names(_CALLED[:-1])}")


def _lower_word(token: Token) -> str:
    """An operator or an unquoted word in lower case, nothing for what is quoted."""
    if token.token_type in (TokenType.STRING, TokenType.IDENTIFIER):
        return ""
    return token.text.lower()
