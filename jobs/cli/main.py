"""`tidemark`: the commands as one group, and their errors as one sentence and an exit code.

command line -> spec (no Spark) -> lock probe (no Spark) -> session -> one function of `jobs` ->
table or JSON
"""

import os
import sys
import traceback
from collections.abc import Sequence
from typing import Any

import click

from jobs.cli.advise import advise
from jobs.cli.backfill import backfill
from jobs.cli.close import close, reopen, restatements
from jobs.cli.diff import diff
from jobs.cli.doctor import doctor
from jobs.cli.engine import engine
from jobs.cli.erase import erase
from jobs.cli.errors import Failure, describe_usage_error, explain_error
from jobs.cli.examples import SHORT, list_examples
from jobs.cli.explain import explain
from jobs.cli.history import history
from jobs.cli.ingest import ingest
from jobs.cli.init import init
from jobs.cli.late import late
from jobs.cli.maintain import maintain
from jobs.cli.options import debug, debugging
from jobs.cli.publish import publish
from jobs.cli.recover import recover
from jobs.cli.register import register
from jobs.cli.report import report
from jobs.cli.reset import reset
from jobs.cli.run import run
from jobs.cli.setup import setup
from jobs.cli.show import show
from jobs.cli.spark import explain_ended_java
from jobs.cli.state import state
from jobs.cli.status import status
from jobs.cli.test import check
from jobs.cli.validate import validate

INTERRUPTED = 130


class Tidemark(click.Group):
    """A group of commands that reports each error as one sentence on stderr and an exit code."""

    def main(
        self,
        args: Sequence[str] | None = None,
        prog_name: str | None = None,
        *rest: Any,
        **extra: Any,
    ) -> Any:
        """Runs one command and ends the process with its exit code."""
        _open_missing_streams()
        try:
            code = super().main(args, prog_name, *rest, **{**extra, "standalone_mode": False})
        except click.exceptions.NoArgsIsHelpError as error:
            code = _print_error(error.format_message(), error.exit_code)
        except Failure as error:
            code = _print_error(f"tidemark: {error.message}", error.code)
        except click.ClickException as error:
            code = _print_error(f"tidemark: {describe_usage_error(error)}", error.exit_code)
        except click.Abort:
            code = _print_error(
                "tidemark: interrupted; run the same command again to finish it", INTERRUPTED
            )
        except OSError as error:
            code = _report_unwritable(error)
        try:
            sys.stdout.flush()
        except OSError as error:
            code = _report_unwritable(error, already_reported=bool(code))
        sys.exit(code if isinstance(code, int) else 0)

    def invoke(self, ctx: click.Context) -> Any:
        """Runs the command; an error that it raises becomes one sentence."""
        try:
            return super().invoke(ctx)
        except (
            click.ClickException,
            click.Abort,
            click.exceptions.Exit,
            BrokenPipeError,
            KeyboardInterrupt,
        ):
            raise
        except Exception as error:
            if debugging(ctx):
                traceback.print_exception(error)
            if _follows_interrupt(error):
                raise KeyboardInterrupt from error
            raise (explain_ended_java(ctx, error) or explain_error(error)) from error


def _follows_interrupt(error: BaseException) -> bool:
    """Whether something failed because of Ctrl-C, such as a tidying up that needs the JVM."""
    earlier = error.__context__
    return earlier is not None and (
        isinstance(earlier, KeyboardInterrupt) or _follows_interrupt(earlier)
    )


def _open_missing_streams() -> None:
    """Opens standard input, output and error on the null device where the caller has closed them.

    Otherwise the next file that is opened would get the number of one of them.
    """
    for number, name, mode in ((0, "stdin", "r"), (1, "stdout", "w"), (2, "stderr", "w")):
        if getattr(sys, name) is None:
            opened = os.open(os.devnull, os.O_RDWR)
            if opened != number:
                os.dup2(opened, number)
            # The stream stays open as long as the process.
            stream = open(number, mode, encoding="utf-8", closefd=False)  # noqa: SIM115
            setattr(sys, name, stream)


def _report_unwritable(error: OSError, *, already_reported: bool = False) -> int:
    """Redirects standard output, which can't be written to, to the null device; reports that once.

    A reader that has closed its end of a pipe needs no report.
    """
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    if already_reported or isinstance(error, BrokenPipeError):
        return 1
    return _print_error(
        f"tidemark: the result can't be written to standard output ({error.strerror})", 1
    )


def _print_error(text: str, code: int) -> int:
    click.echo(text, err=True)
    return code


@click.group(
    cls=Tidemark, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 120}
)
@click.version_option(package_name="tidemark")
@debug
def main() -> None:
    """Event-time windows over Delta tables that stay right when events arrive late.

    PIPELINE is the YAML file of a pipeline or, in a project with a file tidemark.toml, its name.
    Exit codes: 0 done, 1 unexpected, 2 wrong usage or spec,
    3 expectations failed, 4 state or source refused, 5 a pipeline needs attention,
    75 another writer holds the pipeline, 130 interrupted.
    """


_WRITE = (init, ingest, run, backfill, validate, publish)
_READ = (status, advise, explain, show, history, diff, late, state, restatements, report, check)
_OPERATE = (register, close, reopen, maintain, doctor, recover, reset, erase, setup, engine)
for command in (*_WRITE, *_READ, *_OPERATE):
    command.short_help = SHORT.get(command.name or "", command.short_help)
    command.epilog = list_examples(command.name or "")
    main.add_command(command)
