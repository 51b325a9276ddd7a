"""Exit 0 if the URL answers with JSON, else 1.

Where a component of Airflow is named, the answer must call it healthy, too.
"""

import json
import sys
from urllib.request import ProxyHandler, build_opener


def main(url: str, component: str | None = None) -> int:
    """The exit code; `url` has 8 seconds to answer."""
    with build_opener(ProxyHandler({})).open(url, timeout=8) as answer:
        state = json.load(answer)
    return 0 if component is None or state[component]["status"] == "healthy" else 1


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
