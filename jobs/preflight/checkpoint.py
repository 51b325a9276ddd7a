"""The stream's checkpoint as files: what lies there, and how it is made anew from the ledger."""

import os
import shutil
import struct
import zlib
from collections.abc import Mapping
from json import dumps, loads
from pathlib import Path
from uuid import uuid4

from windowing.crash import crashpoint
from windowing.delta import aside, local_path
from windowing.doctor.rule import Stream, readable
from windowing.ledger.rule import Story
from windowing.spec.pipeline import Pipeline

CHECKPOINT = "_checkpoint"
_NEWEST = 3
"""How many batches back files are looked at; Spark itself reads two."""
_COMMIT = 'v1\n{"nextBatchWatermarkMs":0}'
_MAGIC, _PIECE = b"crc\x00", 512
"""How Hadoop begins a file of checksums, and the bytes that each of them is of."""
_LINES = {"metadata": 1, "offsets": 3, "commits": 2}


def directory(pipeline: Pipeline) -> Path:
    """Where the checkpoint lies."""
    return local_path(pipeline.table(CHECKPOINT))


def stream(pipeline: Pipeline) -> Stream:
    """What lies in the checkpoint."""
    home = directory(pipeline)
    if not home.is_dir():
        return Stream(there=False)
    offsets, commits = (_batches(home / name) for name in ("offsets", "commits"))
    looked_at = [f for f in (home / "metadata", *_last(offsets), *_last(commits)) if f.exists()]
    damaged = tuple(
        f.relative_to(home).as_posix() for f in (*_strays(home), *looked_at) if not _whole(f)
    )
    texts = {
        n: file.read_text(errors="replace") for n, file in offsets.items() if file in looked_at
    }
    return Stream(None if damaged else _query(home), texts, frozenset(commits), damaged)


def query(pipeline: Pipeline) -> str | None:
    """The id that Spark gave the stream; None where it can't be read."""
    return _query(directory(pipeline))


def offsets(pipeline: Pipeline, batch: int) -> str | None:
    """The offsets of a batch as the checkpoint has them."""
    file = directory(pipeline) / "offsets" / str(batch)
    return file.read_text() if file.exists() else None


def rebuild(pipeline: Pipeline, past: Story) -> Path | None:
    """Makes the checkpoint that stands where the ledger does; the old one, if there is any, is kept beside it, and its path returned."""
    home, draft = directory(pipeline), directory(pipeline).with_name(f"{CHECKPOINT}.draft")
    shutil.rmtree(draft, ignore_errors=True)
    for name, text in _files(past).items():
        _write(draft / name, text)
    crashpoint("recover.drafted")
    kept = _aside(home)
    crashpoint("recover.moved")
    os.replace(draft, home)
    return kept


def _files(past: Story) -> Mapping[str, str]:
    """Every file of a checkpoint whose newest batches are those of the ledger: path -> text."""
    last, began = past.last_batch, past.open_batch
    wanted = [n for n in (last - 1, last, began) if n is not None and n >= 0]
    cuts = {f"offsets/{n}": text for n in wanted if (text := past.offsets(n)) is not None}
    return {
        "metadata": dumps({"id": past.query or str(uuid4())}),
        **cuts,
        **({f"commits/{last}": _COMMIT} if last >= 0 else {}),
    }


def _write(file: Path, text: str) -> None:
    """The file, synced, and its checksums beside it."""
    file.parent.mkdir(parents=True, exist_ok=True)
    data = text.encode()
    _sums_of(file).write_bytes(_MAGIC + struct.pack(">i", _PIECE) + _sums(data, _PIECE))
    with file.open("wb") as out:
        out.write(data)
        out.flush()
        os.fsync(out.fileno())


def _aside(home: Path) -> Path | None:
    if not home.exists():
        return None
    kept = aside(home, f"{CHECKPOINT}.old-{{n}}")
    os.replace(home, kept)
    return kept


def _batches(folder: Path) -> dict[int, Path]:
    """The files of a folder of the checkpoint, by batch."""
    return {int(f.name): f for f in folder.iterdir() if f.name.isdigit()} if folder.is_dir() else {}


def _strays(home: Path) -> list[Path]:
    """Files that are gone although their checksums are not; Spark would not write them again."""
    sums = [
        f
        for name in ("offsets", "commits")
        for f in (home / name).glob(".*.crc")
        if f.name[1:-4].isdigit()
    ]
    return [file for f in sums if not (file := f.with_name(f.name[1:-4])).exists()]


def _last(files: Mapping[int, Path]) -> list[Path]:
    return [files[n] for n in sorted(files)[-_NEWEST:]]


def _query(home: Path) -> str | None:
    file = home / "metadata"
    return str(loads(file.read_text())["id"]) if file.exists() and _whole(file) else None


def _whole(file: Path) -> bool:
    """Whether a file can be read, is complete and is what its checksum says."""
    kind = file.name if file.name in _LINES else file.parent.name
    try:
        data = file.read_bytes()
        return _matches(file, data) and readable(data.decode(), _LINES[kind])
    except (OSError, UnicodeDecodeError):
        return False


def _matches(file: Path, data: bytes) -> bool:
    """Whether the file's checksums, as Hadoop keeps them beside it, are those of `data`; true where it has none."""
    beside = _sums_of(file)
    if not beside.exists():
        return True
    told = beside.read_bytes()
    if told[:4] != _MAGIC or len(told) < 8:
        return False
    (size,) = struct.unpack(">i", told[4:8])
    return size > 0 and told[8:] == _sums(data, size)


def _sums_of(file: Path) -> Path:
    return file.with_name(f".{file.name}.crc")


def _sums(data: bytes, size: int) -> bytes:
    return b"".join(
        struct.pack(">I", zlib.crc32(data[n : n + size])) for n in range(0, len(data), size)
    )
