"""Whether the names of the source's columns leave those of tables and helpers alone. No Spark.

What a spec says alone is checked where it is read (windowing/spec/reserved.py); here it is what the
source's columns and their types add. Delta tells no names apart that differ by case alone.
"""

from collections.abc import Iterable, Sequence

from windowing.columns import kept_name
from windowing.spec.kinds import Aggregate
from windowing.spec.pipeline import Source
from windowing.spec.reserved import FEED_COLUMNS, HELPER, SOURCE_COLUMNS

Problem = tuple[str, str]
"""A field and what is wrong with it."""


def clash_of_columns(source: Source, names: Sequence[str]) -> Problem | None:
    """What is wrong with the names of the source's columns, computed ones among them."""
    if helper := next((name for name in names if name.startswith(HELPER)), None):
        wrong = f"its column {helper!r} begins with '__', which is kept for helpers"
        return "source.table", f"{wrong}; rename it"
    taken = (*SOURCE_COLUMNS, *(FEED_COLUMNS if source.changes == "feed" else FEED_COLUMNS[:1]))
    if kept := next((name for name in names if name.lower() in taken), None):
        by = "the change feed adds" if kept.lower() in FEED_COLUMNS else "state keeps"
        return "source.table", f"its column {kept!r} is called as one that {by}; rename it"
    return _clash_of_refused(source, names)


def _clash_of_refused(source: Source, names: Sequence[str]) -> Problem | None:
    """Two columns that refused rows would keep under one name."""
    computed = [name for name, _ in source.columns]
    seen: dict[str, str] = {}
    for name in names:
        other = seen.setdefault(kept_name(name).lower(), name)
        if other == name:
            continue
        both = f"would both be {kept_name(name)!r} among refused rows"
        own = next((each for each in (name, other) if each in computed), None)
        if own is None:
            return "source.table", f"its columns {other!r} and {name!r} {both}; rename one"
        rest = other if own == name else name
        return f"source.columns.{own}", f"{own!r} and {rest!r} {both}; give it another name"
    return None


def clash_of_parts(key: Sequence[str], made: Iterable[tuple[Aggregate, str]]) -> Problem | None:
    """An aggregate that keeps a part in state under the name of a key, or of another one's part.

    `made` are the names of the parts that each aggregate keeps.
    """
    keys = {name.lower(): f"source.key[{n}]" for n, name in enumerate(key)}
    owners: dict[str, Aggregate] = {}
    for aggregate, part in made:
        if (taken := keys.get(part.lower())) is not None:
            return _clash(aggregate, part, f"the name of a key ({taken})")
        owner = owners.setdefault(part.lower(), aggregate)
        if _fed(owner) != _fed(aggregate):
            return _clash(aggregate, part, f"the name of a part of aggregates.{owner.name}")
    return None


def _fed(aggregate: Aggregate) -> tuple[object, ...]:
    """What parts of one name have to have in common."""
    return aggregate.column, aggregate.by, aggregate.where


def _clash(aggregate: Aggregate, part: str, taken: str) -> Problem:
    column = aggregate.column
    wrong = f"state keeps {str(aggregate)!r} in a column {part!r}, which is {taken}"
    advice = "give that another name in source.columns"
    if column is not None:
        example = f"columns: {{{column}_value: {column}}}"
        advice = f"give {column!r} another name in source.columns, as in {example}, and use that"
    return f"aggregates.{aggregate.name}", f"{wrong}; {advice}"
