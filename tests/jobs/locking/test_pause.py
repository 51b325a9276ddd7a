"""How long a command on shared storage may sleep and still change nothing when it goes on."""

import re
from datetime import timedelta
from pathlib import Path

from jobs.locking import lease_object
from jobs.maintain import KEPT, LOG_KEPT

DECISION = Path(__file__).parents[3] / "docs" / "adr" / "0036-a-lease-with-a-fence.md"


def read_longest_pause() -> timedelta:
    """The longest pause that the decision allows."""
    found = re.search(r"^At most (\d+) days,", DECISION.read_text(), re.MULTILINE)
    assert found is not None
    return timedelta(days=int(found[1]))


def test_what_refuses_a_sleeper_is_kept_as_long_as_it_may_sleep() -> None:
    pause = read_longest_pause()
    assert pause <= LOG_KEPT, "a commit at which a late one is refused is there"
    assert pause < KEPT, "and a file that it would delete was deleted by nobody meanwhile"


def test_a_pause_that_is_allowed_is_longer_than_any_lease() -> None:
    assert timedelta(seconds=lease_object._MOST) < read_longest_pause()
