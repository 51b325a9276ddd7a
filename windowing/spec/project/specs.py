"""The specs of a folder: which files they are, and which of them describes a pipeline."""

import os
import re
from dataclasses import dataclass

from windowing.errors import SpecError, UsageError
from windowing.spec.project.file import OWN, find_project_file
from windowing.spec.project.load import Project, find_project
from windowing.spec.words import join_names, quote_value, suggest_name
from windowing.spec.yaml.fields import NAME_PATTERN
from windowing.spec.yaml.file import document

SUFFIXES = (".yaml", ".yml")


@dataclass(frozen=True)
class Named:
    """A spec's file and the name that it gives its pipeline; None where none can be read."""

    file: str
    name: str | None


def list_specs(folder: str) -> list[str]:
    """The paths of the *.yaml and *.yml files in the folder, by name; hidden files are none."""
    names = [n for n in os.listdir(folder) if n.endswith(SUFFIXES) and not n.startswith(".")]
    return [os.path.join(folder, name) for name in sorted(names)]


def specs_of(project: Project) -> list[str]:
    """The paths of a project's specs; SpecError where its folder can't be listed."""
    try:
        return list_specs(project.pipelines)
    except OSError as error:
        raise SpecError(
            "pipelines",
            f"{quote_value(project.pipelines)} can't be listed ({error.strerror}); name the folder "
            "of the specs, or make it",
            project.file,
        ) from None


def find_named(spec: str) -> str:
    """The path of the spec that a text names: a path as it is, or the name of a pipeline.

    A text is a name where it could be one and the current directory is in a project. UsageError for
    a name that the project has not; SpecError for a wrong file of the project.
    """
    if not re.fullmatch(NAME_PATTERN, spec):
        return spec
    project = find_project(os.curdir)
    if project is None:
        if not os.path.exists(spec):
            raise UsageError(
                f"{quote_value(spec)} is no file, and a pipeline has a name only in a project; "
                f"give the path of a spec, such as {spec}.yaml, or write {OWN} here or above"
            )
        return spec
    return os.path.relpath(find_spec(project, spec))


def names_of(project: Project) -> list[str]:
    """The names of the project's pipelines, each once."""
    found = [_read_name(file).name for file in specs_of(project)]
    return list(dict.fromkeys(name for name in found if name is not None))


def find_spec(project: Project, name: str) -> str:
    """The path of the spec that describes the pipeline called `name`.

    UsageError where there is none, or more than one. Specs that are broken otherwise, or that
    belong to other pipelines, do not matter.
    """
    files = specs_of(project)
    found = [file for file in files if _may_say(file, name) and _read_name(file).name == name]
    if len(found) > 1:
        raise two_of_one_name(name, found[0], found[1])
    if not found:
        raise UsageError(_describe_missing(project, name, [_read_name(file) for file in files]))
    nearest = find_project_file(project.pipelines)
    if nearest != project.file:
        raise UsageError(
            f"{project.file} has its specs in {project.pipelines}, which is in the project of "
            f"{nearest}; take one of these two files away, or go to that folder"
        )
    return found[0]


def check_only_one(file: str, name: str) -> None:
    """Raises UsageError where a spec of the project other than `file` has the same name.

    Both pipelines would have their tables in one directory of the target's lake.
    """
    folder = os.path.dirname(os.path.abspath(file))
    project = find_project(folder)
    if project is None or project.pipelines != folder:
        return
    for other in specs_of(project):
        if os.path.basename(other) == os.path.basename(file) or not _may_say(other, name):
            continue
        if _read_name(other).name == name:
            raise two_of_one_name(name, file, os.path.relpath(other))


def two_of_one_name(name: str, first: str, second: str) -> UsageError:
    """The error that two specs of a project give their pipelines one name."""
    return UsageError(
        f"two pipelines are called {quote_value(name)}, in {first} and {second}; "
        "give one of them another name"
    )


def _may_say(file: str, name: str) -> bool:
    """Whether the text of the file contains the name at all, which is quicker than reading YAML."""
    try:
        with open(file, "rb") as opened:
            return name.encode() in opened.read()
    except OSError:
        return False


def _read_name(file: str) -> Named:
    try:
        values = document(file)
    except SpecError:
        return Named(file, None)
    name = values.get("name") if isinstance(values, dict) else None
    return Named(file, name if isinstance(name, str) else None)


def _describe_missing(project: Project, name: str, specs: list[Named]) -> str:
    names = [spec.name for spec in specs if spec.name is not None]
    nameless = [os.path.basename(spec.file) for spec in specs if spec.name is None]
    known = f"there are {join_names(names)}" if names else "there is none"
    unread = f"; no name can be read in {join_names(nameless)}" if nameless else ""
    return (
        f"no pipeline is called {quote_value(name)} in {project.pipelines}, {known}"
        f"{suggest_name(name, names)}{unread}; name one of them, or give the path of a spec"
    )
