"""What commands share on their command lines: SPEC, --json, --debug, times, keys."""

from collections.abc import Callable
from datetime import UTC, datetime
from functools import wraps
from typing import Any, TypeVar, cast

import click

from jobs.cli.spark_extra import require_spark_extra
from windowing.errors import UsageError
from windowing.spec.kinds import Window
from windowing.spec.pipeline import Pipeline
from windowing.spec.words import listed, near, shown

F = TypeVar("F", bound=Callable[..., Any])
_DEBUG = "tidemark.debug"
TIMES = "Times are ISO 8601; those without a zone are UTC."


class Instant(click.ParamType[datetime]):
    """An ISO 8601 time as an aware datetime; UTC where it names no zone."""

    name = "time"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> datetime:
        """The time, or a usage error that says what one looks like."""
        if isinstance(value, datetime):
            return value
        try:
            at = datetime.fromisoformat(value.strip())
            return (at if at.tzinfo else at.replace(tzinfo=UTC)).astimezone(UTC)
        except (ValueError, OverflowError):
            self.fail(
                f"{shown(value)} is not a time such as 2013-03-10T05:00Z, 2013-03-10T00:00-05:00 or 2013-03-10",
                param,
                ctx,
            )


class Spec(click.ParamType[Pipeline]):
    """A spec file as the pipeline it spells, whose suite is there."""

    name = "spec"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> Pipeline:
        """The pipeline; SpecError with file, field and what is allowed."""
        from expectations.places import check_suite
        from windowing.spec.load import load_pipeline

        if isinstance(value, Pipeline):
            return value
        pipeline = load_pipeline(value)
        check_suite(pipeline)
        return pipeline


def debugging(ctx: click.Context | None = None) -> bool:
    """Whether stack traces are wanted."""
    return bool((ctx or click.get_current_context()).meta.get(_DEBUG))


def _remember(ctx: click.Context, _: click.Parameter, value: bool) -> None:  # noqa: FBT001
    ctx.meta[_DEBUG] = value or ctx.meta.get(_DEBUG, False)


def debug(command: F) -> F:
    """Adds --debug."""
    text = "Show stack traces and what the JVM logs."
    option = click.option(
        "--debug",
        is_flag=True,
        is_eager=True,
        expose_value=False,
        callback=_remember,
        envvar="TIDEMARK_DEBUG",
        show_envvar=True,
        help=text,
    )
    return option(command)


def common(command: F) -> F:
    """Adds SPEC (a Pipeline), --json and --debug, and requires Spark once all of them are read.

    So a bad spec is said first, also where Spark isn't installed.
    """

    @wraps(command)
    def start(*given: Any, **named: Any) -> Any:
        require_spark_extra()
        return command(*given, **named)

    spec = click.argument("pipeline", metavar="SPEC", type=Spec())
    return cast(F, spec(json_option(debug(start))))


def json_option(command: F) -> F:
    """Adds --json."""
    text = "Print one JSON object on stdout, everything else on stderr."
    return click.option("--json", "as_json", is_flag=True, help=text)(command)


def key_option(command: F) -> F:
    """Adds --key, repeatable."""
    text = "COLUMN=VALUE, or the value alone where the key is one column. Repeat it for more columns or more values."
    return click.option("--key", "keys", multiple=True, metavar="KEY", help=text)(command)


def range_options(of: str) -> Callable[[F], F]:
    """Adds --from, --to and --reverse, about `of` such as windows."""
    since = click.option(
        "--from", "start", type=Instant(), help=f"Only {of} from this time on. {TIMES}"
    )
    until = click.option("--to", "end", type=Instant(), help=f"Only {of} before this time.")
    reverse = click.option("--reverse", is_flag=True, help="The other way round.")
    return lambda command: since(until(reverse(command)))


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
        help="Rows to show.",
    )(command)


def ordered(start: datetime | None, end: datetime | None) -> None:
    """UsageError unless `start` is before `end`, where both are given."""
    if start is not None and end is not None and start >= end:
        raise UsageError(
            f"--from {start.isoformat()} must be before --to {end.isoformat()}; the range holds --from and not --to"
        )


def window_of(pipeline: Pipeline, name: str) -> Window:
    """The window called `name`; UsageError with the names there are."""
    names = [w.name for w in pipeline.windows]
    if name not in names:
        raise UsageError(
            f"{pipeline.name} has no window {shown(name)}; it has {listed(names)}{near(name, names)}"
        )
    return pipeline.window(name)


def keys_of(pipeline: Pipeline, given: tuple[str, ...]) -> dict[str, tuple[str, ...]]:
    """For each key column the values asked for. UsageError where a text names no key column."""
    found: dict[str, tuple[str, ...]] = {}
    for text in given:
        column, value = _key(pipeline, text)
        found[column] = (*found.get(column, ()), value)
    return found


def _key(pipeline: Pipeline, text: str) -> tuple[str, str]:
    columns = pipeline.source.key
    column, equals, value = text.partition("=")
    if not equals and len(columns) == 1:
        return columns[0], text
    if not equals:
        raise UsageError(
            f"--key {shown(text)} names no column; write COLUMN=VALUE, the key columns are {listed(columns)}"
        )
    if column not in columns:
        raise UsageError(
            f"--key: {shown(column)} is not a key column of {pipeline.name}; it has {listed(columns)}{near(column, columns)}"
        )
    return column, value
