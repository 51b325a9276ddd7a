"""Transcripts as files: found, read and checked against their pipelines, before Spark starts."""

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from windowing.admit.outcomes import REFUSED
from windowing.columns import META, kept_name
from windowing.errors import SpecError, UsageError
from windowing.merge.rule import identity, output_table
from windowing.spec.load import load_pipeline
from windowing.spec.pipeline import Pipeline, Source
from windowing.spec.project.specs import SUFFIXES
from windowing.spec.yaml.file import document
from windowing.transcripts.document import Transcript, is_transcript, load_transcript
from windowing.transcripts.expectations import check_expected
from windowing.transcripts.values import column_types, type_rows

FINALITY = ("is_closed", "is_final")


@dataclass(frozen=True)
class Table:
    """A table that may be expected: its columns, and those that identify a row."""

    columns: tuple[str, ...]
    identity: tuple[str, ...]


@dataclass(frozen=True)
class Play:
    """A transcript that can be played.

    `columns` are the types of its source, `rows` the typed rows of each step, `tables` the tables
    that it may expect.
    """

    transcript: Transcript
    pipeline: Pipeline
    columns: Mapping[str, str]
    rows: Sequence[Sequence[Mapping[str, Any]]]
    tables: Mapping[str, Table]


def load_plays(paths: Sequence[str]) -> list[Play]:
    """The transcripts that `paths` name, each once; a directory stands for all files below it.

    SpecError for the first that can't be played, UsageError for a directory without transcripts.
    """
    # Paths may overlap. A dict, unlike a set, keeps the order in which files were found.
    files: dict[str, None] = {}
    for path in paths:
        files.update(dict.fromkeys(_transcript_files(path)))
    return [load_play(file) for file in files]


def load_play(file: str) -> Play:
    """The transcript in `file`, ready to be played."""
    base = os.path.dirname(os.path.abspath(file))
    transcript = load_transcript(file, base, Path(file).stem)
    pipeline = load_pipeline(transcript.spec)
    try:
        columns = column_types(transcript, pipeline)
        rows = type_rows(transcript, columns)
        tables = tables_of_transcript(pipeline, columns)
        check_expected(transcript, {name: table.columns for name, table in tables.items()})
    except SpecError as error:
        raise SpecError(error.field, error.message, file) from None
    return Play(transcript, pipeline, columns, rows, tables)


def tables_of_transcript(pipeline: Pipeline, columns: Mapping[str, str]) -> dict[str, Table]:
    """Every output and every table of refused rows, for a source with these `columns`."""
    source = pipeline.source
    found: dict[str, Table] = {}
    for window in pipeline.windows:
        shown = (*output_table(pipeline, window).columns, *FINALITY)
        found[window.name] = Table(shown, identity(window, source.key))
    kept = [kept_name(name) for name in (*columns, *source.computed)]
    identifying = _identifying_columns(source)
    for name in REFUSED:
        # Only the table of late rows records which windows an event missed.
        meta = [column for column in META if column != "missed" or name == "_late"]
        found[name] = Table((*kept, *meta), identifying)
    return found


def _identifying_columns(source: Source) -> tuple[str, ...]:
    """The columns of a refused table that identify a row: the event id, or key and event time."""
    if source.event_id:
        return (kept_name(source.event_id),)
    names = [*source.key, source.event_time.column]
    return tuple(kept_name(name) for name in names if name)


def _transcript_files(path: str) -> Iterator[str]:
    if not os.path.isdir(path):
        yield path
        return
    found = []
    files = (file for file in Path(path).rglob("*") if file.suffix in SUFFIXES)
    for file in sorted(files):
        if not _is_hidden(file, path) and _means_to_be_transcript(file):
            found.append(str(file))
    if not found:
        raise UsageError(f"{path} holds no transcript; one is a YAML file with spec and steps")
    yield from found


def _is_hidden(file: Path, directory: str) -> bool:
    return any(part.startswith(".") for part in file.relative_to(directory).parts)


def _means_to_be_transcript(file: Path) -> bool:
    """Whether a file of a directory is a transcript, even if it is broken or can't be read.

    Such a file is reported as broken later, because leaving it out would hide a test.
    """
    try:
        return file.is_file() and is_transcript(document(str(file)))
    except OSError:
        return True
    except SpecError:
        if not os.access(file, os.R_OK):
            return True
        text = file.read_text(encoding="utf-8", errors="replace")
        return "\nsteps:" in "\n" + text
