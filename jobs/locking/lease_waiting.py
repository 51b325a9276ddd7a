"""Finds out whether the holder of a lease is still at work.

It has gone if its processes have ended on this system, or if it has not renewed the lease for its
time by the clock of this process. Then the lease is broken: written as one that anybody may take.
"""

import time

from jobs.locking.lease_note import LeaseNote, State
from jobs.locking.lease_object import Found, LeaseObject
from jobs.locking.running_process import Activity, find_activity

_LOOKS = 16
"""How often a lease is looked at within its time."""


def await_end(lease: LeaseObject, found: Found) -> Found:
    """The lease as it may be taken; Busy as soon as its holder is seen at work.

    That takes as long as a holder on another machine takes to renew it, and where one has gone as
    long as its lease is valid.
    """
    note = found.note
    if note is None or note.state is not State.HELD:
        return found
    activity = _find_holder_activity(note)
    if activity is Activity.RUNNING:
        raise lease.busy(found)
    if activity is Activity.UNKNOWN:
        later = _watch(lease, found, note.seconds)
        if later is not None:
            return later
    return break_lease(lease, found, note)


def break_lease(lease: LeaseObject, found: Found, note: LeaseNote) -> Found:
    """The lease as one that was taken from its holder; Busy where it has changed meanwhile."""
    broken = lease.write(note.ended(State.BROKEN), found)
    if broken is None:
        raise lease.busy(lease.read())
    return broken


def _watch(lease: LeaseObject, found: Found, seconds: float) -> Found | None:
    """The lease as its holder, or another waiter, has left it; None where it stays as it is.

    Busy where it is renewed.
    """
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        time.sleep(seconds / _LOOKS)
        now = lease.read()
        if now.tag == found.tag:
            continue
        if now.note is not None and now.note.state is State.HELD:
            raise lease.busy(now)
        return now
    return None


def _find_holder_activity(note: LeaseNote) -> Activity:
    """Whether the processes of a holder are at work, as far as it can be seen from here."""
    activities = {find_activity(process) for process in note.holder.processes}
    if Activity.RUNNING in activities:
        return Activity.RUNNING
    return Activity.ENDED if activities == {Activity.ENDED} else Activity.UNKNOWN
