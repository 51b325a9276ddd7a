"""Makes the class archive that lets every later JVM start faster.

The JVM of one small run of what commands do dumps its classes when it ends.

    python -m jobs.local.class_archive
"""

import sys
import tempfile
from pathlib import Path
from typing import Any

from jobs.session import ARCHIVE, spark_session
from windowing.storage.spark_internals import end_java

_SPEC: dict[str, Any] = {
    "name": "warm",
    "source": {"event_time": "at", "key": ["k"], "event_id": "id"},
    "aggregates": {
        "n": "count()",
        "total": "sum(v)",
        "most": "max(v)",
        "p50": "median(v)",
        "kinds": "count_distinct(v)",
    },
    "windows": {
        "hourly": {"kind": "tumbling", "size": "1 hour", "zone": "Europe/Berlin"},
        "rolling": {"kind": "sliding", "size": "1 hour", "slide": "10 minutes"},
    },
}


def main() -> int:
    """Writes the archive; returns 0 also where the JVM can't, because nothing depends on it."""
    ARCHIVE.unlink(missing_ok=True)
    draft = ARCHIVE.with_suffix(".draft")
    with tempfile.TemporaryDirectory() as lake:
        _exercise_engine(Path(lake), draft)
    if draft.exists():
        draft.replace(ARCHIVE)
    return 0


def _exercise_engine(lake: Path, draft: Path) -> None:
    """Runs twice, the second time with corrections, in a JVM that dumps its classes at its end."""
    from jobs.run import run
    from windowing.spec.load import load_pipeline

    options = {"spark.driver.extraJavaOptions": f"-XX:ArchiveClassesAtExit={draft}"}
    spark = spark_session("archive", **options)
    source = str(lake / "events")
    spec = {**_SPEC, "lake": str(lake), "source": {**_SPEC["source"], "table": source}}
    for first in (0, 5):
        # Five events of the first run are repeated in the second, as duplicates.
        rows = spark.range(first, first + 10).selectExpr(
            "concat('e', id) id", "'a' k", "timestamp_seconds(1700000000 + id * 600) at", "id v"
        )
        rows.write.format("delta").mode("append").save(source)
        run(spark, load_pipeline(spec))
    # It dumps its classes when it ends.
    end_java(spark, seconds=300)


if __name__ == "__main__":
    sys.exit(main())
