"""How a spec differs from the one that made the state, and which differences a run refuses."""

from collections.abc import Iterable, Iterator
from json import dumps, loads
from typing import TYPE_CHECKING

from windowing.columns import quoted
from windowing.doctor.rule import advice, name_command
from windowing.errors import StateRefused
from windowing.ledger.rule import LedgerEntry, LedgerExcerpt
from windowing.merge.rule import list_lacking
from windowing.panes.rule import buffered_columns as buffered
from windowing.report.text import instant_us, left_open
from windowing.spec.expressions.parse import Path, inputs_of
from windowing.spec.fingerprint import AGGREGATE, Evolution, evolution, parts, parts_like
from windowing.spec.kinds import Window
from windowing.spec.pipeline import Pipeline
from windowing.spec.words import join_names

if TYPE_CHECKING:
    from pyspark.sql import types as T

_HASHED = "hashed"
"""Under this name the ledger has the nested columns that digests of rows depend on."""


def made_by(pipeline: Pipeline, found: "T.StructType") -> str:
    """What state is made by, as JSON for the ledger: column types and the parts of the spec.

    `found` is the source's schema. Only the types of columns that state depends on are recorded,
    and which nested columns the digests of rows depend on.
    """
    from windowing.admit.digest import nested_columns

    nested = nested_columns(found)
    hashed = {_HASHED: nested} if nested else {}
    return dumps({"types": _find_types(pipeline, found), "parts": parts(pipeline), **hashed})


def _find_types(pipeline: Pipeline, found: "T.StructType") -> dict[str, str]:
    """The types of what state depends on, by the names of columns and of parts of columns.

    A part has its own type, because fields may join a struct. What is no single value can only be
    compared with null by an expression, so its type does not count.
    """
    from windowing.expressions.nested import find_part_type
    from windowing.expressions.values import OTHER, type_family

    types = {}
    for path in _list_inputs(pipeline):
        kind = find_part_type(path, found)
        if kind is not None and type_family(kind) != OTHER:
            types[_name_input(path)] = kind.simpleString()
    for name in dict.fromkeys(_list_columns(pipeline)):
        if name in found.names:
            types[name] = found[name].dataType.simpleString()
    return types


def _list_inputs(pipeline: Pipeline) -> Iterator[Path]:
    """What `source.columns` and `source.where` read of the source, with repetitions."""
    source = pipeline.source
    where = () if source.where is None else (source.where,)
    for expression in (*source.computed.values(), *where):
        for path in inputs_of(expression):
            if path[0] not in source.computed:
                yield path


def _name_input(path: Path) -> str:
    """The column by its name; a part of one as `trip`.`fare`, which is the name of no column."""
    name, *steps = map(str, path)
    return name if not steps else ".".join(map(quoted, (name, *steps)))


def _list_columns(pipeline: Pipeline) -> Iterator[str | None]:
    """The columns of the source that state depends on, with repetitions; None for those not set."""
    source = pipeline.source
    yield from source.key
    yield source.event_time.column
    yield source.event_id
    yield from source.order_by
    for aggregate in pipeline.aggregates:
        yield aggregate.column
        yield aggregate.by
        if aggregate.where:
            yield from aggregate.where.columns
    yield from buffered(pipeline)


def _check_digests(pipeline: Pipeline, found: "T.StructType", made: LedgerEntry) -> None:
    """StateRefused where digests of rows would not be those that are stored of refused rows."""
    from windowing.admit.digest import hashed_columns

    before = loads(made.note or "{}").get(_HASHED, ())
    hashed = hashed_columns(found)
    for name in before:
        if name in found.names and name not in hashed:
            raise StateRefused(
                "SOURCE_CHANGED",
                f"{pipeline.source.table}: {name!r} has got a map or a VARIANT inside since state "
                "was made, so rows that were refused can't be told from others any more; take it "
                f"out, or {advice(pipeline)}",
            )


def spec_difference(pipeline: Pipeline, past: LedgerExcerpt) -> Evolution:
    """How the spec differs from the one that made the state; empty before there is any state."""
    made = past.made_by
    before = loads(made.note or "{}")["parts"] if made else parts(pipeline)
    return evolution(before, parts_like(before, pipeline))


def check_source_types(pipeline: Pipeline, found: "T.StructType", past: LedgerExcerpt) -> None:
    """StateRefused where a column of the source has another type than when state was made.

    `found` is the source's schema. What the spec does not use any more may have any type: taking it
    out has state rebuilt. Ledgers of before do not have the types of what expressions read.
    """
    made = past.made_by
    if not made:
        return
    before = loads(made.note or "{}")["types"]
    # A column that is missing is refused by the check of the source itself.
    for name, type_now in _find_types(pipeline, found).items():
        type_before = before.get(name, type_now)
        if type_now != type_before:
            change = f"was of type {type_before} when state was made and is {type_now} now"
            raise StateRefused(
                "SOURCE_CHANGED",
                f"{pipeline.source.table}: {name!r} {change}; restore the type, "
                f"or {advice(pipeline)}",
            )
    _check_digests(pipeline, found, made)


