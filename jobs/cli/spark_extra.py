"""The packages of the extra `spark`: a command that needs them says so when they aren't there."""

from importlib.util import find_spec

from windowing.errors import UsageError
from windowing.spec.words import listed

MODULES = (
    "pyspark",
    "delta",
    "great_expectations",
    "jinja2",
    "pandas",
    "pyarrow",
    "tenacity",
)
"""What the packages of the extra are imported as."""


def require_spark_extra() -> None:
    """UsageError with the command that installs the extra, unless all of it is installed.

    Asks for places of files only: importing Spark here would cost every command half a second.
    """
    missing = [name for name in MODULES if find_spec(name) is None]
    if missing:
        raise UsageError(
            f"this command needs Spark, and this Python has no {listed(missing)}; "
            "run `pip install 'tidemark[spark]'`"
        )
