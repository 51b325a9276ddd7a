"""Resets a pipeline: deletes state, outputs, ledger and pointer; the source stays.

Which keys were erased is forgotten with the ledger.

on a local disk: lock -> one rename makes the directory invisible -> its files are deleted
on other storage: lock -> all tables but the ledger are deleted -> the ledger and what is left
"""

import re
from contextlib import suppress
from dataclasses import dataclass

from jobs.diagnosis.pointer import POINTER
from jobs.locking import lock_file
from jobs.locking.lease_object import FILE as LOCK
from windowing.crash import crashpoint
from windowing.errors import UsageError
from windowing.ledger.erased import Erasures
from windowing.ledger.table import LEDGER, read_excerpt
from windowing.location import Location
from windowing.merge.rule import published_name
from windowing.report.text import plain_fields
from windowing.spec.pipeline import Pipeline
from windowing.spec.reserved import PUBLISHED
from windowing.spec.words import join_names
from windowing.storage.files import has_directory, list_tables
from windowing.storage.store import store_of
from windowing.storage.whole_lake import delete_taken, find_link, take_away

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

    path: Location
    tables: tuple[str, ...]
    others: tuple[str, ...]
    size: int
    erased_keys: int = 0
    erased_values: int = 0

    def as_json(self) -> dict[str, object]:
        """The contents as plain JSON values."""
        return {**plain_fields(self, "size"), "bytes": self.size}


def holding(pipeline: Pipeline) -> Holding:
    """What `reset` would delete: the tables, all other entries, and the bytes of all files.

    Raises UsageError where the directory is a symlink, where nothing in it was made by a run, or
    where it can't be read.
    """
    with lock_file.write_errors_explained(pipeline):
        return _find_holding(pipeline)


def _find_holding(pipeline: Pipeline) -> Holding:
    root = pipeline.root
    _refuse_link(root)
    tables = set(list_tables(root))
    names = set(store_of(root).list_names(root))
    others = {name for name in names if not _OWN.fullmatch(name)} - tables - {PUBLISHED}
    made_by_runs = any(name.startswith("_") for name in tables)
    tables |= {published_name(name) for name in list_tables(root / PUBLISHED)}
    if (tables or others) and not made_by_runs:
        found = join_names(sorted(tables | others)[:5])
        raise UsageError(
            f"no ledger or state of {pipeline.name} is in {root}, but {found}; "
            "reset deletes what runs have made, so it leaves this alone: "
            "delete it by hand if nobody needs it"
        )
    sizes = dict(store_of(root).list_files(root))
    # The lock is the command's own, and says who holds it.
    sizes.pop(LOCK, None)
    size = sum(file.bytes for file in sizes.values())
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


def _refuse_link(root: Location) -> None:
    target = find_link(root)
    if target is not None:
        raise UsageError(
            f"{root} is a link to {target}; reset only deletes real directories: "
            "replace the symlink with the directory"
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

    If it is killed, the next reset deletes the rest. On a local disk nothing was deleted then, or
    the directory was already renamed. On other storage every run is refused until that reset,
    because the ledger names tables that are gone. Raises Busy while another writer has the lock,
    and UsageError as `holding` does and for what can't be deleted.
    """
    with lock_file.write_errors_explained(pipeline):
        return _reset_directory(pipeline)


def _reset_directory(pipeline: Pipeline) -> Holding:
    root = pipeline.root
    delete_taken(root)
    if not has_directory(root):
        return holding(pipeline)
    # What can't be reset is refused before the lock is taken, and read again under the lock.
    holding(pipeline)
    with lock_file.held_here(pipeline):
        found = holding(pipeline)
        # Whoever has the lock may begin anew only once all else is gone.
        take_away(root, kept=LOCK, last=LEDGER, replaced=POINTER)
        crashpoint("reset.taken")
    delete_taken(root)
    return found
