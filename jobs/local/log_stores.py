"""Builds the JAR of the log stores from the sources beside it, with the same bytes everywhere.

Whoever uses Tidemark has a JRE and no compiler, so the JAR is a part of the package.

    python -m jobs.local.log_stores
"""

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from zipfile import ZIP_STORED, ZipFile, ZipInfo

import pyspark

from jobs.session import JARS
from jobs.sessions.jars import JAR_NAMES, LOG_STORES
from windowing.errors import TidemarkError, UsageError

_OLDEST_JAVA = "17"
_MANIFEST = "META-INF/MANIFEST.MF"


def main() -> int:
    """Does what `make log-stores` does; returns 0 when the JAR was written."""
    try:
        build_jar(LOG_STORES)
    except TidemarkError as error:
        print(error, file=sys.stderr)
        return error.exit_code
    return 0


def find_compiler() -> str | None:
    """The path of javac, that of JAVA_HOME first; None where there is none."""
    home = os.environ.get("JAVA_HOME")
    return shutil.which("javac", path=f"{home}/bin" if home else None)


def build_jar(target: Path) -> None:
    """Compiles the sources and writes the JAR to `target`.

    Raises UsageError without a compiler, and TidemarkError with what it says when it refuses them.
    """
    compiler = find_compiler()
    if compiler is None:
        raise UsageError("there is no javac; put a JDK 17 on PATH or in JAVA_HOME")
    with tempfile.TemporaryDirectory() as classes:
        _compile(compiler, Path(classes))
        _pack(Path(classes), target)


def _compile(compiler: str, classes: Path) -> None:
    sources = sorted(LOG_STORES.parent.glob("*.java"))
    options = ["--release", _OLDEST_JAVA, "-encoding", "UTF-8", "-g:source,lines"]
    options += ["-d", str(classes), "-cp", _class_path()]
    done = subprocess.run(
        [compiler, *options, *map(str, sources)], capture_output=True, text=True, check=False
    )
    if done.returncode != 0:
        raise TidemarkError(f"javac refused the log stores: {done.stderr.strip()}")


def _class_path() -> str:
    hadoop = (Path(pyspark.__file__).parent / "jars").glob("hadoop-client-api-*.jar")
    return os.pathsep.join(map(str, [*hadoop, *(JARS / name for name in JAR_NAMES)]))


def _pack(classes: Path, target: Path) -> None:
    """Neither times nor the version of a compressor is in the bytes."""
    files = {_MANIFEST: b"Manifest-Version: 1.0\n\n"}
    for file in sorted(classes.rglob("*.class")):
        files[file.relative_to(classes).as_posix()] = file.read_bytes()
    with ZipFile(target, "w", ZIP_STORED) as jar:
        for name, content in files.items():
            jar.writestr(ZipInfo(name), content)


if __name__ == "__main__":
    sys.exit(main())
