"""`tidemark`: event-time windows over Delta tables, from the command line. What it promises: docs name every command and exit code.

    command line -> spec (no Spark) -> lock probe (no Spark) -> session -> one function of `jobs` -> table or JSON
"""

import os
import sys
import traceback
from collections.abc import Sequence
from typing import Any

import click

from jobs.commands.check import check
from jobs.commands.failure import Failure, explained, usage
from jobs.commands.look import late, show, state
from jobs.commands.options import debug, debugging
from jobs.commands.plan import explain, report
from jobs.commands.quality import publish, validate
from jobs.commands.repair import doctor, erase, recover, reset
from jobs.commands.tend import maintain
from jobs.commands.write import backfill, run

INTERRUPTED = 130


class Tidemark(click.Group):
    """A group whose every error is one sentence on stderr and the exit code that belongs to it."""

    def main(self, args: Sequence[str] | None = None, prog_name: str | None = None, *rest: Any, **extra: Any) -> Any:
        """Runs one command and ends the process with its exit code."""
        try:
            code = super().main(args, prog_name, *rest, **{**extra, "standalone_mode": False})
            sys.stdout.flush()
        except click.exceptions.NoArgsIsHelpError as error:
            code = _said(error.format_message(), error.exit_code)
        except Failure as error:
            code = _said(f"tidemark: {error.message}", error.code)
        except click.ClickException as error:
            code = _said(f"tidemark: {usage(error)}", error.exit_code)
        except click.Abort:
            code = _said("tidemark: interrupted; the next run takes up where this one stopped", INTERRUPTED)
        except BrokenPipeError:
            os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
            code = 1
        sys.exit(code if isinstance(code, int) else 0)

    def invoke(self, ctx: click.Context) -> Any:
        """Runs the command; whatever it raises becomes one sentence."""
        try:
            return super().invoke(ctx)
        except (click.ClickException, click.Abort, click.exceptions.Exit, BrokenPipeError, KeyboardInterrupt):
            raise
        except Exception as error:
            if debugging(ctx):
                traceback.print_exception(error)
            raise explained(error) from error


def _said(text: str, code: int) -> int:
    click.echo(text, err=True)
    return code


@click.group(cls=Tidemark, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 120})
@click.version_option(package_name="tidemark")
@debug
def main() -> None:
    """Event-time windows over Delta tables that stay right when events arrive late.

    SPEC is a pipeline's YAML file. Exit codes: 0 done, 1 unexpected, 2 bad usage or spec, 3 expectations failed, 4 state or
    source refused, 75 another writer holds the pipeline.
    """


for command in (run, backfill, validate, publish, explain, show, late, state, report, check, maintain, doctor, recover, reset, erase):
    main.add_command(command)
