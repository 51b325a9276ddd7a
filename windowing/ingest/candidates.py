"""Columns of a sample, and fields of structs in them, under the names by which a spec has them.

rows -> values by name: `shop`, `device.site`; `device_id` where the table has a column `id`, too
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from windowing.columns import FILE, RESCUED
from windowing.errors import SpecError
from windowing.spec.reserved import check_output_columns

Rows = Sequence[Mapping[str, Any]]


@dataclass(frozen=True)
class Candidates:
    """Values by the name that a spec uses, without nulls, in the order of the rows.

    `paths` are the fields that a spec has to give a name of its own, by that name.
    """

    values: Mapping[str, Sequence[Any]]
    paths: Mapping[str, str]


def find_candidates(rows: Rows) -> Candidates:
    """The columns of rows of a source table, and behind them the fields of those that are structs.

    A field is known by the last part of its path. It gets a name of its own where that is the name
    of another column or field, or one that no key can have. Fields whose names would need backticks
    are left out, and so are the columns that an ingest adds.
    """
    own = list(rows[0]) if rows else []
    columns = {
        name: [row[name] for row in rows if row[name] is not None]
        for name in own
        if name not in (FILE, RESCUED)
    }
    fields: dict[str, list[Any]] = {}
    for name, values in columns.items():
        for value in values:
            for path, part in _list_fields(name, value):
                fields.setdefault(path, []).append(part)
    used = Counter(last_part(name).lower() for name in (*own, *fields))
    paths: dict[str, str] = {}
    for path, values in fields.items():
        name = path
        if used[last_part(path).lower()] > 1 or not _can_be_output(last_part(path)):
            name = _find_free(path.replace(".", "_"), used)
            paths[name] = path
        columns[name] = values
    return Candidates(columns, paths)


def last_part(name: str) -> str:
    """The name that a column, or a part of one, has in outputs.

    >>> last_part("trip.rider.country")
    'country'
    """
    return name.rpartition(".")[2]


def _list_fields(name: str, value: Any) -> Iterator[tuple[str, Any]]:
    """The paths and values below a value that is a struct, without nulls."""
    if not isinstance(value, dict) or not name.replace(".", "").isidentifier():
        return
    for field, part in value.items():
        if isinstance(part, dict):
            yield from _list_fields(f"{name}.{field}", part)
        elif part is not None and f"_{field}".isidentifier():
            yield f"{name}.{field}", part


def _can_be_output(name: str) -> bool:
    try:
        check_output_columns((name,), ())
    except SpecError:
        return False
    return True


def _find_free(name: str, used: Counter[str]) -> str:
    """The name, or with a number where it is used; it is then."""
    free, number = name, 1
    while used[free.lower()]:
        number += 1
        free = f"{name}_{number}"
    used[free.lower()] += 1
    return free
