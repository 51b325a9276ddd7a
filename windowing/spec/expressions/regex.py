r"""Regular expressions that take a bounded time on any text.

One is refused where a search could try too many ways. It is written anew for Java, so that nothing
in it means there what it does not mean here:

    [?&]id=([0-9]+)  ->  [\x{3F}\x{26}]id\x{3D}([0-9]{1,}+)

A repetition that has an upper limit multiplies what can be tried from one place of a text, up to
`MOST_TRIED`, unless the next character says where it ends. One without, as in `[0-9]+`, begins
where the text allows no other way: the character before it can't be one that it repeats, unless it
begins in one place of a text only, or nothing behind it can fail. So it reads each stretch of a
text from its begin alone. Where such a stretch may also end in many places, each part behind it
counts in all its ways: they could meet in one place from many.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

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
    may_be_empty,
)
from windowing.spec.expressions.regex_reader import Unusable, read_parts

MOST_TRIED = 10_000
"""How many characters a search may compare from one place of a text."""
ROUND = 100
"""How many comparisons a round of repeated parentheses counts as.

Java takes some 150 ns for one, and 0.7 ns for a comparison. Its stack has room for all rounds that
are allowed.
"""


@dataclass(frozen=True)
class _Place:
    """Where a part is: the characters that can be before and behind it.

    There are none before it where it begins in one place of a text only. `is_last` where nothing
    behind it can fail. `is_loose` where a stretch before it may end in many places.
    """

    before: Marks
    behind: Marks
    is_last: bool
    is_loose: bool = False


@dataclass(frozen=True)
class Effort:
    """How many characters a part reads at most, on how many ways, in how many rounds of all ways.

    Those that a repetition without an upper limit reads are not counted.

    `has_one_end` where it ends in one place, if it begins in one. `is_loose` says of the place
    behind it what `_Place` does.
    """

    longest: int
    ways: int
    rounds: int
    has_one_end: bool
    is_loose: bool

    @property
    def tried(self) -> int:
        """How many characters are compared from one begin, up to a small factor."""
        return self.longest * self.ways


@lru_cache(maxsize=256)
def read_regex(text: str) -> Regex:
    """The pattern that a text spells; Unusable for one that takes too long, and for others."""
    found = read_parts(text)
    if may_be_empty(found.part) and not (found.from_begin and found.to_end):
        raise Unusable("which fits every text, because it may match nothing")
    if count_groups(found.part) > 1:
        raise Unusable("which has two groups; write (?: for parentheses that take out nothing")
    effort = measure_search(found)
    if effort.tried + ROUND * effort.rounds > MOST_TRIED:
        raise Unusable(
            f"whose repetitions combine to more than {MOST_TRIED:,} comparisons from one place of "
            "a text; give them lower limits, as in {1,20}"
        )
    return found


def find_problem_of_regex(text: str) -> str | None:
    """What is wrong with a pattern, as the rest of a sentence; nothing where it can be used."""
    try:
        read_regex(text)
    except Unusable as unusable:
        return str(unusable)
    return None


def measure_search(regex: Regex) -> Effort:
    """The effort of a search from one place of a text; Unusable where one has no bound.

    >>> measure_search(read_parts("[0-9]{1,3}a?")).tried
    4
    """
    return _measure(regex.part, _place_whole(regex))


@lru_cache(maxsize=256)
def write_java(regex: Regex) -> str:
    r"""The same pattern for Java's regular expressions.

    >>> write_java(read_regex("[?&]id=([0-9]+)"))
    '[\\x{3F}\\x{26}]id\\x{3D}([0-9]{1,}+)'
    """
    begin, end = "\\A" * regex.from_begin, "\\z" * regex.to_end
    return begin + _write(regex.part, _place_whole(regex)) + end


def _place_whole(regex: Regex) -> _Place:
    return _Place(NONE if regex.from_begin else ANY, NONE, is_last=not regex.to_end)


def _look_behind(parts: Sequence[Part], place: _Place) -> Iterator[tuple[Part, _Place]]:
    """Each part of a row at `place`, with what is behind that part."""
    found = []
    for part in reversed(parts):
        found.append((part, place))
        if may_be_empty(part):
            place = replace(place, behind=place.behind | edge(part, 1))
        else:
            place = replace(place, behind=edge(part, 1), is_last=False)
    return reversed(found)


def _measure(part: Part, place: _Place) -> Effort:
    match part:
        case Mark():
            return Effort(1, 1, 0, has_one_end=True, is_loose=place.is_loose)
        case Stretch():
            return _measure_stretch(part, place)
        case Group(inner):
            return _measure(inner, place)
        case Row(parts):
            return _measure_row(parts, place)
        case Choice(ways):
            return _measure_choice(ways, place)
        case Repeat():
            return _measure_repeated(part, place)


def _measure_row(parts: Sequence[Part], place: _Place) -> Effort:
    efforts: list[Effort] = []
    ways, rounds = 1, 0
    before, is_loose = place.before, place.is_loose
    for part, its_place in _look_behind(parts, place):
        effort = _measure(part, replace(its_place, before=before, is_loose=is_loose))
        efforts.append(effort)
        rounds += ways * effort.rounds
        ways *= effort.ways
        is_loose = effort.is_loose
        if before or not effort.has_one_end:
            before = edge(part, -1) | (before if may_be_empty(part) else NONE)
    return Effort(
        sum(effort.longest for effort in efforts),
        ways,
        rounds,
        has_one_end=all(effort.has_one_end for effort in efforts),
        is_loose=is_loose,
    )


def _measure_choice(ways: Sequence[Part], place: _Place) -> Effort:
    """The effort of several ways, of which one alone can fit where no two begin alike."""
    efforts = [_measure(way, place) for way in ways]
    begins = [edge(way, 1) for way in ways]
    differ = sum(map(len, begins)) == len(NONE.union(*begins)) and not any(map(may_be_empty, ways))
    each = [effort.ways for effort in efforts]
    return Effort(
        sum(effort.longest for effort in efforts),
        max(each) if differ and not place.is_loose else sum(each),
        sum(effort.rounds for effort in efforts),
        has_one_end=differ and all(effort.has_one_end for effort in efforts),
        is_loose=any(effort.is_loose for effort in efforts),
    )


def _measure_repeated(part: Repeat, place: _Place) -> Effort:
    """The effort of repeated parentheses."""
    inside = _place_inside(part, place)
    once = _measure(part.part, inside)
    if once.is_loose and not place.is_loose:
        once = _measure(part.part, replace(inside, is_loose=True))
    loosened = replace(place, is_loose=once.is_loose)
    ends = _count_ends(part.fewest, part.most, edge(part.part, 1), loosened)
    # Two ways, twenty times, are too many already; their exact number may have thousands of digits.
    ways = min(once.ways, MOST_TRIED) ** min(part.most, 20)
    return Effort(
        once.longest * part.most,
        ends * ways,
        (once.rounds + 1) * part.most * ways,
        has_one_end=once.has_one_end and ends == 1,
        is_loose=once.is_loose,
    )


def _place_inside(part: Repeat, place: _Place) -> _Place:
    """The place of what is repeated: before and behind it, it may be itself."""
    return replace(
        place,
        before=place.before | edge(part.part, -1),
        behind=place.behind | edge(part.part, 1),
        is_last=place.is_last and part.fewest < 2,
    )


def _measure_stretch(part: Stretch, place: _Place) -> Effort:
    """The effort of one repeated character; Unusable where it needs an upper limit."""
    marks = part.mark.marks
    gives_back = bool(marks & place.behind) and not place.is_last
    if part.most is not None:
        ends = _count_ends(part.fewest, part.most, marks, place)
        has_one_end = part.fewest == part.most or not gives_back
        return Effort(part.most, ends, 0, has_one_end, place.is_loose)
    if marks & place.before and not place.is_last:
        raise _takes_long(part, is_behind=place.before != ANY)
    is_loose = gives_back or (place.is_loose and part.fewest == 0)
    return Effort(1, 1, 0, has_one_end=not gives_back, is_loose=is_loose)


def _count_ends(fewest: int, most: int, begins: Marks, place: _Place) -> int:
    """In how many places a repetition of what begins so may end, if it begins in one."""
    is_clear = place.is_last or not (place.is_loose or begins & place.behind)
    return 1 if is_clear else most - fewest + 1


def _takes_long(part: Stretch, *, is_behind: bool) -> Unusable:
    piece = part.mark.text
    where, way_out = (
        ("behind a character that it repeats itself", "leave that character out of it")
        if is_behind
        else ("in the middle of such characters", "write another character before it, or ^")
    )
    return Unusable(
        f"in which {piece}{'+' if part.fewest else '*'} may begin {where}, which takes long on "
        f"some texts; {way_out}, or give it an upper limit, as in {piece}{{{part.fewest},50}}"
    )


def _write(part: Part, place: _Place) -> str:
    match part:
        case Mark():
            return part.java
        case Stretch(mark, fewest, most):
            # What no character behind it could take gives nothing back.
            gives_back = bool(mark.marks & place.behind)
            return f"{mark.java}{{{fewest},{most or ''}}}{'' if gives_back else '+'}"
        case Group(inner):
            return f"({_write(inner, place)})"
        case Row(parts):
            return "".join(_write(*each) for each in _look_behind(parts, place))
        case Choice(ways):
            return f"(?:{'|'.join(_write(way, place) for way in ways)})"
        case Repeat(inner, fewest, most):
            written = _write(inner, _place_inside(part, place))
            whole = written if isinstance(inner, Choice) else f"(?:{written})"
            return f"{whole}{{{fewest},{most}}}"
