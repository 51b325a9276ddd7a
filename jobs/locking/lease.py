"""The lock of a pipeline whose lake is on a store without locks: a lease, held by a thread.

It is one object, which is created if it is absent and replaced only if it is unchanged. Its holder
renews it. Clocks of two machines are never compared, and what makes commits safe is no clock but
the fence (`windowing/storage/fence.py`): whoever takes over a lease that was not given back writes
it before anything is read.

found -> its holder has gone? broken -> taken -> fenced -> work, renewed -> given back
"""

import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from threading import Event, Lock, Thread

from jobs.locking.attempt import Attempt
from jobs.locking.earlier_try import end_holder
from jobs.locking.fencing import fence_pipeline
from jobs.locking.holder import Holder, find_this_holder
from jobs.locking.lease_note import LeaseNote, State, must_fence
from jobs.locking.lease_object import Found, LeaseObject
from jobs.locking.lease_waiting import await_end
from windowing.errors import Busy, CommitUnknown, TidemarkError, UsageError
from windowing.storage.conditional_put import check_conditional_put
from windowing.storage.permission import writing_while

_RENEWALS = 4
"""How often a lease is renewed within its time."""
_NO_ANSWER = (OSError, UsageError)
"""After these it is unknown what a store has done.

The second one comes where a tool is just writing the keys of a profile anew.
"""


def take_lease(lease: LeaseObject, jvms: Iterable[int] = ()) -> "HeldLease":
    """The lease, held by this process and its JVM; Busy when another writer holds it.

    Behind a holder who has not given it back, all tables to which that one may still commit are
    fenced.
    """
    holder = find_this_holder(jvms)
    found = await_end(lease, lease.read())
    if found.tag is None:
        check_conditional_put(lease.store, lease.pipeline.root)
    epoch = 0 if found.note is None else found.note.epoch
    began = _read_clock()
    taken = _take(lease, LeaseNote(epoch + 1, State.HELD, lease.seconds, holder), found)
    if taken is None:
        raise lease.busy(lease.read())
    held = HeldLease(lease, taken, began)
    if must_fence(found.note):
        try:
            fence_pipeline(lease.pipeline)
        except BaseException:
            held.give_back(State.BROKEN)
            raise
    return held


def _take(lease: LeaseObject, note: LeaseNote, found: Found) -> Found | None:
    """Writes the lease as one that is held, as `LeaseObject.write` does.

    Where that is unknown in the end, it is withdrawn for as long as this process lives.
    """
    try:
        return lease.write(note, found)
    except _NO_ANSWER:
        # Others see that this process lives, so they would not take the lease over.
        withdrawn = (lease, note, found)
        Thread(target=_keep_withdrawing, args=withdrawn, name="lease", daemon=True).start()
        raise


def _keep_withdrawing(lease: LeaseObject, note: LeaseNote, before: Found) -> None:
    while not _try_to_withdraw(lease, note, before):
        time.sleep(lease.seconds / _RENEWALS)


def _try_to_withdraw(lease: LeaseObject, note: LeaseNote, before: Found) -> bool:
    try:
        now = lease.read()
        if now.note == note or now.tag == before.tag:
            # A request that is still on its way is refused from now on.
            lease.write(note.ended(State.BROKEN), now)
    except _NO_ANSWER:
        return False
    return True


@contextmanager
def holding(held: "HeldLease") -> Iterator[None]:
    """Gives a lease back after the block; Busy for whatever fails in it where the lease was lost.

    Every commit of the block is made by its permission.
    """
    try:
        with writing_while(held.check):
            yield
    except BaseException as error:
        lost = held.give_back(State.FREE if is_over(error) else State.BROKEN)
        if lost is not None and isinstance(error, Exception):
            raise lost from error
        raise
    held.give_back(State.FREE)


def is_over(error: BaseException) -> bool:
    """Whether nothing that was asked for under a lock is still at work after an error.

    After one that is none of ours the JVM may be, and a put that nobody has answered may arrive.
    """
    return isinstance(error, TidemarkError) and not isinstance(error, CommitUnknown)


