"""Regular expressions mean what Python's mean, and no search compares more than was promised."""

import re
from collections.abc import Iterator
from math import inf
from random import Random

import pytest

from windowing.errors import SpecError
from windowing.spec.expressions.parse import may_lose, parse_expression
from windowing.spec.expressions.regex import (
    MOST_TRIED,
    find_problem_of_regex,
    measure_search,
    read_regex,
    write_java,
)
from windowing.spec.expressions.regex_parts import (
    Choice,
    Group,
    Mark,
    Part,
    Regex,
    Repeat,
    Row,
    Stretch,
)
from windowing.spec.expressions.regex_reader import Unusable

LETTERS = "ab1,\n"


def draw_pattern(rng: Random, depth: int = 3) -> str:
    """A pattern of a few letters, of which some take too long."""
    parts = "".join(draw_part(rng, depth) for _ in range(rng.randint(1, 4)))
    return parts if depth < 3 else rng.choice(["", "", "^"]) + parts + rng.choice(["", "", "$"])


def draw_part(rng: Random, depth: int) -> str:
    part = rng.choice(["a", "b", "1", ",", ".", r"\d", r"\D", "[ab]", "[^a,]", r"[\w-]", "[0-9a]"])
    if depth and rng.random() < 0.3:
        inner = "|".join(draw_pattern(rng, depth - 1) for _ in range(rng.randint(1, 2)))
        part = f"(?:{inner})"
    limited = ["", "", "?", "{2}", "{0,2}", "{1,3}", "{1,9}"]
    return part + rng.choice(limited if part[0] == "(" else [*limited, "+", "*", "+", "{2,}"])


def draw_usable(rng: Random, many: int) -> Iterator[tuple[str, Regex]]:
    """Patterns that are not refused, some of them with a group."""
    found = 0
    while found < many:
        text = draw_pattern(rng)
        if rng.random() < 0.3:
            text = f"{text}({draw_part(rng, 1)})"
        if find_problem_of_regex(text) is None:
            found += 1
            yield text, read_regex(text)


class Search:
    """A search by plain steps back, which counts the characters that it may compare."""

    def __init__(self, regex: Regex, text: str, most: float = inf) -> None:
        self.regex, self.text, self.left = regex, text, most

    @property
    def is_over(self) -> bool:
        """Whether it has compared more than it was allowed; then it finds nothing."""
        return self.left < 0

    def find(self) -> tuple[int, int] | None:
        """Where the pattern fits first; None where it fits nowhere."""
        for start in range(1 if self.regex.from_begin else len(self.text) + 1):
            for end in self.ends(self.regex.part, start):
                if not self.regex.to_end or end == len(self.text):
                    return start, end
        return None

    def ends(self, part: Part, start: int) -> Iterator[int]:
        """Where a part that begins there can end, the first choice first."""
        match part:
            case Mark(marks):
                self.left -= 1
                if (
                    not self.is_over
                    and start < len(self.text)
                    and min(ord(self.text[start]), 128) in marks
                ):
                    yield start + 1
            case Group(inner):
                yield from self.ends(inner, start)
            case Choice(ways):
                for way in ways:
                    yield from self.ends(way, start)
            case Row(parts):
                yield from self.ends_of_row(parts, start)
            case Stretch():
                yield from self.ends_of_stretch(part, start)
            case Repeat(inner, fewest, most):
                if most:
                    rest = Repeat(inner, max(fewest - 1, 0), most - 1)
                    for end in self.ends(inner, start):
                        yield from self.ends(rest, end)
                if not fewest:
                    yield start

    def ends_of_row(self, parts: tuple[Part, ...], start: int) -> Iterator[int]:
        if not parts:
            yield start
            return
        for end in self.ends(parts[0], start):
            yield from self.ends_of_row(parts[1:], end)

    def ends_of_stretch(self, part: Stretch, start: int) -> Iterator[int]:
        end = start
        while part.most is None or end - start < part.most:
            if next(self.ends(part.mark, end), None) is None:
                break
            end += 1
        while end - start >= part.fewest:
            yield end
            end -= 1


def in_python(java: str) -> str:
    """The same as Java's pattern, as Python spells it."""
    return re.sub(
        r"\\x\{([0-9A-F]+)\}", lambda found: re.escape(chr(int(found[1], 16))), java
    ).replace(r"\z", r"\Z")


