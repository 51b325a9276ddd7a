"""A new pipeline's folder, proposed from a sample, and windows of it before anything is written.

sample -> a temporary folder: rows taken, parts proposed, one run, windows -> the new folder
"""

import shutil
import sysconfig
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from pyspark.sql import SparkSession

from jobs.advise import advise
from jobs.ingest import ingest
from jobs.init_sample import FileSample, Sample, TableSample
from jobs.run import run
from jobs.sessions.exact_session import in_exact_session
from jobs.show import Wanted, show_windows
from windowing.advise.advice import Wanted as WantedShares
from windowing.advise.advice import is_forever
from windowing.advise.cost import Cost
from windowing.advise.reading import Asked
from windowing.columns import FILE
from windowing.errors import SpecError, TidemarkError, UsageError
from windowing.ingest import table as taken_files
from windowing.ingest.columns import PinnedColumn, read_columns
from windowing.ingest.disorder import Proposed, write_length
from windowing.ingest.inference import SAMPLE
from windowing.ingest.project import Origin, render_dags, render_project
from windowing.ingest.proposal import NONE_REFUSED, Proposal, Refused, propose
from windowing.ingest.rule import QUARANTINE
from windowing.ingest.values import describe_unfit
from windowing.location import Location
from windowing.report.rows import Rows
from windowing.report.rule import RunReport
from windowing.report.text import count
from windowing.source import table as source
from windowing.spec.load import load_pipeline
from windowing.spec.pipeline import CsvForm, Pipeline
from windowing.spec.reserved import check_output_columns
from windowing.storage import delta

DROP = "drop"
COMMAND = "tidemark"
_HISTORY = 5_000_000
"""How many rows a table may have for its history to be looked at."""
_YAML_WORDS = ("true", "false", "null")


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


@dataclass(frozen=True)
class _Draft:
    """What is proposed for a pipeline, from so many records `read` of the sample called `sample`.

    `origin` is where the pipeline has its events from, `columns` are those of its source table, and
    `texts` are files that belong to them.
    """

    name: str
    sample: str
    origin: Origin
    columns: Sequence[PinnedColumn]
    proposal: Proposal
    read: int
    quarantined: int = 0
    texts: Mapping[str, str] = field(default_factory=dict)

    def render(self, origin: Origin) -> dict[str, str]:
        """The texts of the folder of a pipeline that has its events from there."""
        seen = f"{count(self.read, 'record')} of {self.sample}"
        return {
            **render_project(self.name, origin, self.proposal, self.columns, seen),
            **self.texts,
        }


@in_exact_session
def propose_project(spark: SparkSession, name: str, sample: Sample) -> Project:
    """The folder of a pipeline called `name` for files like the sample, or for that table.

    It is played in a temporary folder, so that its spec is right and its windows are those of a
    run. UsageError where no column of the sample has times.
    """
    with TemporaryDirectory(prefix="tidemark-init-") as directory, _unnamed(directory):
        home = Path(directory)
        if isinstance(sample, FileSample):
            draft = _draft_from_file(spark, home, name, sample)
        else:
            draft = _draft_from_table(spark, home, name, sample)
        pipeline = _load(home, draft, Origin(_name_played(name), draft.origin.files))
        report = run(spark, pipeline)
        (window,) = pipeline.windows
        shown = show_windows(spark, pipeline, window, Wanted(limit=10), published=False, as_of=None)
        return Project(
            name,
            draft.render(draft.origin),
            draft.proposal,
            report,
            window.name,
            shown.rows,
            draft.read,
            draft.quarantined,
        )


@contextmanager
def _unnamed(home: str) -> Iterator[None]:
    """No error names the folder, which is gone when a person reads it."""
    try:
        yield
    except TidemarkError as error:
        text = str(error)
        if home not in text:
            raise
        for path in (f"{home}/{DROP}/", f"{home}/"):
            text = text.replace(path, "")
        raise UsageError(text.replace(home, "the folder")) from error


def _name_played(name: str) -> str:
    """The source table in the folder where the pipeline is played, as its spec names it."""
    return f"lake://bronze/{name}"


def _find_played(home: Path, name: str) -> Location:
    return Location(str(home / "lake" / "bronze" / name))


