"""Errors as one sentence and an exit code."""

import re

import click

from jobs.cli.examples import EXAMPLES
from windowing.errors import TidemarkError, UsageError
from windowing.location import HDFS, S3
from windowing.report.text import cell
from windowing.spec.words import join_names
from windowing.storage.hdfs_errors import WrongSettings
from windowing.storage.spark_conditions import REFUSED_KEYS, find_condition

_MAX_LENGTH = 300
_CLASS = re.compile(r"(?:[a-z]\w*\.)+([A-Z][\w$]*)(?=: |$)", re.MULTILINE)
_REMEDIES = {
    "No space left on device": "make room on the disk",
    "Disk quota exceeded": "make room, or raise the quota",
    "File too large": "raise the limit of file sizes",
    "Permission denied": "let the user of this process read and write there",
    "Read-only file system": "make the file system writable",
    "Input/output error": "check the disk",
    "Too many open files": "raise the limit of open files",
    "Cannot allocate memory": "free memory",
    "Java heap space": "give Spark more memory",
    "GC overhead limit exceeded": "give Spark more memory",
    "unable to create native thread": "raise the limit of threads",
    "Connection refused": "check that what Spark connects to is up",
}
"""What may be quoted of an error of the host, because it concerns no row, and what to do."""
_WORDING = (
    (re.compile(r"\.? \(?Did you mean (?:one of: )?([^?]+)\?\)?"), r", did you mean \1"),
    (re.compile("a valid integer range"), "a whole number"),
    (re.compile("requires an argument"), "needs a value behind it"),
    (re.compile("does not take a value"), "takes no value; leave out what stands behind ="),
)
"""How click says something, and how it is said here."""
_HOST = re.compile("|".join(_REMEDIES))
_OF_HOST = re.compile(r"(java\.(io|nio|net|lang)|org\.apache\.hadoop)\.")
"""How the class of an error begins whose text is the host's. That of others may quote a row."""
_LOST_ROWS = re.compile("CHECKPOINT_RDD_BLOCK_ID_NOT_FOUND")
"""Spark's condition where rows are gone with all executors that had them."""

_TASK_OUT_OF_MEMORY = re.compile("SparkOutOfMemoryError")
"""How Spark calls it that a task could not get the memory that it needs."""

_UNTRUSTED = re.compile("SunCertPathBuilderException")
"""How the JVM calls it that nobody whom it knows has signed a certificate."""


class Failure(click.ClickException):
    """Ends the command with a sentence and an exit code."""

    def __init__(self, sentence: str, exit_code: int) -> None:
        super().__init__(sentence)
        self.code = exit_code


def explain_error(error: Exception) -> Failure:
    """An error of Tidemark as it is; of any other its kind and the first line, shortened."""
    if isinstance(error, TidemarkError):
        return Failure(_one_line(str(error)), error.exit_code)
    if isinstance(error, WrongSettings):
        return Failure(f"{error.filename}: {error.strerror}", UsageError.exit_code)
    if isinstance(error, OSError) and str(error.filename).startswith((S3, HDFS)):
        again = "run again, which finishes what was begun"
        return Failure(f"{error.filename}: {error.strerror}; {again}", 1)
    host = _find_host_problem(error)
    if host is not None:
        place, text = host
        again = f"{_REMEDIES[text]}, then run again, which finishes what was begun"
        return Failure(f"{place}{text}; {again}", 1)
    if _says(error, _LOST_ROWS):
        lost = "all executors were lost that had some rows of this command"
        return Failure(f"{lost}; run it again, which finishes what was begun", 1)
    if _says(error, _TASK_OUT_OF_MEMORY):
        small = "a task of Spark needed more memory than it could get"
        where = "of the cluster, or spark.driver.memory where Spark runs here"
        larger = f"raise spark.executor.memory {where}"
        return Failure(f"{small}; {larger}, then run again, which finishes what was begun", 1)
    if _says(error, _UNTRUSTED):
        unknown = "Spark does not know the authority that signed the certificate of a server"
        trust = "name a trust store with it in JAVA_TOOL_OPTIONS (-Djavax.net.ssl.trustStore=FILE)"
        return Failure(f"{unknown}; {trust}, then run again, which finishes what was begun", 1)
    if _says(error, REFUSED_KEYS):
        refused = "the store refuses the credentials of Spark, which may have expired"
        return Failure(f"{refused}; renew them, then run again, which finishes what was begun", 1)
    return Failure(f"unexpected {_describe(error)}; run again with --debug for more", 1)


