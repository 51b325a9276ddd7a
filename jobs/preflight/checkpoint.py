"""The stream's checkpoint as files: what they contain, and how they are rebuilt from the ledger."""

import os
import shutil
import struct
import zlib
from collections.abc import Mapping
from json import dumps, loads
from pathlib import Path
from uuid import uuid4

from windowing.crash import crashpoint
from windowing.doctor.rule import Stream, readable
from windowing.files import free_path_beside, local_path
from windowing.ledger.rule import LedgerHistory
from windowing.spec.pipeline import Pipeline

CHECKPOINT = "_checkpoint"
_NEWEST = 3
"""How many batches back files are checked; Spark itself reads two."""
_COMMIT = 'v1\n{"nextBatchWatermarkMs":0}'
_MAGIC = b"crc\x00"
"""The first bytes of a file of checksums, as Hadoop's local file system writes it."""
_CHUNK_BYTES = 512
"""The bytes of data that each checksum covers."""
_LINES = {"metadata": 1, "offsets": 3, "commits": 2}
"""The least number of lines of each kind of file."""


def directory_of(pipeline: Pipeline) -> Path:
    """The directory of the checkpoint."""
    return local_path(pipeline.table(CHECKPOINT))


def read_stream(pipeline: Pipeline) -> Stream:
    """What the checkpoint contains; a damaged file is listed instead of read."""
    home = directory_of(pipeline)
    if not home.is_dir():
        return Stream(there=False)
    offsets = _list_batches(home / "offsets")
    commits = _list_batches(home / "commits")
    newest = (home / "metadata", *_select_newest(offsets), *_select_newest(commits))
    existing = [file for file in newest if file.exists()]
    damaged = []
    for file in (*_list_missing(home), *existing):
        if not _is_intact(file):
            damaged.append(file.relative_to(home).as_posix())
    texts = {}
    for batch, file in offsets.items():
        if file in existing:
            texts[batch] = file.read_text(errors="replace")
    query_id = None if damaged else _read_query_id(home)
    return Stream(query_id, texts, frozenset(commits), tuple(damaged))


def query(pipeline: Pipeline) -> str | None:
    """The id that Spark gave the stream; None where it can't be read."""
    return _read_query_id(directory_of(pipeline))


def offsets(pipeline: Pipeline, batch: int) -> str | None:
    """The offsets of a batch as the checkpoint has them; None where it has none."""
    file = directory_of(pipeline) / "offsets" / str(batch)
    if not file.exists():
        return None
    return file.read_text()


def rebuild_checkpoint(pipeline: Pipeline, past: LedgerHistory) -> Path | None:
    """Rebuilds the checkpoint so that the stream continues where the ledger ends.

    The old checkpoint is renamed and kept beside the new one; its new path is returned, None where
    there was none.
    """
    home = directory_of(pipeline)
    draft = home.with_name(f"{CHECKPOINT}.draft")
    shutil.rmtree(draft, ignore_errors=True)
    for name, text in _compose_files(past).items():
        _write_with_checksums(draft / name, text)
    crashpoint("recover.drafted")
    kept = _move_aside(home)
    crashpoint("recover.moved")
    os.replace(draft, home)
    return kept


def _compose_files(past: LedgerHistory) -> Mapping[str, str]:
    """Every file of a checkpoint whose newest batches are those of the ledger: path -> text."""
    last = past.last_batch
    files = {
        "metadata": dumps({"id": past.query or str(uuid4())}),
    }
    for batch in (last - 1, last, past.open_batch):
        if batch is None or batch < 0:
            continue
        text = past.offsets(batch)
        if text is not None:
            files[f"offsets/{batch}"] = text
    if last >= 0:
        files[f"commits/{last}"] = _COMMIT
    return files


def _write_with_checksums(file: Path, text: str) -> None:
    """Writes and syncs the file, with its checksums in a file beside it."""
    file.parent.mkdir(parents=True, exist_ok=True)
    data = text.encode()
    header = _MAGIC + struct.pack(">i", _CHUNK_BYTES)
    _path_of_checksums(file).write_bytes(header + _compute_checksums(data, _CHUNK_BYTES))
    with file.open("wb") as out:
        out.write(data)
        out.flush()
        os.fsync(out.fileno())


def _move_aside(home: Path) -> Path | None:
    if not home.exists():
        return None
    kept = free_path_beside(home, f"{CHECKPOINT}.old-{{n}}")
    os.replace(home, kept)
    return kept


def _list_batches(folder: Path) -> dict[int, Path]:
    """The files of a folder of the checkpoint, by batch."""
    if not folder.is_dir():
        return {}
    return {int(file.name): file for file in folder.iterdir() if file.name.isdigit()}


def _list_missing(home: Path) -> list[Path]:
    """Files that are missing although their checksums exist; Spark would not write them again."""
    missing = []
    for folder in ("offsets", "commits"):
        for checksums in (home / folder).glob(".*.crc"):
            name = checksums.name[1:-4]
            if name.isdigit() and not checksums.with_name(name).exists():
                missing.append(checksums.with_name(name))
    return missing


def _select_newest(files: Mapping[int, Path]) -> list[Path]:
    return [files[batch] for batch in sorted(files)[-_NEWEST:]]


def _read_query_id(home: Path) -> str | None:
    file = home / "metadata"
    if not file.exists() or not _is_intact(file):
        return None
    return str(loads(file.read_text())["id"])


def _is_intact(file: Path) -> bool:
    """Whether a file can be read, is complete and matches its checksums."""
    kind = file.name if file.name in _LINES else file.parent.name
    try:
        data = file.read_bytes()
        return _matches_checksums(file, data) and readable(data.decode(), _LINES[kind])
    except (OSError, UnicodeDecodeError):
        return False


def _matches_checksums(file: Path, data: bytes) -> bool:
    """Whether the checksums beside the file are those of `data`; true where it has none."""
    checksum_file = _path_of_checksums(file)
    if not checksum_file.exists():
        return True
    content = checksum_file.read_bytes()
    magic, size_bytes, checksums = content[:4], content[4:8], content[8:]
    if magic != _MAGIC or len(size_bytes) < 4:
        return False
    (size,) = struct.unpack(">i", size_bytes)
    return size > 0 and checksums == _compute_checksums(data, size)


def _path_of_checksums(file: Path) -> Path:
    return file.with_name(f".{file.name}.crc")


def _compute_checksums(data: bytes, size: int) -> bytes:
    """One CRC-32, big-endian, for every `size` bytes of data."""
    chunks = [data[start : start + size] for start in range(0, len(data), size)]
    return b"".join(struct.pack(">I", zlib.crc32(chunk)) for chunk in chunks)
