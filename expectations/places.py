"""Where the suite and the Data Docs of a pipeline lie. No Great Expectations, no Spark."""

from pathlib import Path

from windowing.errors import SpecError
from windowing.location import Location
from windowing.spec.pipeline import Pipeline
from windowing.spec.words import join_names, quote_value, suggest_name

SUITES = Path(__file__).parent / "suites"
"""The suites that Tidemark ships."""
_DOCS = "_docs"


def suites_of(pipeline: Pipeline) -> Path:
    """The directory with the suite: `expectations/` next to the spec, or the shipped one."""
    own = _own_suites(pipeline)
    if own is not None and _suite_file(own, pipeline).is_file():
        return own
    return SUITES


def read_suite(pipeline: Pipeline, suites: Path) -> bytes:
    """The suite in `suites` as it is written; empty where there is none."""
    file = _suite_file(suites, pipeline)
    return file.read_bytes() if file.is_file() else b""


def check_suite(pipeline: Pipeline) -> None:
    """Raises SpecError if the suite that the pipeline names is in neither place."""
    if pipeline.suite is None or _suite_file(suites_of(pipeline), pipeline).is_file():
        return
    own = _own_suites(pipeline)
    raise find_missing_suite(pipeline, [SUITES] if own is None else [own, SUITES])


def find_missing_suite(pipeline: Pipeline, places: list[Path]) -> SpecError:
    """The error that none of `places` contains the pipeline's suite; it names those that exist."""
    names: set[str] = set()
    for place in places:
        names.update(file.stem for file in place.glob("*.yaml"))
    there = sorted(names)
    wanted = " or ".join(str(_suite_file(place, pipeline)) for place in places)
    hint = suggest_name(pipeline.suite or "", there)
    known = f"suites there are: {join_names(there) or 'none'}{hint}"
    wrong = f"{quote_value(pipeline.suite)} is not there: no file {wanted}"
    message = f"{wrong}; {known}; name one of them, or write that file"
    return SpecError("expectations.suite", message, pipeline.file)


def docs_of(pipeline: Pipeline) -> Location:
    """The directory with the Data Docs of every validation that is kept."""
    return pipeline.table(_DOCS)


def _own_suites(pipeline: Pipeline) -> Path | None:
    """The directory for suites next to a spec's file; None for a pipeline made from a mapping."""
    if not pipeline.file:
        return None
    return Path(pipeline.file).parent / "expectations"


def _suite_file(place: Path, pipeline: Pipeline) -> Path:
    return place / f"{pipeline.suite}.yaml"
