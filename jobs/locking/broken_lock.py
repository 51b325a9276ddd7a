"""The end of a lock before its time."""

from collections.abc import Sequence

from jobs.locking.lease_note import LeaseNote, State
from jobs.locking.lease_object import find_lease
from jobs.locking.lease_waiting import break_lease
from jobs.locking.lock_file import find_lock, write_errors_explained
from windowing.errors import UsageError
from windowing.spec.pipeline import Pipeline


def find_lock_to_break(
    pipeline: Pipeline, keepers: Sequence[Pipeline]
) -> tuple[Pipeline, LeaseNote] | None:
    """Whose lock somebody holds, with its holder: the pipeline's, or else that of a keeper.

    None where nobody holds one. UsageError where the lock is one of the system, which can't be
    broken and need not be.
    """
    leased = [each for each in (pipeline, *keepers) if find_lease(each) is not None]
    if not leased:
        raise UsageError(
            f"{pipeline.name}: the lock of {pipeline.root} is one of this machine's system, and is "
            "free as soon as its process has ended; end that process instead"
        )
    for each in leased:
        found = find_lock(each)
        if found is not None and found.state is State.HELD:
            return each, found
    return None


def break_lock(pipeline: Pipeline, held: LeaseNote) -> bool:
    """Takes the lock from its holder; the next command fences all tables, then goes on.

    So its holder can commit nothing more from then on. Whether it did: not where that one has given
    it back meanwhile, or another one has it.
    """
    lease = find_lease(pipeline)
    if lease is None:
        return False
    with write_errors_explained(pipeline):
        found = lease.read()
        if found.note is None or (found.note.state, found.note.epoch) != (State.HELD, held.epoch):
            return False
        break_lease(lease, found, found.note)
        return True
