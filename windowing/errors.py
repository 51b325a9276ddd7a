"""The errors that Tidemark raises on purpose; the exit code belongs to the class.

A message is one sentence: where, what was given, what is allowed, what to do.
"""


class TidemarkError(Exception):
    """Root of the errors that Tidemark raises; the command line exits with `exit_code`."""

    exit_code = 1


class SpecError(TidemarkError):
    """Raised when a spec or an argument is invalid; carries the file and the field."""

    exit_code = 2

    def __init__(self, field: str, message: str, file: str | None = None) -> None:
        self.field, self.message, self.file = field, message, file
        super().__init__(": ".join(part for part in (file, field, message) if part))


class SourceMissing(TidemarkError):
    """Raised when the source table does not exist."""

    exit_code = 2


class UsageError(TidemarkError):
    """Raised when a command can't do what its arguments ask for.

    Examples are an empty range, or a window that the pipeline has not.
    """

    exit_code = 2


class ExpectationsFailed(TidemarkError):
    """Raised when an output breaks a critical expectation; nothing was published."""

    exit_code = 3


class StateRefused(TidemarkError):
    """Raised when source, ledger, tables and pointer are inconsistent.

    It carries the name of the finding. Nothing was written.
    """

    exit_code = 4

    def __init__(self, code: str, message: str) -> None:
        self.code, self.message = code, message
        super().__init__(f"{code}: {message}")


class CommitUnknown(TidemarkError):
    """Raised when nobody knows whether a commit was made, because the store did not answer.

    It may still be made later.
    """


class Busy(TidemarkError):
    """Raised when another writer holds the lock of the pipeline."""

    exit_code = 75