def probe_lease(lease: LeaseObject, attempt: Attempt | None) -> Holder | None:
    """Busy where a writer holds the lease; an earlier try of `attempt` is ended, and returned.

    A lease whose holder has gone is broken, so that the next one takes it at once.
    """
    found, ended = lease.read(), None
    if found.note is not None and attempt is not None:
        holder = found.note.holder
        ended = end_holder(holder) if attempt.follows(holder.attempt) else None
    await_end(lease, found if ended is None else lease.read())
    return ended


class HeldLease:
    """A lease that this process holds, and that a thread renews until it is given back."""

    def __init__(self, lease: LeaseObject, taken: Found, began: float) -> None:
        self._lease, self._found, self._renewed_at = lease, taken, began
        self._lost: Busy | None = None
        self._when_lost: Callable[[], None] = lambda: None
        self._trouble = "this process was stopped"
        self._turn, self._over = Lock(), Event()
        self._thread = Thread(target=self._keep_renewing, name="lease", daemon=True)
        self._thread.start()

    @property
    def epoch(self) -> int:
        """The number of the lease."""
        return self._note.epoch

    def call_when_lost(self, does: Callable[[], None]) -> None:
        """Calls it as soon as a renewal finds that another one has taken the lease over.

        A commit that was allowed before may take long, and is not asked for again.
        """
        self._when_lost = does
        if self._lost is not None:
            does()

    def check(self) -> None:
        """Busy where another one has taken the lease over, or may have."""
        if self._lost is None and self._is_due(self._lease.seconds):
            # As after a sleep of the machine.
            self._renew()
        if self._lost is not None:
            raise self._lost
        if self._is_due(self._lease.seconds):
            seconds = _read_clock() - self._renewed_at
            raise self._explain_loss(f"it could not renew it for {seconds:.0f} s: {self._trouble}")

    def give_back(self, state: State) -> Busy | None:
        """Ends the lease; the error of a lease that was lost before, None where it was not.

        Where the store does not answer, it is tried again for as long as this process lives.
        """
        self._over.set()
        self._thread.join()
        if self._lost is None and not self._try_to_end(state):
            Thread(target=self._keep_ending, args=[state], name="lease", daemon=True).start()
        return self._lost

    def _keep_ending(self, state: State) -> None:
        # Others see that this process lives, so without this they would not take the lease over.
        while not self._try_to_end(state):
            time.sleep(self._lease.seconds / _RENEWALS)

    def _try_to_end(self, state: State) -> bool:
        try:
            self._write(state)
        except _NO_ANSWER:
            return False
        return True

    @property
    def _note(self) -> LeaseNote:
        if self._found.note is None:
            raise ValueError("a lease that is held has a note")
        return self._found.note

    def _keep_renewing(self) -> None:
        while self._lost is None and not self._over.wait(self._lease.seconds / _RENEWALS):
            self._renew()

    def _renew(self) -> None:
        began = _read_clock()
        try:
            self._write(State.HELD)
            self._renewed_at = began
        except _NO_ANSWER as error:
            self._trouble = getattr(error, "strerror", None) or str(error)

    def _write(self, state: State) -> None:
        with self._turn:
            is_held = state is State.HELD
            note = self._note.renewed() if is_held else self._note.ended(state)
            written = self._lease.write_on(note, self._found)
            if written is None:
                self._lost = self._explain_loss(self._name_successor())
                self._when_lost()
            else:
                self._found = written

    def _is_due(self, seconds: float) -> bool:
        return _read_clock() - self._renewed_at >= seconds

    def _name_successor(self) -> str:
        note = None
        with suppress(*_NO_ANSWER):
            note = self._lease.read().note
        if note is None or note.epoch == self.epoch:
            return "another process has broken it"
        return f"it was taken over by {note}"

    def _explain_loss(self, why: str) -> Busy:
        name, file = self._lease.pipeline.name, self._lease.file
        return Busy(
            f"{name}: this process has lost {file}, because {why}; the next command finishes what "
            "this one has left"
        )


def _read_clock() -> float:
    """Seconds of a clock that nobody sets, and that goes on while the machine sleeps."""
    return time.clock_gettime(time.CLOCK_BOOTTIME)