@pytest.mark.parametrize("seed", range(20))
def test_a_pattern_means_what_python_reads_in_it(seed: int) -> None:
    """Also where it is written anew, with repetitions that give nothing back."""
    rng = Random(f"meaning {seed}")
    for text, regex in draw_usable(rng, 60):
        given = re.compile(text.replace("$", r"\Z"), re.ASCII)
        anew = re.compile(in_python(write_java(regex)), re.ASCII)
        for _ in range(12):
            searched = "".join(rng.choices(LETTERS, k=rng.randint(0, 12)))
            expected = given.search(searched)
            where = expected and expected.span()
            assert Search(regex, searched).find() == where, (text, searched)
            found = anew.search(searched)
            assert (found and found.span()) == where, (text, write_java(regex), searched)
            assert (found and found.groups()) == (expected and expected.groups())


def fill(rng: Random, part: Part) -> str:
    """A text that a part fits, with long stretches."""
    match part:
        case Mark(marks):
            return chr(rng.choice(sorted(marks & set(map(ord, LETTERS)) or {33})))
        case Group(inner):
            return fill(rng, inner)
        case Choice(ways):
            return fill(rng, rng.choice(ways))
        case Row(parts):
            return "".join(fill(rng, each) for each in parts)
        case Stretch(mark, fewest, most):
            times = rng.randint(3, 9) if most is None else rng.randint(fewest, min(most, 6))
            return fill(rng, mark) * times
        case Repeat(inner, fewest, most):
            return "".join(fill(rng, inner) for _ in range(rng.randint(max(fewest, 1), most)))


def spoil(rng: Random, regex: Regex) -> Iterator[str]:
    """Texts that a pattern fits for long, and at the end perhaps not, and others."""
    for _ in range(4):
        text = fill(rng, regex.part)[:120]
        yield text[:-1] + "!"
        yield text[: rng.randrange(len(text) + 1)] * 2 + "!"
    letters = rng.choice(["a", "ab", "a1", "b,", "1,a"])
    for size in (40, 300):
        yield "".join(rng.choices(letters, k=size)) + rng.choice(["", "\n", "b", "1"])


@pytest.mark.parametrize("seed", range(20))
def test_no_search_compares_more_than_was_promised(seed: int) -> None:
    """Three times what is counted for each place of a text."""
    rng = Random(f"effort {seed}")
    for text, regex in draw_usable(rng, 60):
        most = 3 * measure_search(regex).tried
        for searched in spoil(rng, regex):
            search = Search(regex, searched, most * (len(searched) + 1))
            search.find()
            assert not search.is_over, (text, searched)


@pytest.mark.parametrize(
    "text",
    [
        "a+b",
        "a+$",
        "x.*y",
        "[^,]+,a",
        "^a*.*b",
        "^[0-9]+ .*,.*b",
        "a{1,200}a{1,200}b",
        "(?:a|ab){1,20}c",
        # Each stretch gives back what the next part could take, too.
        "(?:,a+a?){1,1000}c",
        "(?:[ab]{0,3},a+){1,20}c",
        "^(?:/[a-z]+[a-z0-9_-]{0,40}){1,20}[.]html$",
        ",a+[ab]{1,500}c+[cd]{1,500}e+[ef]{1,500}!",
        ",a+a?b+b?c+c?d+d?e+e?f+f?g+g?h+h?i+i?j+j?k+k?l+l?!",
        # Java takes long for so many rounds, and its stack would overflow.
        "(?:(?:a|b){1,15},){1,15}x",
        "(?:(?:a|b){1,50},){1,90}",
        "(?:(?:(?:(?:a|b){1}){1}){1}){1,400}",
    ],
)
def test_a_pattern_that_takes_long_on_some_text_is_refused(text: str) -> None:
    problem = find_problem_of_regex(text)
    assert problem is not None
    assert "limit" in problem


