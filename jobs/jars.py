"""Fetches the two Delta JARs once, at set-up, through Spark's own resolver; afterwards nothing needs the network.

    python -m jobs.jars
"""

import hashlib
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from jobs.session import JARS

PACKAGE = "io.delta:delta-spark_4.1_2.13:4.4.0"
SHA256 = {
    "delta-spark_4.1_2.13-4.4.0.jar": "75a9400986853c061f5109f012547de2545a5759e5e752e5ef633dabe16a4f10",
    "delta-storage-4.4.0.jar": "c46735481fa8e326b0957be02b4420cbcab4b325bb08009b7f2045a95133f1cc",
}


def main() -> int:
    """Puts the JARs where `spark_session` looks; 0 when they are there and whole, 1 otherwise."""
    if all(_whole(JARS / name) for name in SHA256):
        return 0
    with tempfile.TemporaryDirectory() as ivy:
        _resolve(Path(ivy))
        JARS.mkdir(parents=True, exist_ok=True)
        for name in SHA256:
            found = list(Path(ivy).rglob(f"*{name}"))
            if found:
                shutil.copyfile(found[0], JARS / name)
    broken = [name for name in SHA256 if not _whole(JARS / name)]
    if broken:
        print(f"could not fetch {', '.join(broken)} ({PACKAGE}): check the network and run `make setup` again", file=sys.stderr)
    return 1 if broken else 0


def _whole(jar: Path) -> bool:
    return jar.is_file() and hashlib.sha256(jar.read_bytes()).hexdigest() == SHA256[jar.name]


def _resolve(ivy: Path) -> None:
    """Starts Spark once with the package; what Ivy fetched lies below `ivy` afterwards."""
    script = (
        "from pyspark.sql import SparkSession as S;"
        f"S.builder.master('local[1]').config('spark.jars.packages', '{PACKAGE}')"
        f".config('spark.jars.ivy', '{ivy}').config('spark.ui.enabled', 'false')"
        ".config('spark.driver.bindAddress', '127.0.0.1').config('spark.driver.host', '127.0.0.1').getOrCreate().stop()"
    )
    subprocess.run([sys.executable, "-c", script], check=False, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, timeout=900)


if __name__ == "__main__":
    sys.exit(main())
