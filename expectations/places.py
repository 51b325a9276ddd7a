"""Where the suite of a pipeline lies, and whether it is there. No Great Expectations, no Spark."""

from pathlib import Path

from windowing.errors import SpecError
from windowing.spec.pipeline import Pipeline
from windowing.spec.words import listed, near, shown

SUITES = Path(__file__).parent / "suites"
"""The suites that are shipped."""


def suites_of(pipeline: Pipeline) -> Path:
    """The directory that holds the suite: the spec's own `expectations/`, or the shipped one."""
    own = _own(pipeline)
    return own if own is not None and _file(own, pipeline).is_file() else SUITES


def check_suite(pipeline: Pipeline) -> None:
    """Raises SpecError if the suite that the pipeline names is in neither place."""
    if pipeline.suite is not None and not _file(suites_of(pipeline), pipeline).is_file():
        raise missing(pipeline, [place for place in (_own(pipeline), SUITES) if place is not None])


def missing(pipeline: Pipeline, places: list[Path]) -> SpecError:
    """Says that none of `places` holds the suite the pipeline names, and which suites there are."""
    there = sorted({file.stem for place in places for file in place.glob("*.yaml")})
    wanted = " or ".join(str(_file(place, pipeline)) for place in places)
    known = f"suites there are: {listed(there) or 'none'}{near(pipeline.suite or '', there)}"
    wrong = f"{shown(pipeline.suite)} is not there: no file {wanted}"
    message = f"{wrong}; {known}; name one of them, or write that file"
    return SpecError("expectations.suite", message, pipeline.file)


def _own(pipeline: Pipeline) -> Path | None:
    """Where the suites beside a spec's file lie; None for a pipeline that was made of a mapping."""
    return Path(pipeline.file).parent / "expectations" if pipeline.file else None


def _file(place: Path, pipeline: Pipeline) -> Path:
    return place / f"{pipeline.suite}.yaml"
