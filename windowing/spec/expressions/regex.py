r"""Regular expressions that take a bounded time on any text.

One is refused where a search could try too many ways. It is written anew for Java, so that nothing
in it means there what it does not mean here:

    [?&]id=([0-9]+)  ->  [\x{3F}\x{26}]id\x{3D}([0-9]{1,}+)

Two rules keep a search short. Repetitions that have a most multiply what can be tried from one
place of a text, up to `MOST_TRIED`. One without a most, as in `[0-9]+`, begins where the text
allows no other way: the character before it can't be one that it repeats, unless nothing behind it
can fail. So each stretch of a text is read from its begin alone, and read backwards from any place
there is one way to have come there.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from math import prod

from windowing.spec.expressions.regex_parts import (
    ANY,
    NONE,
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
    edge,
    edge_of_row,
    may_be_empty,
)
from windowing.spec.expressions.regex_reader import Unusable, read_parts

MOST_TRIED = 10_000
"""How many characters a search may compare from one place of a text."""


@dataclass(frozen=True)
class _Place:
    """Where a part is: the marks that can be before and behind it.

    `is_last` where nothing behind it can fail.
    """

    before: Marks
    behind: Marks
    is_last: bool


@dataclass(frozen=True)
class _Effort:
    """How many characters a part can read on one way, and how many ways there are."""

    longest: int
    ways: int


@lru_cache(maxsize=256)
def read_regex(text: str) -> Regex:
    """The pattern that a text spells; Unusable for one that takes too long, and for others."""
    found = read_parts(text)
    if may_be_empty(found.part) and not (found.from_begin and found.to_end):
        raise Unusable("which fits every text, because it may match nothing")
    if count_groups(found.part) > 1:
        raise Unusable("which takes out two parts; write (?: for parentheses that take out nothing")
    if count_tried(found) > MOST_TRIED:
        raise Unusable(
            f"whose repetitions combine to more than {MOST_TRIED:,} comparisons from one place of "
            "a text; give them a smaller most, as in {1,20}"
        )
    return found


def find_problem_of_regex(text: str) -> str | None:
    """What is wrong with a pattern, as the rest of a sentence; nothing where it can be used."""
    try:
        read_regex(text)
    except Unusable as unusable:
        return str(unusable)
    return None


def count_tried(regex: Regex) -> int:
    """How many characters a search compares at most from one place of a text.

    Those that a repetition without a most reads are not counted; Unusable where it needs one.

    >>> count_tried(read_parts("[0-9]{1,3}a?"))
    4
    """
    effort = _measure(regex.part, _place_of(regex))
    return effort.longest * effort.ways


def write_java(regex: Regex) -> str:
    r"""The same pattern for Java's regular expressions.

    >>> write_java(read_regex("[?&]id=([0-9]+)"))
    '[\\x{3F}\\x{26}]id\\x{3D}([0-9]{1,}+)'
    """
    begin, end = "\\A" * regex.from_begin, "\\z" * regex.to_end
    return begin + _write(regex.part, _place_of(regex)) + end


def _place_of(regex: Regex) -> _Place:
    return _Place(NONE if regex.from_begin else ANY, NONE, not regex.to_end)


def _list_places(parts: Sequence[Part], place: _Place) -> list[tuple[Part, _Place]]:
    """Each part of a row with its own place."""
    found = []
    for number, part in enumerate(parts):
        past, rest = parts[:number], parts[number + 1 :]
        before = edge_of_row(past[::-1], -1, place.before)
        behind = edge_of_row(rest, 1, place.behind)
        is_last = place.is_last and all(map(may_be_empty, rest))
        found.append((part, _Place(before, behind, is_last)))
    return found


def _place_inside(repeated: Repeat, place: _Place) -> _Place:
    """The place of what is repeated: before and behind it, it may be itself."""
    before = place.before | edge(repeated.part, -1)
    behind = place.behind | edge(repeated.part, 1)
    return _Place(before, behind, place.is_last and repeated.fewest < 2)


def _measure(part: Part, place: _Place) -> _Effort:
    match part:
        case Mark():
            return _Effort(1, 1)
        case Group(inner):
            return _measure(inner, place)
        case Choice(ways):
            return _measure_choice(ways, place)
        case Row(parts):
            efforts = [_measure(*each) for each in _list_places(parts, place)]
            return _Effort(sum(e.longest for e in efforts), prod(e.ways for e in efforts))
        case Stretch():
            return _measure_stretch(part, place)
        case Repeat():
            return _measure_repeated(part, place)


def _measure_choice(ways: Sequence[Part], place: _Place) -> _Effort:
    """The effort of several ways, of which one alone can fit where no two begin alike."""
    efforts = [_measure(way, place) for way in ways]
    longest = sum(effort.longest for effort in efforts)
    begins = [edge(way, 1) for way in ways]
    is_clear = sum(map(len, begins)) == len(NONE.union(*begins))
    if is_clear and not any(map(may_be_empty, ways)):
        return _Effort(longest, max(effort.ways for effort in efforts))
    return _Effort(longest, sum(effort.ways for effort in efforts))


def _measure_repeated(part: Repeat, place: _Place) -> _Effort:
    """The effort of repeated parentheses."""
    once = _measure(part.part, _place_inside(part, place))
    is_clear = place.is_last or not edge(part.part, 1) & place.behind
    ends = 1 if is_clear else part.most - part.fewest + 1
    # Two ways, twenty times, are too many already; their exact number may have thousands of digits.
    ways = min(once.ways, MOST_TRIED) ** min(part.most, 20)
    return _Effort(once.longest * part.most, ends * ways)


def _measure_stretch(part: Stretch, place: _Place) -> _Effort:
    """The effort of one repeated character; Unusable where it has no most and needs one."""
    marks = part.mark.marks
    if part.most is not None:
        is_clear = place.is_last or not marks & place.behind
        return _Effort(part.most, 1 if is_clear else part.most - part.fewest + 1)
    if place.is_last or not marks & place.before:
        return _Effort(1, 1)
    sign = "+" if part.fewest else "*"
    raise Unusable(
        f"in which the character before {sign} may be one that {sign} repeats, which takes long "
        f"on some texts; give it a most, as in {{{part.fewest},50}}"
    )


def _write(part: Part, place: _Place) -> str:
    match part:
        case Mark(_, java):
            return java
        case Group(inner):
            return f"({_write(inner, place)})"
        case Choice(ways):
            return f"(?:{'|'.join(_write(way, place) for way in ways)})"
        case Row(parts):
            return "".join(_write(*each) for each in _list_places(parts, place))
        case Stretch(Mark(marks, java), fewest, most):
            keeps = "" if marks & place.behind else "+"
            return f"{java}{{{fewest},{most or ''}}}{keeps}"
        case Repeat(inner, fewest, most):
            return f"(?:{_write(inner, _place_inside(part, place))}){{{fewest},{most}}}"
