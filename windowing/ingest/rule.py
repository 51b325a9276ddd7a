"""Which files are new, which have changed since they were taken, and what to do after a crash.

An ingest takes files in batches. Each batch has two numbers among the transactions of the source
table: an even one for the commit of its rows, and an odd one for a fence, after which its rows
can't be committed any more.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from itertools import groupby

HOME = "_ingest"
"""The directory of what an ingest keeps, in that of its source table."""
FILES, QUARANTINE = "files", "quarantine"
"""The tables in it."""
APPLICATION = "tidemark:ingest"
"""The name of an ingest among the transactions of a source table."""
MOST_BYTES = 1_000_000_000
MOST_FILES = 1_000
"""How much a batch takes at most, unless one file alone is larger."""
_MOST_NAMED = 3

_ENDINGS: Mapping[str, tuple[str, ...]] = {
    "csv": (".csv", ".tsv", ".txt"),
    "json": (".json", ".jsonl", ".ndjson", ".geojson"),
    "parquet": (".parquet",),
}
"""By format how the names of files end; all but Parquet files may be compressed by gzip."""
GZIP = ".gz"


@dataclass(frozen=True)
class LandedFile:
    """A file by its path in the folder, how large it is, and when it was written (us, UTC)."""

    name: str
    bytes: int
    modified_us: int


@dataclass(frozen=True)
class Landing:
    """What lies in a folder: files to take in their order, and all others by what is with them."""

    new: tuple[LandedFile, ...] = ()
    changed: tuple[LandedFile, ...] = ()
    others: tuple[str, ...] = ()


def compare_files(
    listed: Iterable[LandedFile], taken: Mapping[str, LandedFile], form: str
) -> Landing:
    """The files of a folder, compared with those that were taken as they were then.

    Files are taken in the order in which they were written. Files in hidden directories, those
    whose names begin with `.` or `_`, and those without bytes are not there yet. `others` are not
    of the format `form`.
    """
    new, changed, others = [], [], []
    for file in sorted(listed, key=lambda file: (file.modified_us, file.name)):
        if is_hidden(file.name):
            continue
        if not has_format(file.name, form):
            others.append(file.name)
        elif file.name not in taken:
            # HDFS shows no byte of a file that is still being written.
            if file.bytes > 0:
                new.append(file)
        elif file != taken[file.name]:
            changed.append(file)
    return Landing(tuple(new), tuple(changed), tuple(others))


def is_hidden(name: str) -> bool:
    """Whether a file, by its path in the folder, is being written or is none of ours.

    >>> is_hidden(".day.csv.tmp"), is_hidden("_old/day.csv"), is_hidden("2026/day.csv")
    (True, True, False)
    """
    return any(part.startswith((".", "_")) for part in name.split("/"))


def has_format(name: str, form: str) -> bool:
    """Whether a file has a name that files of the format have.

    >>> has_format("day.CSV", "csv"), has_format("day.csv.gz", "csv"), has_format("day.zip", "csv")
    (True, True, False)
    """
    plain = name.removesuffix(GZIP) if form != "parquet" else name
    return plain.lower().endswith(_ENDINGS[form])


def list_endings(form: str) -> tuple[str, ...]:
    """How the names of files of a format end."""
    return _ENDINGS[form]


def cut_batches(
    files: Sequence[LandedFile], most_bytes: int = MOST_BYTES, most_files: int = MOST_FILES
) -> list[tuple[LandedFile, ...]]:
    """The files in their order, in batches of at most so many bytes and files.

    A file that is larger than a batch is one by itself.
    """
    batches: list[list[LandedFile]] = []
    size = 0
    for file in files:
        if not batches or size + file.bytes > most_bytes or len(batches[-1]) == most_files:
            batches.append([])
            size = 0
        batches[-1].append(file)
        size += file.bytes
    return [tuple(batch) for batch in batches]


class Standing(Enum):
    """How the record of files and the transactions of the source table fit together."""

    WHOLE = "every batch of the record is in the table"
    OPEN = "the last batch of the record was begun, and its rows are not in the table"
    FENCED = "the last batch of the record was begun, and can't be committed any more"
    RECORD_BEHIND = "the table has batches that the record has not"
    TABLE_BEHIND = "the record has batches that the table has not"


def rows_number(batch: int) -> int:
    """The number under which the rows of a batch are committed."""
    return 2 * batch


def fence_number(batch: int) -> int:
    """The number of the commit after which the rows of a batch can't be committed."""
    return 2 * batch + 1


def judge_standing(recorded: int, committed: int, *, is_void: bool) -> Standing:
    """What is to be done first, from the last batch recorded and the last number committed.

    Both are 0 where there is none. `is_void`: whether the record says of its last batch that it was
    fenced off. A record that was lost, or restored to an earlier state, would have files taken
    twice, so nothing else may pass for it.
    """
    batch, is_fence = divmod(committed, 2)
    if recorded > batch + 1:
        return Standing.TABLE_BEHIND
    if recorded == batch + 1:
        return Standing.OPEN
    if recorded < batch:
        return Standing.RECORD_BEHIND
    return Standing.FENCED if is_fence and not is_void else Standing.WHOLE


def describe_names(names: Sequence[str]) -> str:
    """Some names in one text, and how many more there are.

    >>> describe_names(["a.csv", "b.csv", "c.csv", "d.csv", "e.csv"])
    'a.csv, b.csv, c.csv and 2 more'
    """
    shown, more = ", ".join(names[:_MOST_NAMED]), len(names) - _MOST_NAMED
    return shown if more <= 0 else f"{shown} and {more:,} more"


@dataclass(frozen=True, order=True)
class Shape:
    """The names of a file's columns in their order, and their types where the file tells them."""

    names: tuple[str, ...] = ()
    types: str = ""


def group_by_shape(shapes: Mapping[str, Shape]) -> list[tuple[tuple[str, ...], tuple[str, ...]]]:
    """Files that have the same columns: their names, and the files."""
    ordered = sorted(shapes, key=lambda file: (shapes[file], file))
    groups = groupby(ordered, key=shapes.__getitem__)
    return [(shape.names, tuple(files)) for shape, files in groups]
