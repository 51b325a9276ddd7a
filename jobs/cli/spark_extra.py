"""The packages of the extra `spark`, and the error of whoever needs them."""

from importlib.util import find_spec

from windowing.errors import UsageError
from windowing.spec.words import join_names

MODULES = (
    "pyspark",
    "delta",
    "deltalake",
    "great_expectations",
    "hdfs_native",
    "jinja2",
    "markupsafe",
    "numpy",
    "obstore",
    "pandas",
    "py4j",
    "pyarrow",
    "tenacity",
)
"""The names by which the packages of the extra are imported."""


def require_spark_extra() -> None:
    """Raises UsageError with the command that installs the extra, unless all of it is installed.

    Only the places of files are read, because importing Spark would cost every command half a
    second.
    """
    missing = [name for name in MODULES if find_spec(name) is None]
    if missing:
        raise UsageError(
            f"this needs Spark, and this Python has no {join_names(missing)}; "
            "run `pip install 'WHEEL[spark]'` with the path of Tidemark's wheel"
        )
