"""A new pipeline's folder, proposed from a sample, and windows of it before anything is written.

sample -> a temporary folder: rows taken, parts proposed, one run, windows -> the new folder
"""

import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from tempfile import TemporaryDirectory

from pyspark.sql import SparkSession

from jobs.advise import advise
from jobs.ingest import ingest
from jobs.init_sample import SAMPLE, FileSample, Sample, TableSample
from jobs.run import run
from jobs.sessions.exact_session import in_exact_session
from jobs.show import Wanted, show_windows
from windowing.advise.advice import Wanted as WantedShares
from windowing.advise.advice import is_forever
from windowing.advise.reading import Asked
from windowing.columns import FILE
from windowing.errors import SpecError, UsageError
from windowing.ingest.columns import PinnedColumn, read_columns
from windowing.ingest.project import Origin, render_project
from windowing.ingest.proposal import Proposal, Proposed, propose, write_length
from windowing.location import Location
from windowing.report.rows import Rows
from windowing.report.rule import RunReport
from windowing.source import table as source
from windowing.spec.load import load_pipeline
from windowing.spec.pipeline import Pipeline
from windowing.spec.reserved import check_output_columns
from windowing.storage import delta

DROP = "drop"
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
class _Taken:
    """The sample as a source table in the folder where the pipeline is played.

    `origin` is where the pipeline has its events from, `columns` are those of the table, and
    `texts` are files that belong to them.
    """

    origin: Origin
    columns: Sequence[PinnedColumn]
    read: int
    quarantined: int = 0
    texts: Mapping[str, str] = field(default_factory=dict)


@in_exact_session
def propose_project(spark: SparkSession, name: str, sample: Sample) -> Project:
    """The folder of a pipeline called `name` for files like the sample, or for that table.

    It is played in a temporary folder, so that its spec is right and its windows are those of a
    run. UsageError where no column of the sample has times.
    """
    with TemporaryDirectory(prefix="tidemark-init-") as directory:
        home = Path(directory)
        if isinstance(sample, FileSample):
            taken = _take_file(spark, home, name, sample)
        else:
            taken = _take_table(spark, home, name, sample)
        proposal = _propose_parts(spark, home, name, sample)
        seen = f"{taken.read:,} records of {sample.name}"
        if isinstance(sample, TableSample):
            texts = render_project(name, taken.origin, proposal, taken.columns, seen)
            proposal = _ask_history(spark, _load(home, sample, name, texts), proposal)
        texts = render_project(name, taken.origin, proposal, taken.columns, seen)
        played = Origin(_name_played(name), taken.origin.files)
        played_texts = render_project(name, played, proposal, taken.columns, seen)
        pipeline = _load(home, sample, name, played_texts)
        report = run(spark, pipeline)
        (window,) = pipeline.windows
        shown = show_windows(spark, pipeline, window, Wanted(limit=10), published=False, as_of=None)
        return Project(
            name,
            {**texts, **taken.texts},
            proposal,
            report,
            window.name,
            shown.rows,
            taken.read,
            taken.quarantined,
        )


def _name_played(name: str) -> str:
    """The source table in the folder where the pipeline is played, as its spec names it."""
    return f"lake://bronze/{name}"


def _find_played(home: Path, name: str) -> Location:
    return Location(str(home / "lake" / "bronze" / name))


def _load(home: Path, sample: Sample, name: str, texts: Mapping[str, str]) -> Pipeline:
    for file in ("tidemark.toml", f"{name}.yaml"):
        (home / file).write_text(texts[file])
    try:
        return load_pipeline(home / f"{name}.yaml", "dev")
    except SpecError as error:
        # Its own text begins with a file that is gone when a person reads it.
        wrong = f"{error.field}: {error.message}"
        raise UsageError(f"from {sample.name} no spec can be proposed: {wrong}") from error


def _take_file(spark: SparkSession, home: Path, name: str, sample: FileSample) -> _Taken:
    """The records of a file as `ingest` takes them; UsageError where none of them is a row."""
    landed = home / DROP / sample.name
    landed.parent.mkdir()
    landed.write_bytes(sample.content)
    pinned = home / "columns" / f"{name}.yaml"
    files = {"folder": str(home / DROP), "columns": str(pinned), **sample.form}
    table = _find_played(home, name)
    taken = ingest(spark, load_pipeline(_describe_sample(home, name, table, {"files": files})))
    if not taken.appended:
        raise UsageError(
            f"none of the {taken.read:,} records of {sample.name} can be read as a row; check "
            "that it is what its name says"
        )
    return _Taken(
        Origin(_name_played(name), {"folder": DROP, **sample.form}),
        read_columns(str(pinned)),
        taken.read,
        taken.quarantined,
        {f"columns/{name}.yaml": pinned.read_text()},
    )


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


