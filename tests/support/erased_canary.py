"""What the tests of both kinds of erasure erase, and the windows that it was counted in."""

from tests import oracle
from tests.support.long_lived_pipeline import MINUTE

WINDOWS = (
    oracle.Tumbling("hourly", 60 * MINUTE),
    oracle.Session("visits", 10 * MINUTE, emit="on_close"),
    oracle.Count("pairs", 2),
)
LEFT = oracle.Tumbling("left", 30 * MINUTE)
"""A window that the spec has removed."""
CANARY = "zz-canary-4711"
