"""Text -> parts of a regular expression; Unusable for anything that is not known here."""

import string

from windowing.spec.expressions.regex_parts import (
    ANY,
    OTHER,
    Choice,
    Group,
    Mark,
    Marks,
    Part,
    Regex,
    Repeat,
    Row,
    Stretch,
    count_groups,
    may_be_empty,
)
from windowing.spec.words import quote_value

_MOST_TIMES = 1_000
_CLASSES = {
    "d": string.digits,
    "w": string.ascii_letters + string.digits + "_",
    "s": " \t\n\x0b\f\r",
}
_CONTROLS = {"n": "\n", "r": "\r", "t": "\t"}
_SPECIAL = frozenset("()[]{}?*+|.^$\\")
_PLAIN = frozenset(string.ascii_letters + string.digits + " _")


class Unusable(Exception):
    """What is wrong with a pattern, as the rest of a sentence."""


def read_parts(text: str) -> Regex:
    """The parts that a text spells."""
    return _Reader(text).read_all()


class _Reader:
    """Reads a pattern from left to right."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._at = 0

    def read_all(self) -> Regex:
        """The whole pattern."""
        from_begin = self._take("^")
        part = self._read_choice()
        to_end = self._take("$")
        if self._at < len(self._text):
            raise Unusable(_describe_stray("$" if to_end else self._next))
        if isinstance(part, Choice) and (from_begin or to_end):
            raise Unusable("in which ^ or $ is beside |; put the choice in parentheses")
        return Regex(part, from_begin, to_end)

    def _read_choice(self) -> Part:
        ways = [self._read_row()]
        while self._take("|"):
            ways.append(self._read_row())
        if len(ways) == 1:
            return ways[0]
        if any(count_groups(way) for way in ways):
            raise Unusable("whose group may take no part; put the choice into the group")
        return Choice(tuple(ways))

    def _read_row(self) -> Part:
        parts: list[Part] = []
        while self._at < len(self._text) and self._next not in ")|$":
            parts.append(self._read_repeated())
        return parts[0] if len(parts) == 1 else Row(tuple(parts))

    def _read_repeated(self) -> Part:
        part = self._read_one()
        times = self._read_times()
        if times is None:
            return part
        if self._at < len(self._text) and self._next in "?*+{":
            raise Unusable(f"in which {self._next} follows a repetition, which is not allowed")
        if count_groups(part):
            raise Unusable("whose group is repeated or may be left out; put what repeats into it")
        fewest, most = times
        if isinstance(part, Mark):
            return Stretch(part, fewest, most)
        if most is None:
            raise Unusable("which repeats parentheses without a most; write one, as in (...){1,20}")
        if may_be_empty(part):
            raise Unusable("which repeats parentheses that may match nothing")
        return Repeat(part, fewest, most)

    def _read_one(self) -> Part:
        first = self._next
        self._at += 1
        match first:
            case "(":
                return self._read_parentheses()
            case "[":
                return self._read_class()
            case ".":
                return Mark(ANY - {ord("\n")}, "[^\\n]")
            case "\\":
                return self._read_escaped()
            case _ if first in _SPECIAL:
                self._at -= 1
                raise Unusable(_describe_stray(first))
        return Mark(_marks_of(first), _write_mark(first))

    def _read_parentheses(self) -> Part:
        is_group = not self._take("?:")
        if is_group and self._at < len(self._text) and self._next == "?":
            raise Unusable("in which (? is not followed by :, and nothing else is allowed there")
        part = self._read_choice()
        if not self._take(")"):
            raise Unusable("in which ( is not closed")
        return Group(part) if is_group else part

    def _read_escaped(self) -> Mark:
        if self._at == len(self._text):
            raise Unusable("which ends with a backslash")
        letter = self._next
        self._at += 1
        known = _CLASSES.get(letter.lower())
        if known is not None:
            marks = frozenset(map(ord, known))
            is_other = letter.isupper()
            return Mark(ANY - marks if is_other else marks, f"\\{letter}")
        if letter.isalnum():
            raise Unusable(f"in which \\{letter} means nothing; allowed: \\d \\w \\s \\n \\r \\t")
        return Mark(_marks_of(letter), _write_mark(letter))

    def _read_class(self) -> Mark:
        """A set of characters, behind its bracket."""
        is_other = self._take("^")
        marks: set[int] = set()
        java = ""
        while not self._take("]"):
            first = self._read_member()
            if self._has_range and self._take("-"):
                first = _join_range(first, self._read_member())
            marks |= first.marks
            java += first.java
        if not java:
            raise Unusable("in which a set in brackets is empty")
        # A character beyond ASCII stands for all of those, so none of them is surely left out.
        left = (ANY - marks) | ({OTHER} & marks) if is_other else marks
        return Mark(frozenset(left), f"[{'^' * is_other}{java}]")

    def _read_member(self) -> Mark:
        if self._at == len(self._text):
            raise Unusable("in which [ is not closed")
        first = self._next
        self._at += 1
        if first == "\\":
            return self._read_escaped()
        if first == "[":
            raise Unusable("in which [ in brackets needs a backslash before it")
        return Mark(_marks_of(first), _write_mark(first))

    def _read_times(self) -> tuple[int, int | None] | None:
        """How often the part before this is repeated; None where nothing says so."""
        for sign, times in (("?", (0, 1)), ("*", (0, None)), ("+", (1, None))):
            if self._take(sign):
                return times
        if not self._take("{"):
            return None
        inside, closed, _ = self._text[self._at :].partition("}")
        fewest, comma, most = inside.partition(",")
        if not closed or not fewest.isdecimal() or not (most if comma else fewest).isdecimal():
            raise Unusable("in which { does not begin a repetition such as {3} or {1,20}")
        self._at += len(inside) + 1
        low, high = int(fewest), int(most or fewest)
        if not low <= high <= _MOST_TIMES or high == 0:
            raise Unusable(f"in which {{{inside}}} is no repetition of 1 to {_MOST_TIMES:,} times")
        return low, high

    @property
    def _has_range(self) -> bool:
        """Whether a hyphen comes next that does not end the set."""
        coming = self._text[self._at : self._at + 2]
        return coming.startswith("-") and coming != "-]"

    @property
    def _next(self) -> str:
        return self._text[self._at]

    def _take(self, sign: str) -> bool:
        """Whether that comes next; then it is passed over."""
        found = self._text.startswith(sign, self._at)
        if found:
            self._at += len(sign)
        return found


def _describe_stray(sign: str) -> str:
    """What is wrong with a sign where it means nothing."""
    if sign in "^$":
        return f"in which {sign} is not at the {'begin' if sign == '^' else 'end'}"
    if sign in "?*+{":
        return f"in which {sign} repeats nothing"
    return f"in which {quote_value(sign)} needs a backslash before it"


def _marks_of(character: str) -> Marks:
    return frozenset({min(ord(character), OTHER)})


def _write_mark(character: str) -> str:
    return character if character in _PLAIN else f"\\x{{{ord(character):X}}}"


def _join_range(first: Mark, last: Mark) -> Mark:
    """The characters from one to another one."""
    if len(last.marks) != 1:
        raise Unusable("in which - in brackets needs a character behind it")
    low, high = min(first.marks), min(last.marks)
    if low > high or low == OTHER:
        raise Unusable("in which a range in brackets is not one of ASCII, from low to high")
    return Mark(frozenset(range(low, high + 1)), f"{first.java}-{last.java}")