def _take_table(spark: SparkSession, home: Path, name: str, sample: TableSample) -> _Taken:
    """Some rows of a table; UsageError where it has none, SpecError where no pipeline reads it.

    Columns whose names a spec would have to put in backticks are left out.
    """
    pipeline = load_pipeline(_describe_sample(home, name, sample.table, {}))
    names = [c for c in source.checked_schema(spark, pipeline).names if _can_be_proposed(c)]
    if not names:
        raise UsageError(f"no column of {sample.table} has a name that a spec has without quotes")
    copied = _find_played(home, name)
    rows = source.read(spark, pipeline).select(*names).limit(SAMPLE)
    # Fields of structs may have names that Delta has to map.
    delta.append_to_source(rows, copied, properties=delta.properties(rows.schema))
    kept = delta.read(spark, copied)
    read = kept.count()
    if not read:
        raise UsageError(f"{sample.table} has no rows from which a pipeline could be proposed")
    columns = [PinnedColumn(f.name, f.dataType.simpleString(), f.name) for f in kept.schema]
    return _Taken(Origin(sample.table.text), columns, read)


def _can_be_proposed(column: str) -> bool:
    """Whether a spec may name the column, without quotes or backticks, wherever a column stands."""
    if not column.isidentifier() or column.lower() in _YAML_WORDS:
        return False
    try:
        check_output_columns((column,), ())
    except SpecError:
        return False
    return True


def _propose_parts(spark: SparkSession, home: Path, name: str, sample: Sample) -> Proposal:
    rows = delta.read(spark, _find_played(home, name)).limit(SAMPLE).toArrow().to_pylist()
    proposal = propose(rows)
    if proposal is None:
        passed_over = ""
        if isinstance(sample, TableSample):
            passed_over = " (those whose names a spec has to quote are passed over)"
        raise UsageError(
            f"no column of {sample.name} has times, which events need{passed_over}; add one, or "
            "begin without --from and write the spec by hand"
        )
    if isinstance(sample, TableSample) and proposal.key.value == f"[{FILE}]":
        raise UsageError(
            f"no column of {sample.name} is text or a whole number, so windows have no key; add "
            "one, or begin without --from and write the spec by hand"
        )
    return proposal


def _ask_history(spark: SparkSession, pipeline: Pipeline, proposal: Proposal) -> Proposal:
    """The proposal with the watermark that the commits of the table suggest.

    The order of rows in a table says nothing about when they came.
    """
    cost, unknown = None, "its history is too large to be read here"
    if source.read(spark, pipeline).count() <= _HISTORY:
        advice = advise(pipeline, Asked(rows=_HISTORY), WantedShares(), lambda: spark)
        cost = advice.proposed
        unknown = advice.unknown or "no event came after the first ones"
    if cost is None:
        return replace(
            proposal,
            delay=Proposed("0 seconds", f"{unknown}; `tidemark advise` proposes one"),
            allowed_lateness=Proposed("forever", "as long as it is not known how late events come"),
        )
    on_time = cost.events - cost.missing - cost.correcting
    counted = cost.events - cost.missing
    settings = cost.settings
    lateness = "forever" if is_forever(settings) else write_length(settings.lateness_us)
    in_time = f"{on_time:,} of {cost.events:,} events would have come before their windows closed"
    in_all = f"{counted:,} of them would have been counted in all of their windows"
    return replace(
        proposal,
        delay=Proposed(write_length(settings.delay_us), in_time),
        allowed_lateness=Proposed(lateness, f"{in_all}; `tidemark advise` says more"),
    )


def write_project(
    project: Project, folder: Path, landed: Mapping[str, Path | bytes] | None = None
) -> None:
    """Writes the folder with files that have `landed`, by name, if events come from files.

    UsageError where that can't be done.
    """
    check_free(folder)
    try:
        for path, text in project.texts.items():
            file = folder / path
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(text)
        for name, content in (landed or {}).items():
            file = folder / DROP / name
            file.parent.mkdir(exist_ok=True)
            if isinstance(content, bytes):
                file.write_bytes(content)
            else:
                shutil.copyfile(content, file)
    except OSError as error:
        raise UsageError(f"{folder} can't be written to ({error.strerror})") from error


def check_free(folder: Path) -> None:
    """UsageError where there is something in the folder."""
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise UsageError(f"{folder} is not empty; name a folder that does not exist yet")
