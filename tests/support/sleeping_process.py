"""A run that is stopped with its JVM at the nth named place it comes to, as a machine that sleeps.

It says that it is on another machine, so that nobody sees whether it is still at work.

python -m tests.support.sleeping_process SPEC NTH      ends with the exit code of the command
"""

import json
import os
import signal
import sys
from dataclasses import dataclass, field
from threading import Lock

from pyspark.sql import SparkSession

from jobs.cli.errors import explain_error
from jobs.locking import running_process
from jobs.run import run
from jobs.session import spark_session
from jobs.sessions.process import stay_on_utc
from jobs.sessions.profiles import TEST
from tests.support.killed_process import ARRIVAL, jvm_of
from windowing.crash import armed
from windowing.spec.load import load_pipeline


@dataclass
class Stopper:
    """Stops this process and its JVM at the nth place of all that are passed."""

    spark: SparkSession
    nth: int
    seen: int = 0
    turn: Lock = field(default_factory=Lock)

    def __call__(self, name: str) -> None:
        """A place is passed."""
        with self.turn:
            self.seen += 1
            is_here = self.seen == self.nth
        if is_here:
            jvm = jvm_of(self.spark)
            print(f"{name} {jvm}", flush=True)
            os.kill(jvm, signal.SIGSTOP)
            os.kill(os.getpid(), signal.SIGSTOP)


def main(spec: str, nth: str) -> int:
    """Runs the pipeline; the exit code of the command."""
    stay_on_utc()
    running_process.name_system = lambda: "another machine"
    spark, pipeline = spark_session("sleeps", **TEST), load_pipeline(json.loads(spec))
    try:
        with armed(Stopper(spark, int(nth))):
            run(spark, pipeline, ARRIVAL)
    except Exception as error:
        failure = explain_error(error)
        print(failure.message, flush=True)
        return failure.code
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