def _load(home: Path, draft: _Draft, origin: Origin) -> Pipeline:
    """The pipeline of the draft with its events from there, in the folder where it is played."""
    texts = draft.render(origin)
    spec = f"{draft.name}.yaml"
    for file in ("tidemark.toml", spec):
        (home / file).write_text(texts[file])
    try:
        return load_pipeline(home / spec, "dev")
    except SpecError as error:
        # Its own text begins with a file that is gone when a person reads it.
        wrong = f"{error.field}: {error.message}"
        raise UsageError(f"from {draft.sample} no spec can be proposed: {wrong}") from error


def _draft_from_file(spark: SparkSession, home: Path, name: str, sample: FileSample) -> _Draft:
    """From the records of a file as `ingest` takes them.

    UsageError where none of them is a row, or where no column has times.
    """
    landed = home / DROP / sample.name
    landed.parent.mkdir()
    landed.write_bytes(sample.content)
    pinned = home / "columns" / f"{name}.yaml"
    files = {"folder": str(home / DROP), "columns": str(pinned), **sample.form}
    table = _find_played(home, name)
    pipeline = load_pipeline(_describe_sample(home, name, table, {"files": files}))
    try:
        taken = ingest(spark, pipeline)
    except UsageError as error:
        raise UsageError(
            f"no record of {sample.name} shows which columns there are; check that it is what its "
            "name says"
        ) from error
    if not taken.appended:
        none = f"none of the {taken.read:,} records" if taken.read > 1 else "no record"
        raise UsageError(
            f"{none} of {sample.name} can be read as a row; check that it is what its name says"
        )
    columns = read_columns(str(pinned))
    csv = CsvForm() if pipeline.source.files is None else pipeline.source.files.csv
    refused = Refused(_count_refused(spark, pipeline, columns) if taken.quarantined else {}, csv)
    return _Draft(
        name,
        sample.name,
        Origin(_name_played(name), {"folder": DROP, **sample.form}),
        columns,
        _propose_parts(sample.name, _read_rows(spark, table), "", refused),
        taken.read,
        taken.quarantined,
        {f"columns/{name}.yaml": pinned.read_text()},
    )


def _count_refused(
    spark: SparkSession, pipeline: Pipeline, columns: Sequence[PinnedColumn]
) -> dict[str, int]:
    """Of the records in quarantine, how many are there for their value of each column."""
    kept = delta.read(spark, taken_files.home_of(pipeline.source.table) / QUARANTINE)
    counts = Counter(kept.select("reason").toArrow().column(0).to_pylist())
    return {column.name: counts[describe_unfit(column.source, column.type)] for column in columns}


def _describe_sample(
    home: Path, name: str, table: Location, more: Mapping[str, object]
) -> Mapping[str, object]:
    """A spec by which rows are read before parts are proposed; its windows are never made."""
    return {
        "name": name,
        "lake": str(home / "lake"),
        "source": {
            "table": table.text,
            "event_time": "arrival",
            "key": ["source_file"],
            **more,
        },
        "aggregates": {"events": "count()"},
        "windows": {"all": {"kind": "global"}},
    }


def _draft_from_table(spark: SparkSession, home: Path, name: str, sample: TableSample) -> _Draft:
    """From some rows of a table, and its history.

    Columns whose names a spec would have to put in backticks are left out. UsageError where the
    table has no rows, or none that are events, and SpecError where no pipeline reads it.
    """
    pipeline = load_pipeline(_describe_sample(home, name, sample.table, {}))
    names = [c for c in source.checked_schema(spark, pipeline).names if _can_be_proposed(c)]
    if not names:
        raise UsageError(f"no column of {sample.table} has a name that a spec has without quotes")
    copied = _find_played(home, name)
    some = source.read(spark, pipeline).select(*names).limit(SAMPLE)
    # Fields of structs may have names that Delta has to map.
    delta.append_to_source(some, copied, properties=delta.properties(some.schema))
    rows = _read_rows(spark, copied)
    if not rows:
        raise UsageError(f"{sample.table} has no rows from which a pipeline could be proposed")
    passed_over = " (those whose names a spec has to quote are passed over)"
    proposal = _propose_parts(sample.name, rows, passed_over, NONE_REFUSED)
    if proposal.key.value == f"[{FILE}]":
        raise UsageError(
            f"no column of {sample.name} is text or a whole number, so windows have no key; add "
            "one, or begin without --from and write the spec by hand"
        )
    columns = [PinnedColumn(f.name, f.dataType.simpleString(), f.name) for f in some.schema]
    draft = _Draft(name, sample.name, Origin(sample.table.text), columns, proposal, len(rows))
    return _ask_history(spark, _load(home, draft, draft.origin), draft)


