"""Where the paths of a spec begin: in its own folder, in its lake, or at places of a target.

A lake in the spec counts before that of a target, so a spec that says where it is stays there.
"""

import os
from collections.abc import Iterable
from dataclasses import dataclass

from windowing.errors import SpecError
from windowing.location import Location
from windowing.spec.pipeline import PlacedBy
from windowing.spec.places import Base, resolve_lake
from windowing.spec.project.file import OWN
from windowing.spec.project.load import LAKE, Project, choose_target, find_project

_MISSING = "is missing; write the directory that holds the pipeline's tables"


@dataclass(frozen=True)
class Placed:
    """The lake of a pipeline, where its other paths begin, and which target gave any of them."""

    lake: Location
    base: Base
    by: PlacedBy | None


def place_by_itself(lake: str | None) -> Placed:
    """The places of a pipeline that is made from a mapping; SpecError without a lake."""
    if lake is None:
        raise SpecError(LAKE, f"{_MISSING}, as an absolute path")
    return _with_lake(resolve_lake(LAKE, lake, Base()), Base(), None)


def place_by_file(
    lake: str | None, others: Iterable[str | None], file: str, target: str | None
) -> Placed:
    """The places of a pipeline whose spec is `file`.

    `lake` is what the spec says, and `others` are the other texts of it that may begin at a place.
    UsageError where its project has no target called `target`; SpecError for a wrong project.
    """
    folder = os.path.dirname(os.path.abspath(file))
    project = find_project(folder)
    chosen = None if project is None else choose_target(project, target)
    if chosen is None:
        if lake is None:
            raise SpecError(LAKE, _advise_lake(project, target or "dev"))
        return _with_lake(resolve_lake(LAKE, lake, Base(folder)), Base(folder), None)
    ours = chosen.target
    places = {**ours.places} if ours.lake is None else {LAKE: ours.lake, **ours.places}
    base = Base(folder, places, str(chosen))
    if lake is not None:
        used = any(_begins_at(text, ours.places) for text in others) or _begins_at(lake, places)
        return _with_lake(resolve_lake(LAKE, lake, base), base, chosen.by if used else None)
    if ours.lake is None:
        raise SpecError(
            LAKE,
            f"{_MISSING}, relative to this file, or for all pipelines write it as lake under "
            f"[targets.{ours.name}] in {chosen.by.project}, which has none",
        )
    return _with_lake(ours.lake, base, chosen.by)


def _with_lake(lake: str, base: Base, by: PlacedBy | None) -> Placed:
    """The places with the lake of the pipeline among them."""
    return Placed(Location(lake), Base(base.directory, {**base.places, LAKE: lake}, base.owner), by)


def _begins_at(text: str | None, places: Iterable[str]) -> bool:
    return text is not None and any(text.startswith(f"{name}://") for name in places)


def _advise_lake(project: Project | None, target: str) -> str:
    where = f"a file {OWN} here or above" if project is None else f"{project.file}, which has none"
    return (
        f'{_MISSING}, relative to this file, or for all pipelines write lake = "lake" under '
        f"[targets.{target}] in {where}"
    )
