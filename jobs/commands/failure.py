"""Errors as one sentence and an exit code."""

import click

from windowing.errors import TidemarkError
from windowing.report.text import cell

_LONGEST = 300


class Failure(click.ClickException):
    """Ends the command with a sentence and an exit code."""

    def __init__(self, sentence: str, exit_code: int) -> None:
        super().__init__(sentence)
        self.code = exit_code


def explained(error: Exception) -> Failure:
    """What an error of ours says, or the first line of any other, shortened."""
    if isinstance(error, TidemarkError):
        return Failure(_one_line(str(error)), error.exit_code)
    return Failure(f"unexpected {_named(error)}; run again with --debug for more", 1)


def usage(error: click.ClickException) -> str:
    """What click says, as one sentence that names the command's help."""
    text = _one_line(error.format_message()).rstrip(".")
    if not isinstance(error, click.UsageError) or error.ctx is None:
        return text
    where = f"{error.ctx.info_name}: " if error.ctx.parent else ""
    return f"{where}{text[:1].lower()}{text[1:]}; see `{error.ctx.command_path} --help`"


def _named(error: Exception) -> str:
    """Class and first line; of an error in the JVM those of its first cause."""
    thrown = getattr(error, "java_exception", None)
    if thrown is None:
        lines = str(error).strip().splitlines() or [""]
        return _short(f"{type(error).__name__}: {lines[0].partition(' SQLSTATE: ')[0]}")
    try:
        while thrown.getCause() is not None:
            thrown = thrown.getCause()
        lines = str(thrown.toString()).splitlines()
    except Exception:  # the JVM may be gone by now
        return type(error).__name__
    name, _, message = lines[0].partition(": ")
    return _short(f"{name.rpartition('.')[2]}: {message}")


def _short(text: str) -> str:
    line = _one_line(text).rstrip(":. ")
    return line if len(line) <= _LONGEST else f"{line[:_LONGEST]}..."


def _one_line(text: str) -> str:
    return cell(" ".join(text.split()))
