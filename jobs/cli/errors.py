"""Errors as one sentence and an exit code."""

import re

import click

from windowing.errors import TidemarkError
from windowing.report.text import cell

_MAX_LENGTH = 300
_CONDITION = re.compile(r"\[[A-Z][A-Z0-9_.]+\]")
_CLASS = re.compile(r"(?:[a-z]\w*\.)+([A-Z][\w$]*)(?=: |$)", re.MULTILINE)
_HOST = re.compile(
    r"No space left on device|Disk quota exceeded|Permission denied|Read-only file system"
    r"|Too many open files|Cannot allocate memory|Input/output error|Java heap space"
    r"|GC overhead limit exceeded|unable to create native thread|Connection refused"
)
"""What may be quoted from a message of the JVM, because it concerns the host and no row."""


class Failure(click.ClickException):
    """Ends the command with a sentence and an exit code."""

    def __init__(self, sentence: str, exit_code: int) -> None:
        super().__init__(sentence)
        self.code = exit_code


def explain_error(error: Exception) -> Failure:
    """An error of Tidemark as it is; of any other its kind and the first line, shortened."""
    if isinstance(error, TidemarkError):
        return Failure(_one_line(str(error)), error.exit_code)
    return Failure(f"unexpected {_describe(error)}; run again with --debug for more", 1)


def describe_usage_error(error: click.ClickException) -> str:
    """The message of click as one sentence that names the help of the command."""
    text = _one_line(error.format_message()).rstrip(".")
    if not isinstance(error, click.UsageError) or error.ctx is None:
        return text
    where = f"{error.ctx.info_name}: " if error.ctx.parent else ""
    return f"{where}{text[:1].lower()}{text[1:]}; see `{error.ctx.command_path} --help`"


def _describe(error: Exception) -> str:
    """Class and first line of an error; of an error of the JVM only its class and condition.

    Messages of the JVM may contain values of rows, so only the fixed texts of `_HOST` are quoted.
    """
    name = type(error).__name__
    if not _is_from_jvm(error):
        lines = str(error).strip().splitlines() or [""]
        return _shorten(f"{name}: {lines[0]}")
    condition = _CONDITION.match(str(error))
    if condition:
        return f"{name}: {condition[0]}"
    message = _first_cause(error) or str(error)
    java_class = _CLASS.match(message)
    described = java_class[1] if java_class else name
    host = _HOST.search(message)
    return f"{described}: {host[0]}" if host else described


def _is_from_jvm(error: Exception) -> bool:
    from_library = type(error).__module__.startswith(("pyspark", "py4j"))
    return from_library or hasattr(error, "java_exception")


def _first_cause(error: Exception) -> str:
    """The text of the first cause in the JVM; empty where there is none."""
    thrown = getattr(error, "java_exception", None)
    try:
        while thrown is not None and thrown.getCause() is not None:
            thrown = thrown.getCause()
        return "" if thrown is None else str(thrown.toString())
    except Exception:
        # The JVM may have ended, and the causes with it.
        return ""


def _shorten(text: str) -> str:
    line = _one_line(text).rstrip(":. ")
    return line if len(line) <= _MAX_LENGTH else f"{line[:_MAX_LENGTH]}..."


def _one_line(text: str) -> str:
    return cell(" ".join(text.split()))