def _can_be_proposed(column: str) -> bool:
    """Whether a spec may name the column, without quotes or backticks, wherever a column stands."""
    if not column.isidentifier() or column.lower() in _YAML_WORDS:
        return False
    try:
        check_output_columns((column,), ())
    except SpecError:
        return False
    return True


def _read_rows(spark: SparkSession, table: Location) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = delta.read(spark, table).limit(SAMPLE).toArrow().to_pylist()
    return rows


def _propose_parts(
    sample: str, rows: Sequence[Mapping[str, Any]], passed_over: str, refused: Refused
) -> Proposal:
    proposal = propose(rows, refused)
    if proposal is None:
        raise UsageError(
            f"no column of {sample} has times, which events need{passed_over}; add one, or "
            "begin without --from and write the spec by hand"
        )
    return proposal


def _ask_history(spark: SparkSession, pipeline: Pipeline, draft: _Draft) -> _Draft:
    """The draft with the watermark that the commits of the table suggest.

    The order of rows in a table says nothing about when they came.
    """
    cost, unknown = None, "its history is too large to be read here"
    if source.read(spark, pipeline).count() <= _HISTORY:
        advice = advise(pipeline, Asked(rows=_HISTORY), WantedShares(), lambda: spark)
        cost = advice.proposed
        unknown = advice.unknown or "no event came after the first ones"
    if cost is None:
        delay = Proposed("0 seconds", f"{unknown}; `tidemark advise` proposes one")
        lateness = Proposed("forever", "as long as it is not known how late events come")
    else:
        delay, lateness = _describe_watermark(cost)
    proposal = replace(draft.proposal, delay=delay, allowed_lateness=lateness)
    return replace(draft, proposal=proposal)


def _describe_watermark(cost: Cost) -> tuple[Proposed, Proposed]:
    """Delay and lateness of settings, each with what they would have done to a history."""
    on_time = cost.events - cost.missing - cost.correcting
    counted = cost.events - cost.missing
    settings = cost.settings
    lateness = "forever" if is_forever(settings) else write_length(settings.lateness_us)
    of_all = f"{on_time:,} of {count(cost.events, 'event')}"
    in_time = f"{of_all} would have come before their windows closed"
    in_all = f"{counted:,} of them would have been counted in all of their windows"
    return (
        Proposed(write_length(settings.delay_us), in_time),
        Proposed(lateness, f"{in_all}; `tidemark advise` says more"),
    )


def write_project(project: Project, folder: Path, sample: Sample) -> list[str]:
    """Writes the folder, in which a file that was the sample has landed; its other files' paths.

    UsageError where that can't be done.
    """
    check_free(folder)
    dags = render_dags(project.name, str(folder.absolute()), find_command())
    texts = {**project.texts, **dags}
    try:
        for path, text in texts.items():
            file = folder / path
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(text)
        if isinstance(sample, FileSample):
            _land(sample, folder / DROP)
    except OSError as error:
        raise UsageError(f"{folder} can't be written to ({error.strerror})") from error
    return sorted(texts)


def find_command() -> str:
    """The path of this environment's `tidemark`, or of one on PATH; its name where none is."""
    found = shutil.which(COMMAND, path=sysconfig.get_path("scripts")) or shutil.which(COMMAND)
    return COMMAND if found is None else str(Path(found).absolute())


def _land(sample: FileSample, drop: Path) -> None:
    drop.mkdir()
    if sample.file is None:
        (drop / sample.name).write_bytes(sample.content)
    else:
        shutil.copyfile(sample.file, drop / sample.file.name)


def check_free(folder: Path) -> None:
    """UsageError where there is something in the folder."""
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise UsageError(f"{folder} is not empty; name a folder that does not exist yet")
