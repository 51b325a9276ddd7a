"""Whether a value of JSON is what its row in a page says of it."""

import re
from collections.abc import Mapping
from datetime import datetime

TYPES: Mapping[str, tuple[type, ...]] = {
    "boolean": (bool,),
    "count": (int,),
    "number": (int, float),
    "text": (str,),
    "time": (str,),
    "list": (list,),
    "range": (list,),
    "object": (dict,),
}
"""By the first word of a row, which Python types its value may have; `value` may have any."""


def is_as_described(value: object, described: str) -> bool:
    """Whether a value has the type that begins its description, or is null where that is said."""
    if value is None:
        return "null" in described or described.startswith("value")
    word = re.split(r"\W", described, maxsplit=1)[0]
    if word == "value":
        return True
    if word == "time":
        return isinstance(value, str) and datetime.fromisoformat(value).tzinfo is not None
    is_boolean = isinstance(value, bool)
    return isinstance(value, TYPES[word]) and (is_boolean == (word == "boolean"))