@pytest.mark.parametrize(
    ("text", "tried"),
    [
        ("a{1,200}b", 201),
        ("[?&]id=([0-9]+)", 5),
        ("^[^@]+@", 2),
        ("^.*,([^,]+)$", 3),
        ("^ERROR: (.*)$", 8),
        ("^[0-9]+ (.*)$", 3),
        ("^(?:GET|POST|PUT)$", 30),
        ("(?:jpg|png)$", 6),
        ("^[^@ ]+@[^@ .]+[.][a-z]{2,}$", 5),
        ("^.*[.](?:csv|json)$", 18),
        # The digits behind may be those of a round more.
        ("^(?:[0-9]+,){1,20}[0-9]+$", 41 * 20),
        ("(?:ab|cd){1,20}e", 81),
        ("([a-z0-9.]{1,63})@[a-z0-9.-]{1,63}[.]com", 8253),
    ],
)
def test_patterns_of_daily_use_are_short(text: str, tried: int) -> None:
    """Counted by hand, such as 63 + 1 + 63 + 4 characters, and 63 places where the dot can be."""
    assert measure_search(read_regex(text)).tried == tried < MOST_TRIED


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("", "fits every text, because it may match nothing"),
        ("a*", "fits every text"),
        ("a|", "fits every text"),
        ("a$b", "$ is not at the end"),
        ("a^b", "^ is not at the begin"),
        ("^a|b", "^ or $ is beside |"),
        ("*a", "* repeats nothing"),
        ("a**", "* follows a repetition"),
        ("a+?", "there are no lazy ones; repeat what the next character is not"),
        ("a{", "{ does not begin a repetition such as"),
        ("a{1,", "{ does not begin a repetition"),
        ("a{1, 2}", "{ does not begin a repetition"),
        ("a{٣}", "{ does not begin a repetition"),
        ("(?:a$)", "$ is not at the end"),
        ("(" * 17 + "a" + ")" * 17, "more than 16 parentheses lie in one another"),
        ("a{,3}", "{ does not begin a repetition"),
        ("a{2,1}", "{2,1} is no repetition of 1 to 1,000 times"),
        ("a{0}", "{0} is no repetition"),
        ("a{1001}", "{1001} is no repetition"),
        ("(?:ab)+", "repeats parentheses without an upper limit; write one, as in (...){1,20}"),
        ("(?:a?|b){2}", "repeats parentheses that may match nothing"),
        ("(a", "( is not closed"),
        ("a)", "')' needs a backslash"),
        ("a]", "']' needs a backslash"),
        ("a}", "'}' needs a backslash"),
        ("[", "[ is not closed"),
        ("[a", "[ is not closed"),
        ("[a-", "[ is not closed"),
        ("[]", "a set in brackets is empty; write \\] for a bracket in it"),
        ("[^]]", "a set in brackets is empty"),
        ("[\\w-:]", "- in brackets is between \\w and :; put it last"),
        ("[a-é]", "a range in brackets is not one of ASCII"),
        ("[z-a]", "a range in brackets is not one of ASCII, from low to high"),
        ("[ä-ö]", "a range in brackets is not one of ASCII"),
        (r"[a-\d]", "- in brackets is between a and \\d; put it last"),
        ("[[:alpha:]]", "[ in brackets needs a backslash"),
        ("(?i)a", "(? is not followed by :; there is nothing else of that kind, and small letters"),
        ("(?<name>a)", "(? is not followed by :"),
        ("(a)(b)", "has two groups"),
        ("(a)?", "whose group is repeated or may be left out"),
        ("(a)|b", "whose group may take no part"),
        ("a\\", "ends with a backslash"),
        (r"\1", "\\1 means nothing; allowed: \\d \\w \\s \\n \\r \\t"),
        (r"\bа", "\\b means nothing"),
    ],
)
def test_what_is_not_known_is_refused_by_a_sentence(text: str, problem: str) -> None:
    with pytest.raises(Unusable) as refused:
        read_regex(text)
    assert problem in str(refused.value)


def test_marks_mean_themselves() -> None:
    assert write_java(read_regex(r"[\]&&\[^-]")) == (r"[\x{5D}\x{26}\x{26}\x{5B}\x{5E}\x{2D}]")
    assert write_java(read_regex(r"\n\r[\t]")) == r"\x{A}\x{D}[\x{9}]"
    assert write_java(read_regex(r"\$\.é #")) == r"\x{24}\x{2E}\x{E9} \x{23}"


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("regexp_like(a, b)", "gives regexp_like the pattern that is no text; write one, as in"),
        ("regexp_like(a, '[0-9]+x')", "the pattern '[0-9]+x', in which [0-9]+ may begin"),
        ("regexp_extract(a)", "gives regexp_extract 1 arguments, but it takes 2"),
        (
            f"regexp_extract(a, '{'(' * 400}a{')' * 400}')",
            "more than 16 parentheses lie in one another",
        ),
    ],
)
def test_an_expression_says_what_is_wrong_with_its_pattern(text: str, problem: str) -> None:
    with pytest.raises(SpecError) as refused:
        parse_expression("source.where", text)
    assert problem in str(refused.value)


def test_what_does_not_fit_gives_no_value() -> None:
    assert may_lose(parse_expression("source.where", "regexp_extract(a, 'b') = 'b'"))
    assert not may_lose(parse_expression("source.where", "regexp_like(a, 'b')"))
    assert not may_lose(parse_expression("source.where", "regexp_replace(a, 'b', '') = 'c'"))
