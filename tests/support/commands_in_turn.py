"""Commands of the command line in one process with one JVM, one after the other.

python -m tests.support.commands_in_turn COMMANDS      a JSON list of lists of words
"""

import json
import sys

from jobs.cli.main import main
from jobs.session import spark_session
from jobs.sessions.process import stay_on_utc
from jobs.sessions.profiles import TEST


def play(commands: str) -> int:
    """Does all commands; the largest of their exit codes."""
    stay_on_utc()
    spark_session("commands", **TEST)
    worst = 0
    for words in json.loads(commands):
        print(f"$ tidemark {' '.join(words)}", flush=True)
        try:
            main(words, prog_name="tidemark")
        except SystemExit as ended:
            print(f"exit code {ended.code or 0}", flush=True)
            worst = max(worst, int(ended.code or 0))
    return worst


if __name__ == "__main__":
    sys.exit(play(*sys.argv[1:]))
