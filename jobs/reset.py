"""Resets a pipeline: deletes state, outputs, ledger and pointer; the source stays.

Which keys were erased is forgotten with the ledger.

lock -> one rename makes the directory invisible -> its files are deleted
"""

import os
import re
import shutil
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from jobs.locking import lock_file
from windowing.crash import crashpoint
from windowing.errors import UsageError
from windowing.ledger.erased import Erasures
from windowing.ledger.table import read_excerpt
from windowing.location import Location
from windowing.spec.pipeline import Pipeline
from windowing.spec.words import join_names
from windowing.storage.files import list_tables
from windowing.storage.store import find_free, store_of

_OWN = re.compile(
    r"_(lock|checkpoint(\..+)?|published\.(json|draft)|report\.html|docs|check)"
    r"|\._(published\.json|report\.html)\.draft"
)
"""What a pipeline's directory contains besides tables; earlier versions have made checkpoints."""


@dataclass(frozen=True)
class Holding:
    """What a pipeline's directory contains: tables, entries that no run makes, and bytes.

    So many `erased_keys` and `erased_values` are remembered there and nowhere else.
    """

    path: Path
    tables: tuple[str, ...]
    others: tuple[str, ...]
    size: int
    erased_keys: int = 0
    erased_values: int = 0

    def as_json(self) -> dict[str, object]:
        """The contents as plain JSON values."""
        return {
            "path": str(self.path),
            "tables": list(self.tables),
            "others": list(self.others),
            "bytes": self.size,
            "erased_keys": self.erased_keys,
            "erased_values": self.erased_values,
        }


def holding(pipeline: Pipeline) -> Holding:
    """What `reset` would delete: the tables, all other entries, and the bytes of all files.

    Raises UsageError where the directory is a symlink, where nothing in it was made by a run, or
    where it can't be read.
    """
    with lock_file.write_errors_explained(pipeline):
        return _find_holding(pipeline)


def _find_holding(pipeline: Pipeline) -> Holding:
    root = pipeline.root.local
    if root.is_symlink():
        raise UsageError(
            f"{root} is a link to {root.resolve()}; reset only deletes real directories: "
            "replace the symlink with the directory"
        )
    tables = set(list_tables(pipeline.root))
    entries = {entry.name for entry in root.glob("*") if not _OWN.fullmatch(entry.name)}
    others = entries - tables
    made_by_runs = any(name.startswith("_") for name in tables)
    if (tables or others) and not made_by_runs:
        found = join_names(sorted(tables | others)[:5])
        raise UsageError(
            f"no ledger or state of {pipeline.name} is in {root}, but {found}; "
            "reset deletes what runs have made, so it leaves this alone: "
            "delete it by hand if nobody needs it"
        )
    sizes = dict(store_of(pipeline.root).list_files(pipeline.root))
    # The lock is the command's own, and says who holds it.
    sizes.pop(lock_file.lock_path(pipeline).name, None)
    size = sum(sizes.values())
    erased = _read_erasures(pipeline)
    of_keys = len(erased.digests_of(None))
    return Holding(
        root,
        tuple(sorted(tables)),
        tuple(sorted(others)),
        size,
        of_keys,
        len(erased.found) - of_keys,
    )


def _read_erasures(pipeline: Pipeline) -> Erasures:
    """What the ledger keeps out; nothing where it can't be read.

    A damaged ledger is a reason for a reset, so it must not be one against it.
    """
    with suppress(Exception):
        return read_excerpt(pipeline).erasures
    return Erasures()


def reset(pipeline: Pipeline) -> Holding:
    """Deletes the pipeline's directory, so that the next run starts over; returns what was deleted.

    If it is killed, either nothing was deleted or the directory was already renamed; the next reset
    then deletes the rest. Raises Busy while another writer has the lock, and UsageError as
    `holding` does and for what can't be deleted.
    """
    with lock_file.write_errors_explained(pipeline):
        return _reset_directory(pipeline)


def _reset_directory(pipeline: Pipeline) -> Holding:
    root = pipeline.root.local
    _delete_renamed(root)
    if not root.is_dir():
        return holding(pipeline)
    # What can't be reset is refused before the lock is taken, and read again under the lock.
    holding(pipeline)
    with lock_file.held_here(pipeline):
        found = holding(pipeline)
        free = find_free(Location(str(root.parent)), f".{root.name}.reset-")
        os.replace(root, free.local)
        crashpoint("reset.taken")
    _delete_renamed(root)
    return found


def _delete_renamed(root: Path) -> None:
    """Deletes the directories that this reset, or one that was killed, has renamed."""
    for renamed in root.parent.glob(f".{root.name}.reset-*"):
        if renamed.is_symlink():
            renamed.unlink()
        else:
            shutil.rmtree(renamed)
