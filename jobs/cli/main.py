"""`tidemark`: event-time windows over Delta tables, from the command line. What it promises: docs name every command and exit code.

command line -> spec (no Spark) -> lock probe (no Spark) -> session -> one function of `jobs` -> table or JSON
"""

import os
import sys
import traceback
from collections.abc import Sequence
from typing import Any

import click

from jobs.cli.backfill import backfill
from jobs.cli.doctor import doctor
from jobs.cli.erase import erase
from jobs.cli.errors import Failure, explained, usage
from jobs.cli.explain import explain
from jobs.cli.late import late
from jobs.cli.maintain import maintain
from jobs.cli.options import debug, debugging
from jobs.cli.publish import publish
from jobs.cli.recover import recover
from jobs.cli.report import report
from jobs.cli.reset import reset
from jobs.cli.run import run
from jobs.cli.setup import setup
from jobs.cli.show import show
from jobs.cli.state import state
from jobs.cli.test import check
from jobs.cli.validate import validate

INTERRUPTED = 130


class Tidemark(click.Group):
    """A group whose every error is one sentence on stderr and the exit code that belongs to it."""

    def main(
        self,
        args: Sequence[str] | None = None,
        prog_name: str | None = None,
        *rest: Any,
        **extra: Any,
    ) -> Any:
        """Runs one command and ends the process with its exit code."""
        _streams()
        try:
            code = super().main(args, prog_name, *rest, **{**extra, "standalone_mode": False})
        except click.exceptions.NoArgsIsHelpError as error:
            code = _said(error.format_message(), error.exit_code)
        except Failure as error:
            code = _said(f"tidemark: {error.message}", error.code)
        except click.ClickException as error:
            code = _said(f"tidemark: {usage(error)}", error.exit_code)
        except click.Abort:
            code = _said(
                "tidemark: interrupted; the next run takes up where this one stopped", INTERRUPTED
            )
        except OSError as error:
            code = _unwritten(error)
        try:
            sys.stdout.flush()
        except OSError as error:
            code = _unwritten(error, said=bool(code))
        sys.exit(code if isinstance(code, int) else 0)

    def invoke(self, ctx: click.Context) -> Any:
        """Runs the command; whatever it raises becomes one sentence."""
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
            raise explained(error) from error


def _streams() -> None:
    """Standard input, output and error are open, if need be on nothing."""
    for number, name, mode in ((0, "stdin", "r"), (1, "stdout", "w"), (2, "stderr", "w")):
        if getattr(sys, name) is None:
            opened = os.open(os.devnull, os.O_RDWR)
            if opened != number:
                os.dup2(opened, number)
            setattr(sys, name, open(number, mode, encoding="utf-8", closefd=False))  # noqa: SIM115 -- open as long as the process


def _unwritten(error: OSError, *, said: bool = False) -> int:
    """Standard output takes no more, so nothing else is written to it; a sentence says so unless its reader has left or it was said."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    if said or isinstance(error, BrokenPipeError):
        return 1
    return _said(
        f"tidemark: what was found can't be written to standard output ({error.strerror})", 1
    )


def _said(text: str, code: int) -> int:
    click.echo(text, err=True)
    return code


@click.group(
    cls=Tidemark, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 120}
)
@click.version_option(package_name="tidemark")
@debug
def main() -> None:
    """Event-time windows over Delta tables that stay right when events arrive late.

    SPEC is a pipeline's YAML file. Exit codes: 0 done, 1 unexpected, 2 bad usage or spec, 3 expectations failed, 4 state or
    source refused, 75 another writer holds the pipeline.
    """


LOOKING = (explain, show, late, state, report, check)
TENDING = (maintain, doctor, recover, reset, erase)
for command in (run, backfill, validate, publish, *LOOKING, *TENDING, setup):
    main.add_command(command)
