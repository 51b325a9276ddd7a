"""Errors of Delta about a pipeline's own tables, turned into one error that says what to do.

These tables are ordinary Delta tables, so anyone may give them a constraint, a property or another
column. A run that such a change stops stays open, and resumes once the change is undone.
"""

import re
from collections.abc import Iterator
from contextlib import contextmanager

from pyspark.errors import PySparkException

from jobs.foreign_errors.commit_errors import explain_commit_error
from jobs.foreign_errors.control_errors import (
    APPENDS,
    COLUMNS,
    CONSTRAINT,
    MANAGED,
    Refusal,
    control_errors_explained,
    refuse_table,
)
from windowing.errors import TidemarkError
from windowing.ingest.rule import HOME
from windowing.spec.pipeline import Pipeline
from windowing.spec.reserved import PUBLISHED
from windowing.storage.catalog_managed import tells_of_catalog
from windowing.storage.spark_internals import SPARK_ERRORS

_SHARED = Refusal("was written to by another program at the same time", "stop that program")
_REFUSALS = {
    "DELTA_VIOLATE_CONSTRAINT_WITH_VALUES": CONSTRAINT,
    "DELTA_NOT_NULL_CONSTRAINT_VIOLATED": CONSTRAINT,
    "DELTA_MISSING_NOT_NULL_COLUMN_VALUE": CONSTRAINT,
    "DELTA_CANNOT_MODIFY_APPEND_ONLY": APPENDS,
    "DELTA_FAILED_TO_MERGE_FIELDS": COLUMNS,
    "DELTA_METADATA_MISMATCH": COLUMNS,
    "DELTA_MERGE_UNRESOLVED_EXPRESSION": COLUMNS,
    "DELTA_UPDATE_SCHEMA_MISMATCH_EXPRESSION": COLUMNS,
    "DELTA_CONCURRENT_APPEND": _SHARED,
    "DELTA_CONCURRENT_DELETE_DELETE": _SHARED,
    "DELTA_CONCURRENT_DELETE_READ": _SHARED,
    "DELTA_CONCURRENT_TRANSACTION": _SHARED,
    "DELTA_CONCURRENT_WRITE": _SHARED,
    "DELTA_PROTOCOL_CHANGED": _SHARED,
}
"""By Delta's condition. None of them can come from reading the source."""


@contextmanager
def table_errors_explained(pipeline: Pipeline) -> Iterator[None]:
    """Raises StateRefused, TABLE_CHANGED, for what Delta refuses to write inside the block.

    What a log store of ours refuses is explained as well.
    """
    try:
        with control_errors_explained(pipeline):
            yield
    except SPARK_ERRORS as error:
        explained = explain_commit_error(str(error))
        # The error of a table that a catalog manages has no class of PySpark's.
        is_known = isinstance(error, PySparkException) or tells_of_catalog(str(error))
        if explained is None and is_known:
            explained = explain_table_error(pipeline, str(error))
        if explained is None:
            raise
        raise explained from error


def explain_table_error(pipeline: Pipeline, text: str) -> TidemarkError | None:
    """The error to raise for a message of Delta's; None where that is not about a table of ours."""
    refusals = [refusal for condition, refusal in _REFUSALS.items() if condition in text]
    if tells_of_catalog(text):
        refusals = [MANAGED]
    if not refusals:
        return None
    refusal = refusals[0]
    # The message also contains values of rows, so only the table's name is taken from it.
    named = re.search(re.escape(pipeline.root.hadoop) + rf"/((?:{PUBLISHED}/)?\w+)", text)
    place = pipeline.lake if pipeline.name == HOME else pipeline.root
    table = str(pipeline.table(named[1])) if named else f"a table in {place}"
    return refuse_table(pipeline, table, refusal)
