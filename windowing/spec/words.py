"""How a sentence shows a given value, what is a number, and which known name is nearest to one."""

from collections.abc import Iterable, Mapping
from decimal import Decimal
from difflib import get_close_matches
from reprlib import Repr

_SHORT = Repr()
_SHORT.maxstring = 80
_SHORT.maxother = 80
_SHORT.maxlevel = 3


def quote_value(value: object) -> str:
    """`value` as YAML would spell it, cut to a line: true, null, 15, 'fifteen', ['a', 'b'].

    >>> quote_value(None), quote_value(True), quote_value("x"), quote_value({})
    ('null', 'true', "'x'", '{}')
    """
    if value is None:
        return "null"
    if isinstance(value, bool):
        return str(value).lower()
    try:
        return _SHORT.repr(value)
    except ValueError:  # Python writes no number of more than 4,300 digits out
        return "a number of thousands of digits"


def is_number(value: object) -> bool:
    """Whether a value is a number, which true and false are not, although Python says so.

    >>> is_number(1.5), is_number(True)
    (True, False)
    """
    return isinstance(value, (int, float, Decimal)) and not isinstance(value, bool)


def count_things(n: int, one: str, many: str | None = None) -> str:
    """`n` with its noun, `many` where its plural has more than an s.

    >>> count_things(1, "row"), count_things(2000, "row"), count_things(0, "entry", "entries")
    ('1 row', '2,000 rows', '0 entries')
    """
    return f"{n:,} {one if n == 1 else many or f'{one}s'}"


def join_names(names: Iterable[str]) -> str:
    """The names, comma-separated, in their order."""
    return ", ".join(names)


def suggest_name(name: str, known: Iterable[str], also: Mapping[str, str] | None = None) -> str:
    """`, did you mean 'size'` for the known name that is most like `name`, else nothing.

    `also` says which known names others are called by elsewhere; that comes first.

    >>> suggest_name("sise", ["gap", "size"])
    ", did you mean 'size'"
    >>> suggest_name("colour", ["gap", "size"])
    ''
    >>> suggest_name("hop", ["tumbling", "sliding"], {"hop": "sliding"})
    ", did you mean 'sliding'"
    """
    meant = None
    if also is not None:
        meant = also.get(name.lower())
    if meant is None:
        meant = _find_similar(name, known)
    if not meant:
        return ""
    return f", did you mean {meant!r}"


def _find_similar(name: str, known: Iterable[str]) -> str | None:
    """The known name that is most like `name`, whatever the case of either."""
    by_lower_case = {other.lower(): other for other in known}
    found = get_close_matches(name.lower(), by_lower_case, n=1, cutoff=0.6)
    if not found:
        return None
    return by_lower_case[found[0]]


def in_quotes(text: str) -> str:
    r"""`text` as YAML takes it in every place.

    >>> in_quotes("sum(a, b)"), in_quotes('a = "x"')
    ('"sum(a, b)"', '\'a = "x"\'')
    >>> in_quotes("two\nlines")
    '"two\\U0000000alines"'
    """
    if not text.isprintable():
        return f'"{"".join(map(_escape, text))}"'
    if '"' in text or "\\" in text:
        return "'" + text.replace("'", "''") + "'"
    return f'"{text}"'


def _escape(character: str) -> str:
    """A character as double quotes of YAML have it."""
    if character in '"\\' or not character.isprintable():
        return f"\\U{ord(character):08x}"
    return character
