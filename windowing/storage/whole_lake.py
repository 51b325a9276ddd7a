"""A pipeline's directory as a whole, and how it goes: by one rename, or file by file.

One that was renamed is deleted afterwards, by whoever finds it. Storage other than a local disk
can't rename a directory.
"""

import os
import shutil

from windowing.location import Location
from windowing.storage.permission import check_permission
from windowing.storage.store import find_free, shared_store_of


def find_link(root: Location) -> str | None:
    """Where the directory leads to, if it is a link; None where it is none."""
    if not root.is_local or not root.local.is_symlink():
        return None
    return str(root.local.resolve())


def take_away(root: Location, kept: str, last: str, replaced: str) -> None:
    """Makes the lake gone for whoever comes next; what is `kept` stays where it can't be renamed.

    The entry `last` is deleted after all others then. `replaced` is a file that is written in place
    of itself, of which listings may not tell.
    """
    store = shared_store_of(root)
    if store is None:
        os.replace(root.local, find_free(root.parent, _prefix_of(root)).local)
        return
    names = {replaced, *store.list_names(root)} - {kept, last}
    for name in [*sorted(names), last]:
        # Another command may have taken the lock over while this one slept.
        check_permission()
        store.delete_file(root / name)
        store.delete(root / name)


def delete_taken(root: Location) -> None:
    """Deletes the directories that this reset, or one that was killed, has renamed."""
    if shared_store_of(root) is not None:
        return
    for renamed in root.local.parent.glob(f"{_prefix_of(root)}*"):
        if renamed.is_symlink():
            renamed.unlink()
        else:
            shutil.rmtree(renamed)


def _prefix_of(root: Location) -> str:
    return f".{root.name}.reset-"
