"""`tidemark`, which is `python -m jobs`: a command line in the warm engine, or in this process."""

import os
import sys

_INTERRUPTED = 130
"""The exit code of what Ctrl-C has ended, as shells have it."""


def main() -> None:
    """Runs the command line and ends this process with its exit code."""
    try:
        code = _run(sys.argv[1:])
    except KeyboardInterrupt:
        # The command itself handles this; it has not begun.
        print("\ntidemark: interrupted before the command began", file=sys.stderr)
        code = _INTERRUPTED
    sys.exit(code)


def _run(words: list[str]) -> int | None:
    # Ctrl-C may come during any import.
    from jobs.engine.client import run_in_engine
    from jobs.engine.target_variables import target_variables
    from windowing.errors import UsageError

    try:
        # What the project says of engine and cluster is for this process and those that it starts.
        os.environ |= target_variables(words, os.environ, os.curdir)
        code = run_in_engine(words)
    except UsageError as error:
        print(f"tidemark: {error}", file=sys.stderr)
        return error.exit_code
    if code is None:
        # These imports take longer than a command that the engine runs.
        from jobs.cli.main import main as run_here

        run_here(prog_name="tidemark")
    return code


if __name__ == "__main__":
    main()
