"""The next version of a table, as this process commits it by a file of the log.

It follows the version that was opened, and nothing else.
"""

from collections.abc import Mapping, Sequence

from deltalake import DeltaTable

from windowing.location import Location
from windowing.storage.commit_file import Action, commit, superseded
from windowing.storage.kept_open import find_next_version, note_version
from windowing.storage.permission import check_permission
from windowing.storage.table_properties import WITH_STATISTICS


def check_next(path: Location, version: int) -> None:
    """Raises Busy where a commit of `version` would not follow from what this command has made.

    So it does where the command knows that its lock was taken over.
    """
    check_permission()
    if find_next_version(path) not in (None, version):
        raise superseded(path)


def commit_next(
    path: Location, table: DeltaTable, operation: str, actions: Sequence[Action]
) -> None:
    """Makes the version after that of `table`, which does not learn of it; Busy where it is made.

    The version is one that this command has made.
    """
    number = table.version() + 1
    check_next(path, number)
    commit(path, number, operation, actions)
    note_version(path, number)


def list_pruned(table: DeltaTable) -> list[str]:
    """The columns whose statistics readers look for in the log."""
    names = [field.name for field in table.schema().fields]
    return choose_pruned(table.metadata().configuration, names)


def choose_pruned(settings: Mapping[str, str], names: Sequence[str]) -> list[str]:
    """The same of a table with these properties and columns."""
    allowed = settings.get(WITH_STATISTICS)
    return [*names] if allowed is None else [*allowed.split(",")]
