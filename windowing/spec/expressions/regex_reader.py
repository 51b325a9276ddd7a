"""Text -> parts of a regular expression; Unusable for anything that is not known here."""

import re
import string

from windowing.spec.expressions.regex_parts import (
    ANY,
    OTHER,
    Choice,
    Group,
    Mark,
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
_DEEPEST = 16
"""How many parentheses may lie in one another."""
_CLASSES = {
    "d": string.digits,
    "w": string.ascii_letters + string.digits + "_",
    "s": " \t\n\x0b\f\r",
}
_CONTROLS = {"n": "\n", "r": "\r", "t": "\t"}
_SPECIAL = frozenset("()[]{}?*+|.^$\\")
_PLAIN = frozenset(string.ascii_letters + string.digits + " _")
_TIMES = re.compile(r"\{([0-9]{1,5})(?:(,)([0-9]{1,5})?)?\}")


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
        self._depth = 0

    def read_all(self) -> Regex:
        """The whole pattern."""
        from_begin = self._passes("^")
        ways = self._read_ways()
        to_end = self._passes("$")
        if self._at < len(self._text):
            raise Unusable(_describe_stray("$" if to_end else self._next))
        if len(ways) > 1 and (from_begin or to_end):
            raise Unusable("in which ^ or $ is beside |; write the choice as (?:a|b)")
        return Regex(_join_ways(ways), from_begin, to_end)

    def _read_ways(self) -> list[Part]:
        ways = [self._read_row()]
        while self._passes("|"):
            ways.append(self._read_row())
        return ways

    def _read_row(self) -> Part:
        parts: list[Part] = []
        while self._next not in ("", ")", "|", "$"):
            parts.append(self._read_repeated())
        return parts[0] if len(parts) == 1 else Row(tuple(parts))

    def _read_repeated(self) -> Part:
        part = self._read_one()
        times = self._read_times()
        if times is None:
            return part
        if self._next == "?":
            raise Unusable(
                "in which ? follows a repetition, but there are no lazy ones; "
                "repeat what the next character is not, as in [^<]* before <"
            )
        if self._next in ("*", "+", "{"):
            raise Unusable(f"in which {self._next} follows a repetition")
        if count_groups(part):
            raise Unusable("whose group is repeated or may be left out; put what repeats into it")
        fewest, most = times
        if isinstance(part, Mark):
            return Stretch(part, fewest, most)
        if most is None:
            raise Unusable(
                "which repeats parentheses without an upper limit; write one, as in (...){1,20}"
            )
        if may_be_empty(part):
            raise Unusable("which repeats parentheses that may match nothing")
        return Repeat(part, fewest, most)

    def _read_one(self) -> Part:
        first = self._take()
        match first:
            case "(":
                return self._read_parentheses()
            case "[":
                return self._read_set()
            case ".":
                return Mark(ANY - {ord("\n")}, ".", "[^\\n]")
            case "\\":
                return self._read_escaped()
        if first in _SPECIAL:
            raise Unusable(_describe_stray(first))
        return _mark(first, first)

    def _read_parentheses(self) -> Part:
        is_group = not self._passes("?:")
        if is_group and self._next == "?":
            raise Unusable(
                "in which (? is not followed by :; there is nothing else of that kind, "
                "and small letters are made by lower"
            )
        self._depth += 1
        if self._depth > _DEEPEST:
            raise Unusable(f"in which more than {_DEEPEST} parentheses lie in one another")
        part = _join_ways(self._read_ways())
        if self._next == "$":
            raise Unusable(_describe_stray("$"))
        if not self._passes(")"):
            raise Unusable("in which ( is not closed")
        self._depth -= 1
        return Group(part) if is_group else part

    def _read_escaped(self) -> Mark:
        letter = self._take()
        if not letter:
            raise Unusable("which ends with a backslash")
        text = f"\\{letter}"
        known = _CLASSES.get(letter.lower())
        if known is not None:
            marks = frozenset(map(ord, known))
            return Mark(ANY - marks if letter.isupper() else marks, text, text)
        if letter.isalnum() and letter not in _CONTROLS:
            raise Unusable(f"in which {text} means nothing; allowed: \\d \\w \\s \\n \\r \\t")
        return _mark(_CONTROLS.get(letter, letter), text)

    def _read_set(self) -> Mark:
        """A set of characters, behind its bracket."""
        begin = self._at - 1
        is_other = self._passes("^")
        marks: set[int] = set()
        java = ""
        if self._next == "]":
            raise Unusable("in which a set in brackets is empty; write \\] for a bracket in it")
        while not self._passes("]"):
            first = self._read_member()
            if self._is_before_range():
                self._take()
                first = _join_range(first, self._read_member())
            marks |= first.marks
            java += first.java
        # A character beyond ASCII stands for all of those, so none of them is surely left out.
        left = (ANY - marks) | ({OTHER} & marks) if is_other else marks
        text = self._text[begin : self._at]
        return Mark(frozenset(left), text, f"[{'^' * is_other}{java}]")

    def _read_member(self) -> Mark:
        first = self._take()
        match first:
            case "":
                raise Unusable("in which [ is not closed")
            case "[":
                raise Unusable("in which [ in brackets needs a backslash before it")
            case "\\":
                return self._read_escaped()
        return _mark(first, first)

    def _read_times(self) -> tuple[int, int | None] | None:
        """How often the part before this is repeated; None where nothing says so."""
        for sign, times in (("?", (0, 1)), ("*", (0, None)), ("+", (1, None))):
            if self._passes(sign):
                return times
        if self._next != "{":
            return None
        found = _TIMES.match(self._text, self._at)
        if found is None:
            raise Unusable("in which { does not begin a repetition such as {3}, {0,5} or {1,20}")
        self._at = found.end()
        fewest, comma, most = found.groups()
        low, high = int(fewest), int(most or fewest)
        if not low <= high <= _MOST_TIMES or high == 0:
            raise Unusable(f"in which {found[0]} is no repetition of 1 to {_MOST_TIMES:,} times")
        return low, None if comma and not most else high

    @property
    def _next(self) -> str:
        """The next character; empty at the end."""
        return self._text[self._at : self._at + 1]

    def _take(self) -> str:
        """Passes over the next character; it is empty at the end."""
        taken = self._next
        self._at += len(taken)
        return taken

    def _passes(self, sign: str) -> bool:
        """Passes over a sign if it comes next, and says whether it did."""
        found = self._text.startswith(sign, self._at)
        if found:
            self._at += len(sign)
        return found

    def _is_before_range(self) -> bool:
        """Whether a hyphen comes next that does not end its set."""
        return self._next == "-" and self._text[self._at + 1 : self._at + 2] != "]"


def _join_ways(ways: list[Part]) -> Part:
    if len(ways) == 1:
        return ways[0]
    if any(count_groups(way) for way in ways):
        raise Unusable("whose group may take no part; put the choice into the group")
    return Choice(tuple(ways))


def _describe_stray(sign: str) -> str:
    """What is wrong with a sign where it means nothing."""
    if sign in "^$":
        return f"in which {sign} is not at the {'begin' if sign == '^' else 'end'}"
    if sign in "?*+{":
        return f"in which {sign} repeats nothing"
    return f"in which {quote_value(sign)} needs a backslash before it"


def _mark(character: str, text: str) -> Mark:
    """A character that means itself."""
    java = character if character in _PLAIN else f"\\x{{{ord(character):X}}}"
    return Mark(frozenset({min(ord(character), OTHER)}), text, java)


def _join_range(first: Mark, last: Mark) -> Mark:
    """The characters from one to another one."""
    if len(first.marks) != 1 or len(last.marks) != 1:
        raise Unusable(
            f"in which - in brackets is between {first.text} and {last.text}; "
            "put it last, as in [a-z.-]"
        )
    low, high = min(first.marks), min(last.marks)
    if low > high or high == OTHER:
        raise Unusable("in which a range in brackets is not one of ASCII, from low to high")
    text = f"{first.text}-{last.text}"
    return Mark(frozenset(range(low, high + 1)), text, f"{first.java}-{last.java}")
