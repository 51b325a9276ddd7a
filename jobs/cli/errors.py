"""Errors as one sentence and an exit code."""

import re

import click

from windowing.errors import TidemarkError
from windowing.report.text import cell

_LONGEST = 300
_CONDITION = re.compile(r"\[[A-Z][A-Z0-9_.]+\]")
_CLASS = re.compile(r"(?:[a-z]\w*\.)+([A-Z][\w$]*)(?=: |$)", re.MULTILINE)
_HOST = re.compile(
    r"No space left on device|Disk quota exceeded|Permission denied|Read-only file system|Too many open files|Cannot allocate memory|"
    r"Input/output error|Java heap space|GC overhead limit exceeded|unable to create native thread|Connection refused"
)
"""What a message may say: it is about the host."""


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
    """Class and first line; of errors in the JVM class and condition, or what its host refused: their messages hold values of rows."""
    name = type(error).__name__
    if not type(error).__module__.startswith(("pyspark", "py4j")) and not hasattr(
        error, "java_exception"
    ):
        return _short(f"{name}: {(str(error).strip().splitlines() or [''])[0]}")
    if condition := _CONDITION.match(str(error)):
        return f"{name}: {condition[0]}"
    said = _cause(error) or str(error)
    kind, refused = _CLASS.match(said), _HOST.search(said)
    return (kind[1] if kind else name) + (f": {refused[0]}" if refused else "")


def _cause(error: Exception) -> str:
    """What the first cause in the JVM says; nothing where there is none, or no JVM any more."""
    thrown = getattr(error, "java_exception", None)
    try:
        while thrown is not None and thrown.getCause() is not None:
            thrown = thrown.getCause()
        return "" if thrown is None else str(thrown.toString())
    except Exception:
        return ""


def _short(text: str) -> str:
    line = _one_line(text).rstrip(":. ")
    return line if len(line) <= _LONGEST else f"{line[:_LONGEST]}..."


def _one_line(text: str) -> str:
    return cell(" ".join(text.split()))
