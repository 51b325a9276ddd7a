"""The files of the product that one on-time row passes through in a run.

    python -m tests.support.traced_row

It runs a pipeline of one tumbling window twice, each time with one row, and prints the files whose
functions ran in the second run, in any thread, and their number.
"""

import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from types import FrameType

from jobs.run import run
from jobs.session import spark_session
from tests.support.python_code import ROOT
from windowing.location import Location
from windowing.spec.load import load_pipeline
from windowing.storage import delta

PRODUCT = ("tidemark", "windowing", "jobs", "expectations")
_SPEC = """
name: traced
lake: {home}
source: {{table: {home}/source, key: [user], event_id: id, event_time: at}}
watermark: {{delay: 10 minutes, allowed_lateness: 1 hour}}
aggregates: {{events: count()}}
windows:
  hourly: {{kind: tumbling, size: 1 hour}}
"""


class Trace:
    """The files whose functions have run in any thread that began after this."""

    def __init__(self) -> None:
        self.found: set[str] = set()

    def note(self, frame: FrameType, event: str, _: object) -> None:
        """What Python calls for each function."""
        if event == "call":
            self.found.add(frame.f_code.co_filename)

    def list_files(self) -> list[str]:
        """Those of the product, from the root of the project."""
        named = [Path(name) for name in self.found if Path(name).is_relative_to(ROOT)]
        places = [path.relative_to(ROOT) for path in named]
        return sorted(place.as_posix() for place in places if place.parts[0] in PRODUCT)


@contextmanager
def traced() -> Iterator[Trace]:
    """Notes every function that is called inside."""
    trace = Trace()
    threading.setprofile(trace.note)
    sys.setprofile(trace.note)
    try:
        yield trace
    finally:
        sys.setprofile(None)
        threading.setprofile(None)


def trace_row(home: Path) -> list[str]:
    """The files of the second run of a pipeline in an empty directory."""
    spec = home / "traced.yaml"
    spec.write_text(_SPEC.format(home=home))
    source = Location(str(home / "source"))
    spark = spark_session("traced", **{"spark.sql.shuffle.partitions": "1"})
    pipeline = load_pipeline(str(spec))
    with traced() as trace:
        for number in range(2):
            row = f"'u', 'e{number}', timestamp '2026-01-01 0{number}:30:00'"
            rows = spark.sql(f"select * from values ({row}) as row(user, id, at)")
            delta.append(rows, source)
            trace.found.clear()
            report = run(spark, pipeline)
            if report.accepted != 1:
                raise AssertionError(f"the row is not on time: {report}")
        return trace.list_files()


def main() -> None:
    """Prints the files and their number."""
    with TemporaryDirectory() as home:
        found = trace_row(Path(home))
    print(len(found))
    print("\n".join(found))


if __name__ == "__main__":
    main()
