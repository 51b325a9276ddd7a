"""A project as frozen values that have been checked, and the target that is meant.

folder -> file found upwards (file.py) -> ProjectDocument (document.py) -> Project
"""

import os
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from pydantic import ValidationError

from windowing.errors import SpecError, UsageError
from windowing.spec.pipeline import PlacedBy
from windowing.spec.places import SCHEMES, Base, resolve_directory, resolve_lake
from windowing.spec.project.document import ProjectDocument, TargetDocument, model_at
from windowing.spec.project.file import OWN, TARGET, find_project_file, project_file_in, read_table
from windowing.spec.words import join_names, quote_value, suggest_name
from windowing.spec.yaml.findings import first_sentence

_TARGET_NAME = "[a-z][a-z0-9_-]{0,63}"
_PLACE_NAME = "[a-z][a-z0-9_]{0,63}"
LAKE = "lake"
"""The place that every pipeline has."""


@dataclass(frozen=True)
class Target:
    """One target of a project: absolute paths by the names of places."""

    name: str
    lake: str | None = None
    places: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Project:
    """The `file` of a project, the folder of its specs, and its targets; absolute paths.

    `target` is the one that is meant where none is named; None where there is none at all.
    """

    file: str
    pipelines: str
    targets: tuple[Target, ...] = ()
    target: str | None = None

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the targets."""
        return tuple(target.name for target in self.targets)


@dataclass(frozen=True)
class Chosen:
    """A target of a project that is meant now, and how a pipeline remembers it."""

    target: Target
    by: PlacedBy

    def __str__(self) -> str:
        return f"target {self.target.name} of {self.by.project}"


def find_project(start: str) -> Project | None:
    """The project that the folder `start` is in, or None; SpecError for a wrong file."""
    file = find_project_file(start)
    return None if file is None else load_project(file)


def find_project_in(folder: str) -> Project | None:
    """The project whose file lies in the folder itself, or None; SpecError for a wrong file."""
    file = project_file_in(folder)
    return None if file is None else load_project(file)


def load_project(file: str) -> Project:
    """The project of a file; SpecError, in one sentence, for a wrong one."""
    try:
        return _build_project(file, _parse_document(read_table(file)))
    except SpecError as error:
        if error.file is not None or not error.field:
            raise
        table = "" if os.path.basename(file) == OWN else "tool.tidemark."
        raise SpecError(f"{table}{error.field}", error.message, file) from None


def choose_target(project: Project, given: str | None) -> Chosen | None:
    """The target called `given`, or else the project's own.

    None where the project has no target and none is named. UsageError for a name that it has not.
    """
    name = project.target if given is None else given
    if name is None:
        return None
    found = [target for target in project.targets if target.name == name]
    if not found:
        known = f"has {join_names(project.names)}" if project.targets else "has none"
        hint = suggest_name(name, project.names)
        raise UsageError(
            f"target {quote_value(name)}: {project.file} {known}{hint}; name another one by "
            f"--target or {TARGET}, or write [targets.{name}] there"
        )
    (target,) = found
    # Without a name a command may mean another target: the environment names one before the file.
    options = () if given is None else ("--target", name)
    return Chosen(target, PlacedBy(project.file, name, options))


def _parse_document(values: Mapping[str, object]) -> ProjectDocument:
    # Whoever comes from pyproject.toml or from a page about it writes this.
    for table in ("tidemark", "tool"):
        if isinstance(values.get(table), dict):
            raise SpecError(
                table,
                f"is not a table here; in {OWN} pipelines, target and [targets.NAME] stand at the "
                "top, and [tool.tidemark] is for pyproject.toml",
            )
    for name in TargetDocument.model_fields.keys() & values.keys():
        raise SpecError(name, "belongs to a target; write it under [targets.dev], or under others")
    try:
        return ProjectDocument.model_validate(values)
    except ValidationError as error:
        raise SpecError(*first_sentence(error, model_at)) from None


def _build_project(file: str, written: ProjectDocument) -> Project:
    home = os.path.dirname(os.path.abspath(file))
    base = Base(home)
    targets = tuple(_build_target(base, *each) for each in written.targets.items())
    folder = resolve_directory("pipelines", written.pipelines, base)
    if not folder.startswith("/") or os.path.commonpath([home, folder]) != home:
        raise SpecError(
            "pipelines",
            f"{quote_value(written.pipelines)} is not below the folder of this file, so its specs "
            "would not find it; move the file up, or the specs down",
        )
    names = [target.name for target in targets]
    return Project(file, folder, targets, _choose_default(written.target, names))


def _choose_default(written: str | None, names: list[str]) -> str | None:
    """The target that is meant where none is named."""
    if written is not None and written not in names:
        known = f"targets are {join_names(names)}" if names else "there are none"
        raise SpecError(
            "target",
            f"{quote_value(written)} is not a target, {known}{suggest_name(written, names)}; "
            f"name one of them, or write [targets.{written}]",
        )
    if written is None and len(names) > 1:
        raise SpecError(
            "target",
            f"is missing, and there are {join_names(names)}; write which of them is meant where a "
            f'command names none, as in target = "{names[0]}"',
        )
    return written or next(iter(names), None)


def _build_target(base: Base, name: str, written: TargetDocument) -> Target:
    field = f"targets.{name}"
    if not re.fullmatch(_TARGET_NAME, name):
        raise SpecError(
            field,
            f"{quote_value(name)} is not the name of a target; it matches {_TARGET_NAME}, as in "
            "dev or prod",
        )
    places = dict(_resolve_places(f"{field}.places", base, written.places))
    lake = None if written.lake is None else resolve_lake(f"{field}.lake", written.lake, base)
    return Target(name, lake, places)


def _resolve_places(
    field: str, base: Base, written: Mapping[str, str]
) -> Iterable[tuple[str, str]]:
    for name, path in written.items():
        if name == LAKE:
            raise SpecError(f"{field}.{name}", f"is a field of the target itself: {LAKE} = ...")
        if not re.fullmatch(_PLACE_NAME, name) or name in SCHEMES:
            raise SpecError(
                f"{field}.{name}",
                f"{quote_value(name)} can't be the name of a place; it matches {_PLACE_NAME}, and "
                "is none that addresses of stores begin with, such as s3",
            )
        yield name, resolve_directory(f"{field}.{name}", path, base)