def check_spec_change(pipeline: Pipeline, past: LedgerExcerpt) -> None:
    """StateRefused where a live pipeline can't follow a change of its spec.

    Windows and aggregates may be added and removed while no step is left open. Whatever keeps its
    name has to stay what it is.
    """
    found = check_kept_names(pipeline, past)
    if not found:
        return
    if past.period is not None:
        reopen = name_command(pipeline, "reopen", "--reason", "REASON")
        closed = f"outputs are closed until {instant_us(past.period.until_us)}"
        raise spec_refused(
            pipeline, f"the spec has changed, and {closed}; restore the spec, or {reopen} first"
        )
    left = left_open(past)
    if left:
        unfinished = "; ".join(left)
        restore = "restore the spec, run, then change it"
        raise spec_refused(pipeline, f"the spec has changed and {unfinished}; {restore}")
    if pipeline.source.event_time.column is None:
        names = join_names(found.added or found.removed)
        raise spec_refused(
            pipeline,
            f"{names} changed, but events whose time is their arrival can't be reprocessed",
        )


def check_erased_columns(pipeline: Pipeline, found: "T.StructType", past: LedgerExcerpt) -> None:
    """StateRefused where values of a column are erased that is gone, or is another one by now.

    Its rows can't be told from others, so those that were erased would count again. `found` is the
    source's schema.
    """
    computed = {name: expression.sql for name, expression in pipeline.source.computed.items()}
    for erasure in sorted(past.erasures.found, key=lambda each: each.column or ""):
        name = erasure.column
        if name is None or (name in found.names and computed.get(name) == erasure.computed):
            continue
        code, place = "SPEC_CHANGED", str(pipeline.file or pipeline.name)
        if erasure.computed is None and name not in computed:
            code, place = "SOURCE_CHANGED", str(pipeline.source.table)
        is_now = "is not there any more"
        if name in found.names:
            is_now = f"is {_describe_column(computed.get(name))} now"
        raise StateRefused(
            code,
            f"{place}: values of {name!r} are erased, which was "
            f"{_describe_column(erasure.computed)} and {is_now}, so their rows would count again; "
            "restore it, and change it once they are lifted: "
            f"{name_command(pipeline, 'erase', '--where', f'{name}=VALUE', '--lift')}",
        )


def _describe_column(computed: str | None) -> str:
    """A column by the expression that computes it, or as one that the source has."""
    return "a column of the source" if computed is None else repr(computed)


def check_kept_names(pipeline: Pipeline, past: LedgerExcerpt) -> Evolution:
    """How the spec differs, where everything in it has a name of its own.

    StateRefused where something has a name that something else had before: what was made under that
    name is not what the spec describes.
    """
    found = spec_difference(pipeline, past)
    changed = _list_changed(pipeline, past, found)
    if changed:
        named = join_names(changed) + _name_hidden_part(pipeline, found)
        differ = f"{named} differ from what made the state in {pipeline.root}"
        raise spec_refused(pipeline, differ + _advise_on_names(found))
    return found


def list_changed_names(pipeline: Pipeline, past: LedgerExcerpt) -> tuple[str, ...]:
    """What in the spec has a name that something else had before, such as `windows.daily`."""
    return _list_changed(pipeline, past, spec_difference(pipeline, past))


def _list_changed(pipeline: Pipeline, past: LedgerExcerpt, found: Evolution) -> tuple[str, ...]:
    return (*found.changed, *_find_reused_names(pipeline, past, found))


def check_columns(
    pipeline: Pipeline, past: LedgerExcerpt, window: Window, stored: Iterable[str]
) -> None:
    """StateRefused where rows with the `stored` columns can't be read as rows of `window`.

    It was another window, or had another key, when the output was made.
    """
    lacking = list_lacking(pipeline, window, stored)
    changed = list_changed_names(pipeline, past) if lacking else ()
    if changed:
        columns = ", ".join(repr(name) for name in lacking)
        raise spec_refused(
            pipeline,
            f"{join_names(changed)} differ from what made the rows of {window.name}, which have no "
            f"column {columns}; restore them to read these rows",
        )


def spec_refused(pipeline: Pipeline, problem: str) -> StateRefused:
    """The error of a spec that a live pipeline can't follow, and what else can be done."""
    where = pipeline.file or pipeline.name
    return StateRefused("SPEC_CHANGED", f"{where}: {problem}; or {advice(pipeline)}")


def _find_reused_names(pipeline: Pipeline, past: LedgerExcerpt, found: Evolution) -> Iterator[str]:
    """Windows added under a name that another window had before; the table of that one remains."""
    added = [name for name in found.added if AGGREGATE not in name]
    if not added:
        return
    earlier = []
    for note in past.makers:
        before = loads(note)["parts"]
        earlier.append(evolution(before, parts_like(before, pipeline)))
    for name in added:
        if any(name in evolved.changed for evolved in earlier):
            yield name


def _name_hidden_part(pipeline: Pipeline, found: Evolution) -> str:
    """What else may have changed the watermark; nothing where that did not change."""
    is_kept_with_state = pipeline.watermark.dedupe_horizon_us == pipeline.retention.state_us
    if "watermark" not in found.changed or not is_kept_with_state:
        return ""
    return " (or retention.state, which is a part of it without watermark.dedupe_horizon)"


def _advise_on_names(found: Evolution) -> str:
    """What to do about parts of the spec that are not what they were."""
    if {"source", "watermark"} & set(found.changed):
        return "; restore them, or give the pipeline a new name"
    return "; restore them, or give what changed a new name, under which it fills itself"
