"""Parts of regular expressions, and what each can begin with, end with and be empty."""

from dataclasses import dataclass

Marks = frozenset[int]
"""ASCII characters by their numbers; `OTHER` is any other character."""

OTHER = 128
ANY: Marks = frozenset(range(OTHER + 1))
NONE: Marks = frozenset()


@dataclass(frozen=True)
class Mark:
    """One character, of a set: as it is written, and as Java writes it."""

    marks: Marks
    text: str
    java: str


@dataclass(frozen=True)
class Row:
    """Parts that follow each other; none is the empty text."""

    parts: tuple["Part", ...]


@dataclass(frozen=True)
class Choice:
    """The first of several that fits, each from the left."""

    ways: tuple["Part", ...]


@dataclass(frozen=True)
class Stretch:
    """A character from `fewest` to `most` times, as often as it can; None is any number."""

    mark: Mark
    fewest: int
    most: int | None


@dataclass(frozen=True)
class Repeat:
    """Parentheses from `fewest` to `most` times, as often as they can."""

    part: "Part"
    fewest: int
    most: int


@dataclass(frozen=True)
class Group:
    """What is taken out of a text."""

    part: "Part"


Part = Mark | Stretch | Row | Choice | Repeat | Group


@dataclass(frozen=True)
class Regex:
    """A whole pattern; it may be bound to the begin and to the end of a text."""

    part: Part
    from_begin: bool
    to_end: bool


def count_groups(part: Part) -> int:
    """How many parts of a text it takes out."""
    match part:
        case Group(inner):
            return 1 + count_groups(inner)
        case Row(parts) | Choice(parts):
            return sum(map(count_groups, parts))
        case Repeat(inner):
            return count_groups(inner)
    return 0


def may_be_empty(part: Part) -> bool:
    """Whether it fits the empty text."""
    match part:
        case Group(inner):
            return may_be_empty(inner)
        case Row(parts):
            return all(map(may_be_empty, parts))
        case Choice(ways):
            return any(map(may_be_empty, ways))
        case Stretch(_, fewest) | Repeat(_, fewest):
            return fewest == 0
    return False


def edge(part: Part, step: int) -> Marks:
    """The characters that a part can begin with, by step 1, or end with, by step -1."""
    match part:
        case Mark(marks) | Stretch(Mark(marks)):
            return marks
        case Group(inner) | Repeat(inner):
            return edge(inner, step)
        case Choice(ways):
            return NONE.union(*(edge(way, step) for way in ways))
        case Row(parts):
            found = NONE
            for each in parts[::step]:
                found |= edge(each, step)
                if not may_be_empty(each):
                    break
            return found
