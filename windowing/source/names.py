"""Whether the names of the source's columns clash with those of tables and helpers. No Spark.

What the spec alone can show is checked where it is read (windowing/spec/reserved.py). Checked here
is what the source's columns and their types add. To Delta, names that differ by case are equal.
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
    for name in names:
        if name.startswith(HELPER):
            wrong = f"its column {name!r} begins with '__', which is reserved for helpers"
            return "source.table", f"{wrong}; rename it"
    # The feed's first column is reserved without the feed, too: rows that have it are taken as read
    # from the feed.
    feed_columns = FEED_COLUMNS if source.changes == "feed" else FEED_COLUMNS[:1]
    taken = (*SOURCE_COLUMNS, *feed_columns)
    for name in names:
        if name.lower() in taken:
            owner = "the change feed adds" if name.lower() in FEED_COLUMNS else "state keeps"
            wrong = f"its column {name!r} has the name of one that {owner}"
            return "source.table", f"{wrong}; rename it"
    return _clash_of_refused(source, names)


def _clash_of_refused(source: Source, names: Sequence[str]) -> Problem | None:
    """What is wrong where two columns would have one name among refused rows."""
    seen: dict[str, str] = {}
    for name in names:
        other = seen.setdefault(kept_name(name).lower(), name)
        if other == name:
            continue
        both = f"would both be {kept_name(name)!r} among refused rows"
        # The name of a computed column is easier to change, because it is in the spec.
        if name in source.computed:
            wrong = f"{name!r} and {other!r} {both}"
            return source.field_of(name), f"{wrong}; give it another name"
        if other in source.computed:
            wrong = f"{other!r} and {name!r} {both}"
            return source.field_of(other), f"{wrong}; give it another name"
        return "source.table", f"its columns {other!r} and {name!r} {both}; rename one"
    return None


def clash_of_parts(key: Sequence[str], made: Iterable[tuple[Aggregate, str]]) -> Problem | None:
    """What is wrong where a part in state has the name of a key, or of another aggregate's part.

    `made` are the names of the parts that each aggregate keeps.
    """
    keys = {name.lower(): f"source.key[{n}]" for n, name in enumerate(key)}
    owners: dict[str, Aggregate] = {}
    for aggregate, part in made:
        key_field = keys.get(part.lower())
        if key_field is not None:
            return _describe_clash(aggregate, part, f"the name of a key ({key_field})")
        owner = owners.setdefault(part.lower(), aggregate)
        if _inputs_of(owner) != _inputs_of(aggregate):
            owned = f"the name of a part of aggregates.{owner.name}"
            return _describe_clash(aggregate, part, owned)
    return None


def _inputs_of(aggregate: Aggregate) -> tuple[object, ...]:
    """What aggregates must have in common to share parts of one name."""
    return aggregate.column, aggregate.by, aggregate.where


def _describe_clash(aggregate: Aggregate, part: str, taken: str) -> Problem:
    column = aggregate.column
    wrong = f"state keeps {str(aggregate)!r} in a column {part!r}, which is {taken}"
    advice = "give that another name in source.columns"
    if column is not None:
        example = f"columns: {{{column}_value: {column}}}"
        advice = f"give {column!r} another name in source.columns, as in {example}, and use that"
    return f"aggregates.{aggregate.name}", f"{wrong}; {advice}"
