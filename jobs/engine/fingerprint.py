"""What an engine was started with, so that a client recognizes one that would act otherwise."""

import hashlib
import os
import re
import sys
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

_PROJECT = Path(__file__).parents[2]
_PACKAGES = ("jobs", "windowing", "expectations")
_READ_AT_START = (
    # Java, Spark, Hadoop and its client of S3 read these when the JVM starts, Python and its
    # libraries read the others when they are imported.
    *("_JAVA", "AWS_", "HADOOP_", "JAVA_", "JDK_", "PYSPARK_", "SPARK_", "YARN_"),
    *("LANG", "LC_", "LD_", "MALLOC_", "OMP_", "OPENBLAS_", "PYTHON", "TIDEMARK_JARS", "TMPDIR"),
)
"""How the names of the variables begin that a command can't change once its JVM has started."""
_NAME_FILES = (
    *("AWS_CONFIG_FILE", "AWS_SHARED_CREDENTIALS_FILE", "HADOOP_CONF_DIR", "JAVA_HOME"),
    *("JAVA_TOOL_OPTIONS", "JDK_JAVA_OPTIONS", "PYSPARK_SUBMIT_ARGS", "PYTHONPATH"),
    *("SPARK_CONF_DIR", "TIDEMARK_JARS"),
)
"""Those of them whose values may name files."""
_BETWEEN_FILES = re.compile(r"[\s,:='\"]+")
DIRECTORY = "current directory"
"""What the directory is called among the surroundings, where one of those files is named by it."""


def code_fingerprint(environ: Mapping[str, str]) -> str:
    """A digest of the files that an engine loads, by their names, sizes and times of change.

    These are Tidemark, the directories of installed packages, the JARs, Java, and Spark's settings.
    """
    digest = hashlib.blake2b(digest_size=16)
    for part in (sys.version, sys.prefix, *_describe(_loaded_files(environ))):
        digest.update(os.fsencode(part))
        digest.update(b"\0")
    return digest.hexdigest()


def surroundings(environ: Mapping[str, str]) -> dict[str, str]:
    """What else of a process is settled when its JVM starts, by name."""
    found = {name: value for name, value in environ.items() if name.startswith(_READ_AT_START)}
    mask = os.umask(0o077)
    os.umask(mask)
    groups = (os.getgid(), *sorted(os.getgroups()))
    where = {DIRECTORY: os.getcwd()} if _has_relative_path(environ) else {}
    return {**found, **where, "umask": f"{mask:04o}", "groups": " ".join(map(str, groups))}


def differing(there: Mapping[str, str], here: Mapping[str, str]) -> list[str]:
    """The names in which the surroundings of an engine and of a client differ."""
    return sorted(n for n in there.keys() | here.keys() if there.get(n) != here.get(n))


def _has_relative_path(environ: Mapping[str, str]) -> bool:
    words = (word for name in _NAME_FILES for word in _BETWEEN_FILES.split(environ.get(name, "")))
    return any(not os.path.isabs(word) and os.path.exists(word) for word in words)


def _loaded_files(environ: Mapping[str, str]) -> Iterator[str]:
    for package in _PACKAGES:
        yield from _files_below(str(_PROJECT / package))
    # An installer adds a directory of metadata here for every package that it changes.
    yield from (path for path in sys.path if path.endswith("-packages"))
    yield from _files_below(os.path.join(sys.prefix, "share", "tidemark"))
    for name in ("TIDEMARK_JARS", "SPARK_CONF_DIR", "HADOOP_CONF_DIR"):
        if environ.get(name):
            yield from _files_below(environ[name])
    yield from _BETWEEN_FILES.split(environ.get("PYSPARK_SUBMIT_ARGS", ""))
    homes = [os.path.join(environ["JAVA_HOME"], "bin")] if environ.get("JAVA_HOME") else []
    for directory in (*homes, *environ.get("PATH", "").split(os.pathsep)):
        java = os.path.join(directory, "java")
        if os.access(java, os.X_OK):
            yield os.path.realpath(java)
            return


def _files_below(directory: str) -> Iterator[str]:
    for parent, directories, names in os.walk(directory):
        # Python writes these while it runs.
        directories[:] = sorted(name for name in directories if name != "__pycache__")
        yield from (os.path.join(parent, name) for name in sorted(names))


def _describe(paths: Iterable[str]) -> Iterator[str]:
    for path in paths:
        try:
            found = os.stat(path)
        except OSError:
            # A word of PYSPARK_SUBMIT_ARGS is a file or it is not.
            continue
        yield f"{path} {found.st_size} {found.st_mtime_ns}"
