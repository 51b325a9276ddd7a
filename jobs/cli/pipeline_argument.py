"""Which pipelines a command is about: PIPELINE and --target, and how a shell completes them.

text -> a spec's path, or a name of the project -> Pipeline. No other file of `cli/` looks for one.
"""

import os
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

import click
from click.core import ParameterSource
from click.shell_completion import CompletionItem

from windowing.errors import TidemarkError, UsageError
from windowing.spec.project.file import OWN, SHARED, TARGET

if TYPE_CHECKING:
    from windowing.spec.pipeline import Pipeline

F = TypeVar("F", bound=Callable[..., Any])
_TARGET = "tidemark.target"
_DATA = (".csv", ".tsv", ".parquet", ".jsonl", ".ndjson", ".gz", ".xlsx")
_PROJECTS = (OWN, SHARED)


class PipelineType(click.ParamType["Pipeline"]):
    """The path of a spec, or the name of a project's pipeline, as that pipeline; its suite exists.

    A shell completes the names, and paths where no name begins so.
    """

    name = "pipeline"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> "Pipeline":
        """The pipeline; raises SpecError and UsageError with file, field and what is allowed."""
        return value if not isinstance(value, str) else load(value, ctx)

    def shell_complete(
        self, ctx: click.Context, param: click.Parameter, incomplete: str
    ) -> list[CompletionItem]:
        """Names of the project that the current directory is in, and paths."""
        # The shell offers files only where no name is left.
        return [CompletionItem(incomplete, type="file"), *_complete(_list_names(), incomplete)]


class WindowType(click.ParamType[str]):
    """The name of a window; a shell completes those of the pipeline before it."""

    name = "window"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """The text as it is, because the pipeline may be read after it."""
        return str(value)

    def shell_complete(
        self, ctx: click.Context, param: click.Parameter, incomplete: str
    ) -> list[CompletionItem]:
        """The windows of the pipeline that stands on the command line."""
        # An option that still lacks its value leaves the words before it as they are.
        given = ctx.params.get("pipeline") or next(iter(ctx.args), None)
        try:
            pipeline = load(given, ctx) if isinstance(given, str) else given
        except TidemarkError:
            return []
        names = [] if pipeline is None else [window.name for window in pipeline.windows]
        return _complete(names, incomplete)


WINDOW = WindowType()


def load(text: str, ctx: click.Context | None) -> "Pipeline":
    """The pipeline that a text on the command line names, with the places of --target."""
    from expectations.places import check_suite
    from windowing.spec.load import load_pipeline
    from windowing.spec.project.specs import check_only_one

    _refuse_data(text)
    target = None if ctx is None else ctx.meta.get(_TARGET)
    pipeline = load_pipeline(text, target)
    if pipeline.file is not None and pipeline.placed_by is not None:
        check_only_one(pipeline.file, pipeline.name)
    check_suite(pipeline)
    if target is not None and pipeline.placed_by is None and _is_typed(ctx):
        kept = f"{pipeline.file} says its own lake, which stays, whatever --target is"
        click.echo(f"tidemark: {kept}", err=True)
    return pipeline


def load_many(texts: tuple[str, ...], ctx: click.Context) -> "list[Pipeline]":
    """The pipelines that texts name, in their order, each file once.

    A folder stands for its specs, and one with the file of a project for those of the project. No
    text at all stands for the project that the current directory is in, or for that directory.
    """
    from windowing.spec.project.load import find_project
    from windowing.spec.project.specs import specs_of

    project = None if texts else find_project(os.curdir)
    if project is not None:
        found = {os.path.relpath(file): None for file in specs_of(project)}
        if not found:
            raise UsageError(f"{project.pipelines} has no *.yaml or *.yml file; write a spec there")
    else:
        found = {file: None for text in texts or (os.curdir,) for file in _list_files(text)}
    pipelines = [load(file, ctx) for file in found]
    if project is not None:
        _refuse_two_of_one_name(pipelines)
    return pipelines


def pipeline_argument(command: F) -> F:
    """Adds PIPELINE, which becomes the argument `pipeline`, and --target."""
    argument = click.argument("pipeline", metavar="PIPELINE", type=PipelineType())
    return argument(target_option(command))


def target_option(command: F) -> F:
    """Adds --target."""
    return click.option(
        "--target",
        metavar="NAME",
        is_eager=True,
        expose_value=False,
        callback=_set_target,
        envvar=TARGET,
        show_envvar=True,
        shell_complete=lambda ctx, param, text: _complete(_list_targets(), text),
        help="The target of the project whose lake and places count where a spec says none.",
    )(command)


def _set_target(ctx: click.Context, _: click.Parameter, value: str | None) -> None:
    if value == "" and _is_typed(ctx):
        raise UsageError("--target is empty; name a target of the project, or leave it out")
    ctx.meta[_TARGET] = value or None


def _refuse_data(text: str) -> None:
    """Raises UsageError for the path of a file that is plainly no spec."""
    if text.endswith(_PROJECTS):
        raise UsageError(f"{text} is the file of a project; name a pipeline, or the path of a spec")
    if text.lower().endswith(_DATA):
        raise UsageError(
            f"{text} is data and no spec; name the spec of the pipeline, whose source.files.folder "
            "says where such files land"
        )


def _is_typed(ctx: click.Context | None) -> bool:
    """Whether --target stands on the command line, and not in the environment."""
    return ctx is not None and ctx.get_parameter_source("target") is ParameterSource.COMMANDLINE


def _list_files(text: str) -> list[str]:
    """The specs that one text of the command line stands for."""
    from windowing.spec.project.load import find_project_in
    from windowing.spec.project.specs import SUFFIXES, find_named, list_specs, specs_of

    if not os.path.isdir(text) or text in _list_names():
        return [find_named(text)]
    project = find_project_in(text)
    files = list_specs(text) if project is None else specs_of(project)
    if not files:
        kinds = " or ".join(f"*{suffix}" for suffix in SUFFIXES)
        raise UsageError(f"{text} has no {kinds} file; name a spec, or its folder")
    return files


def _refuse_two_of_one_name(pipelines: "list[Pipeline]") -> None:
    from windowing.spec.project.specs import two_of_one_name

    files: dict[str, str] = {}
    for pipeline in pipelines:
        first = files.setdefault(pipeline.name, str(pipeline.file))
        if first != pipeline.file:
            raise two_of_one_name(pipeline.name, first, str(pipeline.file))


def _list_names() -> list[str]:
    from windowing.spec.project.load import find_project
    from windowing.spec.project.specs import names_of

    try:
        project = find_project(os.curdir)
        return [] if project is None else names_of(project)
    except (OSError, TidemarkError):
        # A shell can't show why; the command itself says it, where it needs a name. The current
        # directory may have been deleted.
        return []


def _list_targets() -> list[str]:
    from windowing.spec.project.load import find_project

    try:
        project = find_project(os.curdir)
    except (OSError, TidemarkError):
        return []
    return [] if project is None else list(project.names)


def _complete(names: list[str], incomplete: str) -> list[CompletionItem]:
    return [CompletionItem(name) for name in names if name.startswith(incomplete)]
