"""The directory in which Spark keeps where a stream stands, in the files that Spark writes itself.

ends of batches -> files -> a directory of this machine -> the stream
"""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from json import dumps
from pathlib import Path
from tempfile import TemporaryDirectory
from uuid import uuid4

from pyspark import SparkFiles

_COMMITTED = 'v1\n{"nextBatchWatermarkMs":0}'


@dataclass(frozen=True)
class Checkpoint:
    """A directory of this machine in which Spark keeps where a stream stands."""

    home: Path

    @property
    def location(self) -> str:
        """The directory as Spark is told it, whatever its default file system is."""
        return f"file:{self.home}"

    def read_offsets(self, batch: int) -> str:
        """Where the source stands at the end of a batch that Spark has begun."""
        return (self.home / name_offsets(batch)).read_text()


def name_offsets(batch: int) -> str:
    """The file that says where the source stands at the end of a batch."""
    return f"offsets/{batch}"


def compose_files(ends: Mapping[int, str], committed: int | None) -> Mapping[str, str]:
    """The files of a checkpoint that knows where some batches end: path -> text.

    The batch `committed` is done; None where no batch is.
    """
    # A later Spark refuses a checkpoint without it. Nothing else has the stream's id.
    files = {"metadata": dumps({"id": str(uuid4())})}
    for batch, offsets in ends.items():
        files[name_offsets(batch)] = offsets
    if committed is not None:
        files[f"commits/{committed}"] = _COMMITTED
    return files


@contextmanager
def made_checkpoint(files: Mapping[str, str]) -> Iterator[Checkpoint]:
    """A directory with the files, which nobody else has and nothing needs afterwards."""
    # Spark deletes the directory above when it ends, so a killed process leaves nothing behind.
    with TemporaryDirectory(
        prefix="checkpoint-", dir=SparkFiles.getRootDirectory(), ignore_cleanup_errors=True
    ) as directory:
        home = Path(directory)
        for name, text in files.items():
            file = home / name
            file.parent.mkdir(exist_ok=True)
            file.write_text(text)
        yield Checkpoint(home)
