"""Who makes the source table: another pipeline, whose published rows it has, or `ingest`."""

from windowing.doctor.rule import name_command
from windowing.errors import SpecError
from windowing.ledger.rule import LedgerExcerpt
from windowing.ledger.table import LEDGER
from windowing.location import Location
from windowing.merge.rule import published_name
from windowing.spec.pipeline import Pipeline
from windowing.spec.reserved import PUBLISHED
from windowing.spec.words import quote_value
from windowing.storage.kept_open import has_commit


def check_upstream(pipeline: Pipeline, past: LedgerExcerpt) -> None:
    """Raises SpecError where a pipeline would begin with rows that no expectation has passed.

    One that has read them already goes on, because its state was made of that table.
    """
    table = pipeline.source.table
    if past.any_done or table.is_in_catalog or table.name.startswith("_"):
        return
    if _is_of_pipeline(table.parent):
        published = table.parent / published_name(table.name)
        raise SpecError(
            "source.table",
            f"{table} is an output of another pipeline, with rows that no expectation has passed "
            f"yet; name {published}, which has what was published",
            pipeline.file,
        )


def describe_unpublished(pipeline: Pipeline) -> str | None:
    """Why the source, a published table, is not there yet; None where it is none of a pipeline."""
    table = pipeline.source.table
    home = table.parent
    if table.is_in_catalog or home.name != PUBLISHED or not _is_of_pipeline(home.parent):
        return None
    name, by = home.parent.name, pipeline.placed_by
    missing = f"nothing of {table.name} is published yet"
    # A pipeline has a name on the command line only in a project.
    if by is None:
        return f"{missing}; publish the pipeline {quote_value(name)} by its spec"
    return f"{missing}; `{' '.join(['tidemark publish', name, *by.options])}` does that"


def describe_missing(pipeline: Pipeline) -> str:
    """What to do where there is no source table."""
    where = f"{pipeline.file}: " if pipeline.file else ""
    table = pipeline.source.table
    if table.is_in_catalog:
        how = f"a path needs a slash, as in ./{table}, and a catalog Spark's settings that name it"
        what = f"called {table.text!r} in Spark's catalog; {how}"
    else:
        why = describe_unpublished(pipeline) or _advise_on_missing(pipeline)
        what = f"at {table.text!r}; {why}"
    return f"{where}source.table: there is no Delta table {what}"


def _advise_on_missing(pipeline: Pipeline) -> str:
    """What makes the source table."""
    files = pipeline.source.files
    if files is None:
        return "create it or correct the path"
    ingest = name_command(pipeline, "ingest")
    return f"run {ingest} first, which makes it from the files in {files.folder.text!r}"


def _is_of_pipeline(directory: Location) -> bool:
    return has_commit(directory / LEDGER)
