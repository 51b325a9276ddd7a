"""The stream's checkpoint as files: what they contain, and how they are rebuilt from the ledger."""

import struct
import zlib
from collections.abc import Collection, Iterator, Mapping
from json import dumps, loads
from uuid import uuid4

from windowing.crash import crashpoint
from windowing.doctor.rule import Stream, readable
from windowing.ledger.rule import LedgerHistory
from windowing.location import Location
from windowing.source.rule import ends_with_rewrite
from windowing.spec.pipeline import Pipeline
from windowing.storage.store import find_free, store_of

CHECKPOINT = "_checkpoint"
_NEWEST = 3
"""How many batches back files are checked; Spark itself reads two."""
_METADATA = "metadata"
_COMMIT = 'v1\n{"nextBatchWatermarkMs":0}'
_MAGIC = b"crc\x00"
"""The first bytes of a file of checksums, as Hadoop's local file system writes it."""
_CHUNK_BYTES = 512
"""The bytes of data that each checksum covers."""
_LINES = {_METADATA: 1, "offsets": 3, "commits": 2}
"""The least number of lines of each kind of file."""


def read_stream(pipeline: Pipeline) -> Stream:
    """What the checkpoint contains; a damaged file is listed instead of read."""
    home = pipeline.table(CHECKPOINT)
    names = store_of(home).list_files(home)
    if not names:
        return Stream(there=False)
    offsets = _list_batches(names, "offsets")
    commits = _list_batches(names, "commits")
    newest = (_METADATA, *_select_newest(offsets), *_select_newest(commits))
    read = {name: _read_intact(home, name) for name in newest if name in names}
    damaged = [*_list_missing(names), *(name for name, text in read.items() if text is None)]
    texts = {}
    for batch, name in offsets.items():
        text = read.get(name)
        if text is not None:
            texts[batch] = text
    query_id = None if damaged else _parse_query_id(read.get(_METADATA))
    return Stream(query_id, texts, frozenset(commits), tuple(damaged))


def query(pipeline: Pipeline) -> str | None:
    """The id that Spark gave the stream; None where it can't be read."""
    return _parse_query_id(_read_intact(pipeline.table(CHECKPOINT), _METADATA))


def offsets(pipeline: Pipeline, batch: int) -> str | None:
    """The offsets of a batch as the checkpoint has them; None where it has none."""
    file = pipeline.table(CHECKPOINT) / f"offsets/{batch}"
    content = store_of(file).read(file)
    return None if content is None else content.decode()


def begin_batch(pipeline: Pipeline, batch: int, text: str) -> None:
    """Writes the offsets of a batch, as Spark does before the batch; it is not committed."""
    home = pipeline.table(CHECKPOINT)
    # A file without checksums is read, and checksums without their file are damage.
    for file, content in reversed([*_add_checksums(f"offsets/{batch}", text.encode())]):
        store_of(home).write(home / file, content)


def rebuild_checkpoint(pipeline: Pipeline, past: LedgerHistory) -> Location | None:
    """Rebuilds the checkpoint so that the stream continues where the ledger ends.

    The old checkpoint is renamed and kept beside the new one; its new place is returned, None where
    there was none.
    """
    home, draft = pipeline.table(CHECKPOINT), pipeline.table(f"{CHECKPOINT}.draft")
    store = store_of(home)
    store.delete(draft)
    for name, text in _compose_files(past).items():
        for file, content in _add_checksums(name, text.encode()):
            store.write(draft / file, content)
    crashpoint("recover.drafted")
    kept = None
    if store.list_files(home):
        kept = find_free(pipeline.root, f"{CHECKPOINT}.old-")
        store.move(home, kept)
    crashpoint("recover.moved")
    store.move(draft, home)
    return kept


def _compose_files(past: LedgerHistory) -> Mapping[str, str]:
    """Every file of a checkpoint whose newest batches are those of the ledger: path -> text."""
    last = past.last_batch
    files = {_METADATA: dumps({"id": past.query or str(uuid4())})}
    for batch in (last - 1, last, past.open_batch):
        if batch is None or batch < 0:
            continue
        text = past.offsets(batch)
        if text is not None:
            files[f"offsets/{batch}"] = text
    if last >= 0:
        files[f"commits/{last}"] = _COMMIT
    if ends_with_rewrite(past):
        # The stream can only go on behind an empty batch.
        files[f"offsets/{last + 1}"] = past.offsets(last) or ""
    return files


def _add_checksums(name: str, data: bytes) -> Iterator[tuple[str, bytes]]:
    """A file and, before it, the one with its checksums: path, content."""
    header = _MAGIC + struct.pack(">i", _CHUNK_BYTES)
    yield _path_of_checksums(name), header + _compute_checksums(data, _CHUNK_BYTES)
    yield name, data


def _list_batches(names: Collection[str], folder: str) -> dict[int, str]:
    """The files of a folder of the checkpoint, by batch."""
    found = {}
    for name in names:
        parent, _, batch = name.rpartition("/")
        if parent == folder and batch.isdigit():
            found[int(batch)] = name
    return found


def _list_missing(names: Collection[str]) -> list[str]:
    """Files that are missing although their checksums exist; Spark would not write them again."""
    missing = []
    for checksums in names:
        folder, _, last = checksums.rpartition("/")
        name = last.removeprefix(".").removesuffix(".crc")
        described = f"{folder}/{name}"
        is_of_batch = folder in ("offsets", "commits") and name.isdigit()
        if is_of_batch and last == f".{name}.crc" and described not in names:
            missing.append(described)
    return missing


def _select_newest(files: Mapping[int, str]) -> list[str]:
    return [files[batch] for batch in sorted(files)[-_NEWEST:]]


def _parse_query_id(metadata: str | None) -> str | None:
    return None if metadata is None else str(loads(metadata)["id"])


def _read_intact(home: Location, name: str) -> str | None:
    """The text of a file; None where it can't be read, or doesn't match its checksums."""
    kind = name.partition("/")[0]
    store = store_of(home)
    try:
        data = store.read(home / name)
        checksums = store.read(home / _path_of_checksums(name))
        if data is None or not _matches_checksums(checksums, data):
            return None
        text = data.decode()
    except (OSError, UnicodeDecodeError):
        return None
    return text if readable(text, _LINES[kind]) else None


def _matches_checksums(content: bytes | None, data: bytes) -> bool:
    """Whether the checksums in `content` are those of `data`; true where there are none."""
    if content is None:
        return True
    magic, size_bytes, checksums = content[:4], content[4:8], content[8:]
    if magic != _MAGIC or len(size_bytes) < 4:
        return False
    (size,) = struct.unpack(">i", size_bytes)
    return size > 0 and checksums == _compute_checksums(data, size)


def _path_of_checksums(name: str) -> str:
    folder, slash, last = name.rpartition("/")
    return f"{folder}{slash}.{last}.crc"


def _compute_checksums(data: bytes, size: int) -> bytes:
    """One CRC-32, big-endian, for every `size` bytes of data."""
    chunks = [data[start : start + size] for start in range(0, len(data), size)]
    return b"".join(struct.pack(">I", zlib.crc32(chunk)) for chunk in chunks)
