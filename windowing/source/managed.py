"""A source that a catalog manages is refused, before anything is read of it. No Spark."""

from collections.abc import Iterator, Set
from contextlib import contextmanager

from windowing.errors import SpecError
from windowing.spec.pipeline import Pipeline
from windowing.storage.catalog_managed import FEATURES, tells_of_catalog


def check_features(pipeline: Pipeline, features: Set[str]) -> None:
    """Raises SpecError where one of the source's table features says that a catalog manages it."""
    if features & FEATURES:
        raise _refuse(pipeline)


@contextmanager
def managed_refused(pipeline: Pipeline) -> Iterator[None]:
    """Raises SpecError where the source is opened inside, and a catalog manages it."""
    try:
        yield
    except Exception as error:
        if not tells_of_catalog(str(error)):
            raise
        raise _refuse(pipeline) from error


def _refuse(pipeline: Pipeline) -> SpecError:
    wrong = f"{pipeline.source.table} is managed by a catalog, so its log may lack commits"
    how = "name an external table that has its rows, such as one that a job of that catalog fills"
    return SpecError("source.table", f"{wrong}; {how}", pipeline.file)