def describe_usage_error(error: click.ClickException) -> str:
    """The message of click as one sentence that shows what is meant, and names the help."""
    text = _one_line(error.format_message()).rstrip(".")
    for theirs, ours in _WORDING:
        text = theirs.sub(ours, text)
    if not isinstance(error, click.UsageError) or error.ctx is None:
        return text[:1].lower() + text[1:]
    where = f"{error.ctx.info_name}: " if error.ctx.parent else ""
    advice = _advise_usage(error, error.ctx)
    return f"{where}{text[:1].lower()}{text[1:]}{advice}; see `{error.ctx.command_path} --help`"


def _advise_usage(error: click.UsageError, context: click.Context) -> str:
    """What to type; nothing where the message of click says it."""
    if isinstance(error, click.NoSuchCommand):
        if "did you mean" in error.format_message().lower():
            return ""
        if error.command_name.endswith((".yaml", ".yml")):
            return f"; the command comes first, as in `tidemark run {error.command_name}`"
        return f"; there are {join_names(_list_commands(context))}"
    is_of_words = isinstance(error, (click.MissingParameter, click.NoSuchOption)) or (
        "unexpected extra argument" in error.format_message()
    )
    examples = EXAMPLES.get(context.info_name or "")
    return f"; write it as in `{examples[0]}`" if is_of_words and examples else ""


def _list_commands(context: click.Context) -> list[str]:
    """The commands of a group that its help shows."""
    group = context.command
    found = group.commands if isinstance(group, click.Group) else {}
    return [name for name, command in found.items() if not command.hidden]


def _says(error: Exception, words: re.Pattern[str]) -> bool:
    """Whether an error of the JVM has these words, as it is or as its first cause."""
    if not is_from_java(error):
        return False
    from windowing.storage.spark_internals import read_first_cause

    return any(map(words.search, (str(error), read_first_cause(error))))


def _find_host_problem(error: Exception) -> tuple[str, str] | None:
    """Where something failed, as far as that is known, and what of `_REMEDIES`; None for others."""
    if isinstance(error, OSError):
        text = error.strerror or ""
        # A stream of this process has no name, and nothing was begun that could be finished.
        return (f"{error.filename}: ", text) if error.filename and text in _REMEDIES else None
    if not is_from_java(error):
        return None
    from windowing.storage.spark_internals import read_first_cause

    cause = read_first_cause(error)
    found = _HOST.search(cause) if _OF_HOST.match(cause) else None
    return None if found is None else ("", found[0])


def _describe(error: Exception) -> str:
    """Class and first line of an error; of an error of the JVM only its class and condition.

    Messages of the JVM may contain values of rows.
    """
    name = type(error).__name__
    if not is_from_java(error):
        lines = str(error).strip().splitlines() or [""]
        return _shorten(f"{name}: {lines[0]}")
    condition = find_condition(str(error))
    if condition is not None:
        return f"{name}: [{condition}]"
    from windowing.storage.spark_internals import read_first_cause

    message = read_first_cause(error) or str(error)
    java_class = _CLASS.match(message)
    return java_class[1] if java_class else name


def is_from_java(error: Exception) -> bool:
    """Whether the JVM has raised the error, or the bridge to it."""
    from_library = type(error).__module__.startswith(("pyspark", "py4j"))
    return from_library or hasattr(error, "java_exception")


def _shorten(text: str) -> str:
    line = _one_line(text).rstrip(":. ")
    return line if len(line) <= _MAX_LENGTH else f"{line[:_MAX_LENGTH]}..."


def _one_line(text: str) -> str:
    return cell(" ".join(text.split()))
