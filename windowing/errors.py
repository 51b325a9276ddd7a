"""What can go wrong, one leaf per exit code. A message is one sentence: where, what was given, what is allowed, what to do."""


class TidemarkError(Exception):
    """Root of everything Tidemark raises on purpose; `exit_code` is what the command line returns."""

    exit_code = 1


class SpecError(TidemarkError):
    """Raised when a spec or an argument can't mean anything; carries the file and the field."""

    exit_code = 2

    def __init__(self, field: str, message: str, file: str | None = None) -> None:
        self.field, self.message, self.file = field, message, file
        super().__init__(": ".join(part for part in (file, field, message) if part))


class SourceMissing(TidemarkError):
    """Raised when the source table isn't there."""

    exit_code = 2


class UsageError(TidemarkError):
    """Raised when a command can't be carried out as asked (a range that is empty, a window the pipeline lacks)."""

    exit_code = 2


class ExpectationsFailed(TidemarkError):
    """Raised when an output breaks a critical expectation; nothing was published."""

    exit_code = 3


class StateRefused(TidemarkError):
    """Raised when source, checkpoint, ledger and tables don't tell one story; carries the name of what doesn't fit. Nothing was written."""

    exit_code = 4

    def __init__(self, code: str, message: str) -> None:
        self.code, self.message = code, message
        super().__init__(f"{code}: {message}")


class Busy(TidemarkError):
    """Raised when another writer holds the pipeline."""

    exit_code = 75
