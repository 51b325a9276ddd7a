"""How a spec differs from the one that made the state, and which of these differences a run refuses."""

from collections.abc import Iterator
from json import dumps, loads

from pyspark.sql import types as T

from windowing.doctor.rule import advice
from windowing.errors import StateRefused
from windowing.ledger.rule import EVOLVE_INTENT, OPEN, Story
from windowing.panes.events import inputs as buffered
from windowing.report.text import left_open
from windowing.spec.fingerprint import AGGREGATE, Evolution, evolution, parts, parts_like
from windowing.spec.pipeline import Pipeline
from windowing.spec.words import listed


def made_by(pipeline: Pipeline, found: T.StructType) -> str:
    """What state is made by, as the ledger keeps it: the types of the columns it depends on, and the parts of the spec."""
    source = pipeline.source
    wanted = [
        n
        for a in pipeline.aggregates
        for n in (a.column, a.by, *(a.where.columns if a.where else ()))
    ]
    names = dict.fromkeys(
        [
            *source.key,
            source.event_time.column,
            source.event_id,
            *source.order_by,
            *wanted,
            *buffered(pipeline),
        ]
    )
    return dumps(
        {
            "types": {
                name: found[name].dataType.simpleString() for name in names if name is not None
            },
            "parts": parts(pipeline),
        }
    )


def difference(pipeline: Pipeline, past: Story) -> Evolution:
    """How the spec differs from the one that made the state; not at all before there is any."""
    made = past.made_by
    before = loads(made.note or "{}")["parts"] if made else parts(pipeline)
    return evolution(before, parts_like(before, pipeline))


def same_types(pipeline: Pipeline, found: T.StructType, past: Story) -> None:
    """StateRefused where a column of the source, whose columns are `found`, is of another type than when state was made."""
    made = past.made_by
    before = loads(made.note or "{}")["types"] if made else {}
    now = {f.name: f.dataType.simpleString() for f in found.fields}
    changed = next((name for name in before if now.get(name, before[name]) != before[name]), None)
    if changed is not None:
        raise StateRefused(
            "SOURCE_CHANGED",
            f"{pipeline.source.table}: {changed!r} was of type {before[changed]} when state was made and is {now[changed]} now; "
            f"restore the type, or {advice(pipeline)}",
        )


def same_spec(pipeline: Pipeline, past: Story) -> None:
    """Windows and aggregates may come and go while nothing is left half-way; whatever has a name stays what it is."""
    found, where = difference(pipeline, past), pipeline.file or pipeline.name
    changed = (*found.changed, *_reused(pipeline, past, found))
    if changed:
        said = (
            f"{where}: {listed(changed)} differ from what made the state in {pipeline.root}"
            + _renamed(found)
        )
    elif found and (left := left_open(past)):
        said = f"{where}: the spec has changed and {'; '.join(left)}; restore the spec, run, then change it"
    elif found and pipeline.source.event_time.column is None:
        said = f"{where}: {listed(found.added or found.removed)} changed, and events that happen when they arrive can't be counted again"
    else:
        return
    raise StateRefused("SPEC_CHANGED", f"{said}; {advice(pipeline)}")


def _reused(pipeline: Pipeline, past: Story, found: Evolution) -> Iterator[str]:
    """Windows that come under a name that another window had before: its table is still there."""
    came = [name for name in found.added if AGGREGATE not in name]
    if not came:
        return
    notes = {e.note for e in past.entries if e.step in (OPEN, EVOLVE_INTENT) and e.note}
    specs = [
        evolution(before, parts_like(before, pipeline))
        for before in (loads(note)["parts"] for note in notes)
    ]
    yield from (name for name in came if any(name in spec.changed for spec in specs))


def _renamed(found: Evolution) -> str:
    """What to do about parts that are not what they were."""
    if {"source", "watermark"} & set(found.changed):
        return "; restore them, or give the pipeline a new name"
    return "; restore them, or give what changed a new name, under which it fills itself"
