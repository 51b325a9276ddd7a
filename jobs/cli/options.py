"""Arguments and options that several commands have: PIPELINE, --json, --debug, times, keys."""

from collections.abc import Callable
from datetime import UTC, datetime
from functools import wraps
from typing import Any, TypeVar, cast

import click
from click.core import ParameterSource

from jobs.cli.pipeline_argument import pipeline_argument
from jobs.cli.spark_extra import require_spark_extra
from jobs.console import Printer
from windowing.errors import UsageError
from windowing.spec.kinds import Window
from windowing.spec.pipeline import Pipeline
from windowing.spec.words import join_names, quote_value, suggest_name

F = TypeVar("F", bound=Callable[..., Any])
_DEBUG = "tidemark.debug"
TIMES = "Times are ISO 8601; without a zone they are UTC."


class Instant(click.ParamType[datetime]):
    """An ISO 8601 time as an aware datetime; UTC where it names no zone."""

    name = "time"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> datetime:
        """The time in UTC; a usage error for any other text, with examples."""
        if isinstance(value, datetime):
            return value
        try:
            at = datetime.fromisoformat(value.strip())
            aware = at if at.tzinfo else at.replace(tzinfo=UTC)
            return aware.astimezone(UTC)
        except (ValueError, OverflowError):
            self.fail(
                f"{quote_value(value)} is not a time such as 2013-03-10T05:00Z, "
                "2013-03-10T00:00-05:00 or 2013-03-10",
                param,
                ctx,
            )


def debugging(ctx: click.Context | None = None) -> bool:
    """Whether --debug or TIDEMARK_DEBUG asks for stack traces."""
    return bool((ctx or click.get_current_context()).meta.get(_DEBUG))


def _set_debug(ctx: click.Context, _: click.Parameter, value: bool) -> None:  # noqa: FBT001
    # The option may stand before and after the name of the command, and either one counts.
    ctx.meta[_DEBUG] = value or ctx.meta.get(_DEBUG, False)


def debug(command: F) -> F:
    """Adds --debug."""
    text = "Show stack traces and what the JVM logs."
    option = click.option(
        "--debug",
        is_flag=True,
        is_eager=True,
        expose_value=False,
        callback=_set_debug,
        envvar="TIDEMARK_DEBUG",
        show_envvar=True,
        help=text,
    )
    return option(command)


def common(command: F) -> F:
    """Adds PIPELINE, --target, --json (a Printer) and --debug; requires Spark once all are read.

    So a wrong spec is reported first, also where Spark isn't installed. The command raises
    StateRefused for a damaged control table, wherever it reads one.
    """

    @wraps(command)
    def start(*given: Any, **named: Any) -> Any:
        require_spark_extra()
        from jobs.foreign_errors.control_errors import control_errors_explained
        from windowing.storage.kept_open import logs_copied

        with control_errors_explained(named["pipeline"]), logs_copied():
            return command(*given, **named)

    return cast(F, pipeline_argument(json_option(debug(start))))


def json_option(command: F) -> F:
    """Adds --json, and gives the command the printer that this asks for."""
    text = "Print one JSON object on stdout, everything else on stderr."
    return click.option("--json", "printer", is_flag=True, callback=_open_printer, help=text)(
        command
    )


def _open_printer(_: click.Context, __: click.Parameter, value: bool) -> Printer:  # noqa: FBT001
    return Printer(as_json=value)


def key_option(command: F) -> F:
    """Adds --key, which may be repeated."""
    text = (
        "COLUMN=VALUE, or only the value where the key has one column. "
        "Repeat it for more columns or more values."
    )
    return click.option("--key", "keys", multiple=True, metavar="KEY", help=text)(command)


def range_options(of: str) -> Callable[[F], F]:
    """Adds --from, --to and --reverse; `of` names what they select, such as event times."""
    since = f"Only {of} from this time on (inclusive). {TIMES}"
    until = f"Only {of} before this time (exclusive)."
    return _select_times(since, until, "Sort in the opposite order.")


def windows_options(command: F) -> F:
    """Adds --from, --to and --reverse, which select windows of an output."""
    since = f"Only windows that end after this time. {TIMES}"
    until = "Only windows that begin before this time."
    return _select_times(since, until, "Show the newest windows first.")(command)


def _select_times(since: str, until: str, reverse: str) -> Callable[[F], F]:
    """Adds --from, --to and --reverse with these helps."""
    start = click.option("--from", "start", type=Instant(), help=since)
    end = click.option("--to", "end", type=Instant(), help=until)
    opposite = click.option("--reverse", is_flag=True, help=reverse)
    return lambda command: start(end(opposite(command)))


def as_of_option(text: str) -> Callable[[F], F]:
    """Adds --as-of."""
    return click.option("--as-of", metavar="RUN", help=text)


def limit_option(command: F) -> F:
    """Adds --limit."""
    return click.option(
        "--limit",
        type=click.IntRange(1, 1_000_000),
        default=20,
        show_default=True,
        help="How many rows to show at most.",
    )(command)


def is_limit_given() -> bool:
    """Whether --limit stands on the command line; it has a default."""
    source = click.get_current_context().get_parameter_source("limit")
    return source is ParameterSource.COMMANDLINE


def ordered(start: datetime | None, end: datetime | None) -> None:
    """Raises UsageError unless `start` is before `end`, where both are given."""
    if start is not None and end is not None and start >= end:
        raise UsageError(
            f"--from {start.isoformat()} must be before --to {end.isoformat()}, "
            "because the range contains --from and not --to"
        )


def window_of(pipeline: Pipeline, name: str) -> Window:
    """The window called `name`; raises UsageError with the names that exist."""
    names = [w.name for w in pipeline.windows]
    if name not in names:
        raise UsageError(
            f"{pipeline.name} has no window {quote_value(name)}; "
            f"it has {join_names(names)}{suggest_name(name, names)}"
        )
    return pipeline.window(name)


def keys_of(pipeline: Pipeline, given: tuple[str, ...]) -> dict[str, tuple[str, ...]]:
    """The wanted values by key column; raises UsageError where a text names no key column."""
    found: dict[str, tuple[str, ...]] = {}
    for text in given:
        column, value = _parse_key(pipeline, text)
        found[column] = (*found.get(column, ()), value)
    return found


def _parse_key(pipeline: Pipeline, text: str) -> tuple[str, str]:
    columns = pipeline.source.key
    column, equals, value = text.partition("=")
    if not equals and len(columns) == 1:
        return columns[0], text
    if not equals:
        raise UsageError(
            f"--key {quote_value(text)} names no column; write COLUMN=VALUE, "
            f"the key columns are {join_names(columns)}"
        )
    if column not in columns:
        raise UsageError(
            f"--key: {quote_value(column)} is not a key column of {pipeline.name}; "
            f"it has {join_names(columns)}{suggest_name(column, columns)}"
        )
    return column, value
