"""What commands that fetch servers of tests do where that fails."""

import sys
from collections.abc import Callable

from windowing.errors import TidemarkError


def fetch_or_tell(fetch: Callable[[], object]) -> int:
    """Fetches, or tells in a sentence what went wrong; returns the exit code of the command."""
    try:
        fetch()
    except TidemarkError as error:
        print(error, file=sys.stderr)
        return error.exit_code
    return 0
