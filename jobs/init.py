"""A new pipeline's folder, proposed from a file, and windows of it before anything is written.

sample -> a temporary folder: files taken, parts proposed, one run, windows -> the new folder
"""

import gzip
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import SparkSession

from jobs.ingest import ingest
from jobs.run import run
from jobs.sessions.exact_session import in_exact_session
from jobs.show import Wanted, show_windows
from windowing.errors import UsageError
from windowing.ingest.columns import read_columns
from windowing.ingest.project import render_project
from windowing.ingest.proposal import Proposal, propose
from windowing.ingest.rule import GZIP, list_endings
from windowing.ingest.sniff import guess_form
from windowing.report.rows import Rows
from windowing.report.rule import RunReport
from windowing.spec.load import load_pipeline
from windowing.spec.words import join_names
from windowing.storage import delta

SAMPLE = 5_000
"""How many records are looked at."""
_BYTES = 4_000_000
"""How much of a file is looked at, at most."""
DROP = "drop"


@dataclass(frozen=True)
class Sample:
    """A file, what of it is looked at, and how it is read: fields of `source.files`."""

    name: str
    content: bytes
    form: Mapping[str, object]


@dataclass(frozen=True)
class Project:
    """A pipeline's folder that is not written yet: texts by path, and what they would show.

    `windows` are some rows of its first window, computed from the sample.
    """

    name: str
    texts: Mapping[str, str]
    proposal: Proposal
    report: RunReport
    window: str
    windows: Rows
    read: int
    quarantined: int


def sample_file(file: Path) -> Sample:
    """Some thousand records from the beginning of a file; UsageError for one that is not read."""
    try:
        content = _read_beginning(file)
    except OSError as error:
        raise UsageError(f"--from {file}: can't be read ({error.strerror})") from error
    form = guess_form(file.name, content)
    if form is None:
        endings = [ending for kind in ("csv", "json", "parquet") for ending in list_endings(kind)]
        raise UsageError(f"--from {file}: its name ends in none of {join_names(endings)}")
    return Sample(file.name.removesuffix(GZIP), content, form)


def _read_beginning(file: Path) -> bytes:
    """Whole lines, or the first rows of a Parquet file as such a file."""
    if file.suffix == ".parquet":
        return _read_first_rows(file)
    with gzip.open(file) if file.suffix == GZIP else file.open("rb") as opened:
        content = opened.read(_BYTES)
        is_whole = len(content) < _BYTES
    lines = content.splitlines(keepends=True)
    whole = lines if is_whole else lines[:-1]
    return b"".join(whole[: SAMPLE + 1])


def _read_first_rows(file: Path) -> bytes:
    content = pa.BufferOutputStream()
    try:
        opened = pq.ParquetFile(file)
        first = next(opened.iter_batches(SAMPLE), None)
        batches = [] if first is None else [first]
        pq.write_table(pa.Table.from_batches(batches, opened.schema_arrow), content)
    except pa.ArrowException as error:
        raise UsageError(f"--from {file}: is not a Parquet file") from error
    return bytes(content.getvalue().to_pybytes())


@in_exact_session
def propose_project(spark: SparkSession, name: str, sample: Sample) -> Project:
    """The folder of a pipeline called `name` for files like the sample.

    It is played in a temporary folder, so that its spec is right and its windows are those of a
    run. UsageError where no column of the sample has times.
    """
    with TemporaryDirectory(prefix="tidemark-init-") as directory:
        home = Path(directory)
        landed = home / DROP / sample.name
        landed.parent.mkdir()
        landed.write_bytes(sample.content)
        pinned = home / "columns" / f"{name}.yaml"
        taken = ingest(spark, load_pipeline(_describe_sample(home, name, sample, pinned)))
        if not taken.appended:
            raise UsageError(
                f"none of the {taken.read:,} records of {sample.name} can be read as a row; check "
                "that it is what its name says"
            )
        proposal = _propose_parts(spark, home, name, sample)
        columns = read_columns(str(pinned))
        files = {"folder": DROP, **sample.form}
        seen = f"{taken.read:,} records of {sample.name}"
        texts = render_project(name, files, proposal, columns, seen)
        for file in ("tidemark.toml", f"{name}.yaml"):
            (home / file).write_text(texts[file])
        pipeline = load_pipeline(home / f"{name}.yaml", "dev")
        report = run(spark, pipeline)
        (window,) = pipeline.windows
        shown = show_windows(spark, pipeline, window, Wanted(limit=10), published=False, as_of=None)
        texts |= {f"columns/{name}.yaml": pinned.read_text()}
        return Project(
            name, texts, proposal, report, window.name, shown.rows, taken.read, taken.quarantined
        )


def _describe_sample(home: Path, name: str, sample: Sample, pinned: Path) -> Mapping[str, object]:
    """A spec by which the sample is taken; its windows are never made."""
    files = {"folder": str(home / DROP), "columns": str(pinned), **sample.form}
    return {
        "name": name,
        "lake": str(home / "lake"),
        "source": {
            "table": str(home / "lake" / "bronze" / name),
            "event_time": "arrival",
            "key": ["source_file"],
            "files": files,
        },
        "aggregates": {"events": "count()"},
        "windows": {"all": {"kind": "global"}},
    }


def _propose_parts(spark: SparkSession, home: Path, name: str, sample: Sample) -> Proposal:
    source = load_pipeline(_describe_sample(home, name, sample, home / "columns")).source
    rows = delta.read(spark, source.table).limit(SAMPLE).toArrow().to_pylist()
    proposal = propose(rows)
    if proposal is None:
        raise UsageError(
            f"no column of {sample.name} has times, which events need; add one, or begin without "
            "--from and write the spec by hand"
        )
    return proposal


def write_project(project: Project, folder: Path, landed: Path | bytes, as_name: str) -> None:
    """Writes the folder, in which the file has landed; UsageError where that can't be done."""
    check_free(folder)
    try:
        for path, text in project.texts.items():
            file = folder / path
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(text)
        drop = folder / DROP
        drop.mkdir(exist_ok=True)
        if isinstance(landed, bytes):
            (drop / as_name).write_bytes(landed)
        else:
            shutil.copyfile(landed, drop / as_name)
    except OSError as error:
        raise UsageError(f"{folder} can't be written to ({error.strerror})") from error


def check_free(folder: Path) -> None:
    """UsageError where there is something in the folder."""
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise UsageError(f"{folder} is not empty; name a folder that does not exist yet")
