"""Errors of a stream's batches as they were raised."""

from collections.abc import Callable
from contextvars import copy_context

from pyspark.sql import DataFrame

Failures = list[BaseException]


def keep_errors(
    body: Callable[[DataFrame, int], None], failures: Failures
) -> Callable[[DataFrame, int], None]:
    """`body`, which also appends its error to `failures`.

    Spark calls it from another thread and reports an error as text from the JVM, so without this
    the error's class would be lost. It runs in the context of this call, because crash points are
    armed there.
    """
    context = copy_context()

    def guarded(rows: DataFrame, number: int) -> None:
        try:
            context.run(body, rows, number)
        except BaseException as error:
            failures.append(error)
            raise

    return guarded
