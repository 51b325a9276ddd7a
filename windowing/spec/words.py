"""How a sentence shows a given value, and which known name is nearest to a wrong one."""

from collections.abc import Iterable
from difflib import get_close_matches
from reprlib import Repr

_SHORT = Repr()
_SHORT.maxstring = _SHORT.maxother = 80
_SHORT.maxlevel = 3


def shown(value: object) -> str:
    """`value` as YAML would spell it, cut to a line: true, null, 15, 'fifteen', ['a', 'b'].

    >>> shown(None), shown(True), shown("x"), shown({})
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


def listed(names: Iterable[str]) -> str:
    """The names, comma-separated, in their order."""
    return ", ".join(names)


def near(name: str, known: Iterable[str]) -> str:
    """`, did you mean 'size'` for the known name that is most like `name`, else nothing.

    >>> near("sise", ["gap", "size"])
    ", did you mean 'size'"
    >>> near("colour", ["gap", "size"])
    ''
    """
    names = {other.lower(): other for other in known}
    found = get_close_matches(name.lower(), names, n=1, cutoff=0.6)
    return f", did you mean {names[found[0]]!r}" if found else ""
