"""Errors of a pipeline's control tables, turned into one error that says what to do. No Spark."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from windowing.doctor.rule import advice
from windowing.errors import StateRefused
from windowing.ingest.rule import HOME
from windowing.spec.pipeline import Pipeline
from windowing.storage.catalog_managed import tells_of_catalog
from windowing.storage.control import TableError
from windowing.storage.files import drop_location


@dataclass(frozen=True)
class Refusal:
    """What is wrong with a table, and what to do before the next run."""

    found: str
    remedy: str


CONSTRAINT = Refusal("has a constraint that new rows violate", "drop the constraint")
APPENDS = Refusal("takes appends only", "unset its property delta.appendOnly")
COLUMNS = Refusal("has other columns, or other types, than its rows", "restore its columns")
MANAGED = Refusal("is managed by a catalog, so its log may lack commits", "drop that feature")
_FEATURE = Refusal("has a table feature that is not supported", "drop the feature")
_DAMAGED = Refusal("is damaged or has lost files", "restore it")
_REFUSALS = {
    "append-only": APPENDS,
    "failed validation check": CONSTRAINT,
    "schema": COLUMNS,
    "Cast error": COLUMNS,
    "is not supported": _FEATURE,
}
"""By words of delta-rs, which has no conditions."""


@contextmanager
def control_errors_explained(pipeline: Pipeline) -> Iterator[None]:
    """Raises StateRefused, TABLE_CHANGED, for a control table that can't be read or written."""
    try:
        yield
    except TableError as error:
        # The table's path may contain any words.
        reason = drop_location(error.reason, error.path)
        refusals = [refusal for words, refusal in _REFUSALS.items() if words in reason]
        refusal = refusals[0] if refusals else _DAMAGED
        if tells_of_catalog(reason):
            refusal = MANAGED
        raise refuse_table(pipeline, str(error.path), refusal) from error


def refuse_table(pipeline: Pipeline, table: str, refusal: Refusal) -> StateRefused:
    """The error of a run that can't use a table of its own."""
    # A reset leaves the source and the record of its files alone.
    instead = "" if pipeline.name == HOME else f", or {advice(pipeline)}"
    return StateRefused(
        "TABLE_CHANGED", f"{table} {refusal.found}; {refusal.remedy}, then run again{instead}"
    )
