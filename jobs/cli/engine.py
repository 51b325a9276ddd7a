"""The commands that start, end and show the warm engine: engine start, stop, status."""

import os
from collections.abc import Sequence
from typing import TYPE_CHECKING

import click

from jobs.cli.options import debug, json_option
from jobs.cli.spark_extra import require_spark_extra
from jobs.console import Printer
from jobs.engine.client import IDLE_MINUTES
from windowing.report.text import count

if TYPE_CHECKING:
    from jobs.engine.control import Status

_LONGEST_IDLE = 24 * 60


@click.group()
def engine() -> None:
    """Keep a JVM warm for the commands that follow.

    Commands of the same user and environment use an engine that is up, one at a time; without one,
    or while it runs another command, they start a JVM of their own. With TIDEMARK_ENGINE=auto they
    start the engine, and with TIDEMARK_ENGINE=off they use none.
    """


idle_option = click.option(
    "--idle",
    "idle_minutes",
    type=click.IntRange(1, _LONGEST_IDLE),
    default=IDLE_MINUTES,
    show_default=True,
    metavar="MINUTES",
    help="End the engine after so many minutes without a command.",
)


@engine.command()
@idle_option
@json_option
@debug
def start(*, idle_minutes: int, printer: Printer) -> None:
    """Start an engine in the background, and wait until it is warm.

    One that is up already stays as it is.
    """
    require_spark_extra()
    from jobs.engine.control import engine_status, start_engine

    before = engine_status()
    status = start_engine(idle_minutes)
    began = before is None or before.pid != status.pid
    _print_status(printer, status, "is up" if began else "was up already")


@engine.command()
@json_option
@debug
def stop(*, printer: Printer) -> None:
    """End the engine, after the command that it runs."""
    from jobs.engine.control import stop_engine

    was_up = stop_engine()
    printer.line("the engine has ended" if was_up else "no engine was up")
    printer.finish({"up": False, "was_up": was_up})


@engine.command()
@json_option
@debug
def status(*, printer: Printer) -> None:
    """Show whether an engine is up, and whether commands of this terminal use it."""
    from jobs.engine.control import engine_status

    found = engine_status()
    if found is None:
        printer.line("no engine is up; `tidemark engine start` starts one")
        printer.finish({"up": False})
        return
    _print_status(printer, found, "is up")


@engine.command(hidden=True)
@idle_option
@debug
def serve(*, idle_minutes: int) -> None:
    """Be the engine, in this process; `start` runs this in the background."""
    require_spark_extra()
    # Spark sets variables of its own, so what the engine was started with is described first.
    from jobs.engine.fingerprint import code_fingerprint, surroundings

    code, given = code_fingerprint(os.environ), surroundings(os.environ)
    from jobs.engine.control import begin_log, hold_directory
    from jobs.engine.engine_directory import make_directory
    from jobs.engine.server import Engine, Settings, end_on_signals, listen

    directory = make_directory()
    hold_directory(directory)
    begin_log(directory)
    end_on_signals()
    from jobs.engine.warm_spark import WarmSpark

    commands = click.get_current_context().find_root().command

    def run(words: Sequence[str]) -> object:
        return commands.main(list(words), prog_name="tidemark")

    spark, settings = WarmSpark(run), Settings(code, given, idle_minutes * 60.0)
    Engine(listen(directory.socket), spark, settings).serve()


def _print_status(printer: Printer, status: "Status", sentence: str) -> None:
    printer.line(
        f"an engine {sentence}: process {status.pid}, {status.state}, "
        f"{count(status.commands, 'command')} so far; "
        f"it ends after {status.idle_minutes:g} minutes without a command"
    )
    if not status.used_here:
        printer.line(f"commands of this terminal do not use it, because {status.because}")
    printer.finish({"up": True, **status.as_json()})
