"""The state tables of a pipeline with their sizes, read without Spark."""

from windowing.columns import BATCH, RUN
from windowing.panes.rule import state_names
from windowing.report.rows import StateTable
from windowing.spec.pipeline import Pipeline
from windowing.storage import table_figures


def measure_state_tables(pipeline: Pipeline) -> tuple[StateTable, ...]:
    """The state tables that exist already, with their sizes and newest run.

    control.TableError where one of them can't be read without Spark.
    """
    found = []
    for table, windows in state_names(pipeline).items():
        path = pipeline.table(table)
        size = table_figures.measure_table(path)
        if size is None:
            continue
        # There is none in a table without rows.
        run, batch = table_figures.find_greatest(path, (RUN, BATCH)) or (None, None)
        measured = StateTable(table, windows, size.rows, size.files, size.bytes, run, batch)
        found.append(measured)
    return tuple(found)
