"""Files that are written for a table, by Spark or here, until a commit names them."""

import shutil
from uuid import uuid4

from pyspark.sql import DataFrame

from windowing.location import Location
from windowing.storage.commit_file import CHANGES
from windowing.storage.log_lines import LOG
from windowing.storage.store import store_of

_STAGED = "staged-"
"""How the name of a directory begins in which Spark writes. It has no file of a table."""


def write_files(rows: DataFrame, path: Location) -> list[Location]:
    """Writes `rows` as Parquet files into the directory of a table on a local disk, and lists them.

    No commit names them, so they are no part of the table yet. If writing fails, none is left; if
    the process is killed meanwhile, `drop_staged` deletes what is left.
    """
    home = path.local.absolute()
    staged = home / f"{_STAGED}{uuid4().hex}"
    try:
        # The scheme counts where a session has another default file system.
        rows.write.parquet(f"file:{staged}")
        written = sorted(staged.glob("*.parquet"))
        for file in written:
            file.rename(home / file.name)
        return [path / file.name for file in written]
    finally:
        shutil.rmtree(staged, ignore_errors=True)


def drop_staged(path: Location) -> None:
    """Deletes what a killed process was writing; no process may write to the table meanwhile.

    VACUUM would not: it passes over hidden files, and Spark writes in a hidden directory.
    """
    store = store_of(path)
    for directory in (path, path / CHANGES, path / LOG):
        store.drop_drafts(directory)
    for name in [*store.list_names(path)]:
        if name.startswith(_STAGED):
            store.delete(path / name)
