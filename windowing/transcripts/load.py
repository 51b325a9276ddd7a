"""Transcripts as files: found, read, and checked against the pipelines they test, all before Spark starts."""

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from windowing.admit.table import REFUSED
from windowing.columns import META, kept_name
from windowing.errors import SpecError, UsageError
from windowing.merge.rule import identity, output
from windowing.spec.load import load_pipeline
from windowing.spec.pipeline import Pipeline
from windowing.spec.yaml.file import document
from windowing.transcripts.document import Transcript, is_transcript, load_transcript
from windowing.transcripts.expectations import check_expected
from windowing.transcripts.values import typed, types

FINALITY = ("is_closed", "is_final")


@dataclass(frozen=True)
class Table:
    """A table that may be expected: its columns, and those that tell one row from another."""

    columns: tuple[str, ...]
    identity: tuple[str, ...]


@dataclass(frozen=True)
class Play:
    """A transcript that can be played: its pipeline, the types of its source, for each step its rows, and the tables there will be."""

    transcript: Transcript
    pipeline: Pipeline
    columns: Mapping[str, str]
    rows: Sequence[Sequence[Mapping[str, Any]]]
    tables: Mapping[str, Table]


def plays(paths: Sequence[str]) -> list[Play]:
    """The transcripts that `paths` name, each once; a directory stands for all below it. SpecError for the first that can't be played."""
    return [play(file) for file in dict.fromkeys(found for path in paths for found in _files(path))]


def play(file: str) -> Play:
    """The transcript in `file`, ready to be played."""
    transcript = load_transcript(file, os.path.dirname(os.path.abspath(file)), Path(file).stem)
    pipeline = load_pipeline(transcript.spec)
    try:
        columns = types(transcript, pipeline)
        rows, known = typed(transcript, columns), tables(pipeline, columns)
        check_expected(transcript, {name: table.columns for name, table in known.items()})
    except SpecError as error:
        raise SpecError(error.field, error.message, file) from None
    return Play(transcript, pipeline, columns, rows, known)


def tables(pipeline: Pipeline, columns: Mapping[str, str]) -> dict[str, Table]:
    """Every output and every table of refused rows, for a source with these `columns`."""
    source, found = pipeline.source, {}
    for window in pipeline.windows:
        found[window.name] = Table(
            (*output(pipeline, window).columns, *FINALITY), identity(window, source.key)
        )
    kept = [kept_name(name) for name in (*columns, *(name for name, _ in source.columns))]
    which = (source.event_id,) if source.event_id else (*source.key, source.event_time.column)
    for name in REFUSED:
        more = [column for column in META if column != "missed" or name == "_late"]
        found[name] = Table((*kept, *more), tuple(kept_name(column) for column in which if column))
    return found


def _files(path: str) -> Iterator[str]:
    if not os.path.isdir(path):
        yield path
        return
    below = sorted(
        f
        for f in Path(path).rglob("*.yaml")
        if not any(part.startswith(".") for part in f.relative_to(path).parts)
    )
    found = [str(file) for file in below if _means_to_be_one(file)]
    if not found:
        raise UsageError(f"{path} holds no transcript; one is a .yaml file with spec and steps")
    yield from found


def _means_to_be_one(file: Path) -> bool:
    """Whether a file of a directory is a transcript, possibly a broken one; what can't be read may be one."""
    try:
        return file.is_file() and is_transcript(document(str(file)))
    except OSError:
        return True
    except SpecError:
        return not os.access(file, os.R_OK) or "\nsteps:" in "\n" + file.read_text(
            encoding="utf-8", errors="replace"
        )
