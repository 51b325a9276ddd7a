"""Fetches the JARs of Delta and S3 once for each environment, through Spark's resolver (Ivy).

Afterwards nothing needs the network. Ivy has its settings from where Spark has them, so a mirror is
named by DEFAULT_ARTIFACT_REPOSITORY, or by spark.jars.ivySettings in spark-defaults.conf.

    python -m jobs.setup
"""

import hashlib
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Mapping
from itertools import takewhile
from pathlib import Path

from jobs.session import JARS, SPARK_HOME
from jobs.sessions.jars import JAR_NAMES, PINNED, name_file
from windowing.errors import TidemarkError, UsageError

SHA256: Mapping[str, str] = {name_file(module): digest for module, digest in PINNED.items()}
LONGEST_WAIT_S = 900

_RESOLVE = """
import sys
from windowing.storage.spark_internals import resolve_packages
resolve_packages(*sys.argv[1:])
"""
_REFUSED = re.compile(r"Server access error at url (?P<url>\S+) \((?P<error>.+)\)")
_NO_HOST = re.compile(r"Host (?P<host>\S+) not found\. url=(?P<url>\S+)")
_ACCESS_ERROR = re.compile(r"Server access Error: (?P<error>.+) url=(?P<url>\S+)")
_FAILED = re.compile(r"\[FAILED\s*\] (.+)")
_TRIED = re.compile(r"^\s+(https?://\S+\.jar)$", re.MULTILINE)
_NO_JVM = re.compile(r"(?!File |Traceback)(?=.*(java|JAVA|[Ee]rror))")
_IVY_STARTED = ":: loading settings ::"
_USER = re.compile(r"(?<=://)[^/@\s]+@")


def main() -> int:
    """Does what `tidemark setup` does, for make; returns 0 when the JARs are there and verified."""
    try:
        fetch_jars()
    except TidemarkError as error:
        print(error, file=sys.stderr)
        return error.exit_code
    return 0


def fetch_jars(*, verbose: bool = False) -> tuple[str, ...]:
    """Puts the pinned JARs where `spark_session` finds them; returns the names of those it fetched.

    A JAR that has the pinned digest stays, so fetching is idempotent. One with another digest is
    replaced, and never by a file that doesn't have the pinned digest either. With `verbose` the
    output of Ivy is printed on stderr. Raises TidemarkError, which names address and error, when a
    JAR can't be fetched, and UsageError when nothing can be written.
    """
    wanted = tuple(name for name in JAR_NAMES if not is_whole(JARS / name))
    if wanted:
        _make_directory()
        digests = {name: SHA256[name] for name in wanted}
        fetch_into(JARS, PINNED, digests, verbose=verbose)
    return wanted


def fetch_into(
    directory: Path, packages: Iterable[str], digests: Mapping[str, str], *, verbose: bool = False
) -> None:
    """Puts JARs of packages, by Maven's coordinates, into a directory, which is there.

    `digests` are the SHA-256 of those to put there. Raises TidemarkError as `fetch_jars` does.
    """
    with tempfile.TemporaryDirectory() as ivy:
        said = _resolve(Path(ivy), packages)
        if verbose:
            print(hide_passwords(said), file=sys.stderr)
        for name, digest in digests.items():
            _put_in_place(_find_resolved(Path(ivy), name, digest, said), directory / name)


def is_whole(jar: Path) -> bool:
    """Whether the file exists and has the digest that is pinned for its name."""
    return jar.is_file() and _sha256(jar) == SHA256[jar.name]


def explain_failure(said: str) -> str:
    """Why there is no JAR, from the output of Ivy and the JVM: which address, and which error."""
    said = hide_passwords(said)
    lines = [line.strip() for line in said.splitlines() if line.strip()]
    if _IVY_STARTED not in said:
        why = next(filter(_NO_JVM.match, lines), "it said nothing")
        return f"Java did not start ({why}); put Java 17 to 22 on PATH or in JAVA_HOME"
    cause = _network_cause(said)
    if cause:
        return (
            f"{cause}; check the network, or name a mirror in DEFAULT_ARTIFACT_REPOSITORY "
            "or in Spark's spark.jars.ivySettings"
        )
    return f"{_first_problem(lines)}; --debug shows all that Ivy says"


def hide_passwords(said: str) -> str:
    """The text without the user and password that an address may contain."""
    return _USER.sub("", said)


def _network_cause(said: str) -> str | None:
    """The address and the error, where Ivy printed that it could not download."""
    refused = _REFUSED.search(said) or _ACCESS_ERROR.search(said)
    if refused:
        return f"{refused['url']} gave {refused['error']}"
    no_host = _NO_HOST.search(said)
    if no_host:
        return f"{no_host['url']} can't be reached: host {no_host['host']} not found"
    failed = _FAILED.search(said)
    if failed:
        return f"the download failed: {failed[1]}"
    tried = dict.fromkeys(_TRIED.findall(said))
    if tried:
        return f"there is none at {' or '.join(tried)}"
    return None


def _first_problem(lines: list[str]) -> str:
    """The first problem that Ivy lists, else the error that ended the JVM, else the last line."""
    # PySpark's own traceback follows, and only says that the JVM ended.
    lines = list(takewhile(lambda line: not line.startswith("Traceback"), lines))
    for heading in (":::: ERRORS", ":::: WARNINGS"):
        if heading in lines[:-1]:
            return lines[lines.index(heading) + 1]
    exceptions = [line for line in lines if line.startswith("Exception in thread")]
    return exceptions[0] if exceptions else lines[-1]


def _make_directory() -> None:
    try:
        JARS.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=JARS):
            pass
    except OSError as error:
        raise UsageError(
            f"{JARS} can't be written to ({error.strerror}); install Tidemark into a virtual "
            "environment of your own, or name another directory in TIDEMARK_JARS"
        ) from error


def _resolve(ivy: Path, packages: Iterable[str]) -> str:
    """Lets Ivy fetch the packages into `ivy`; returns its output, whether or not it succeeded."""
    command = [sys.executable, "-c", _RESOLVE, ",".join(packages), str(ivy)]
    # Ivy needs no address of this host, but without this Spark warns about the one it chose.
    environment = {"SPARK_LOCAL_IP": "127.0.0.1", **os.environ, "SPARK_HOME": SPARK_HOME}
    # A process of its own finds this package where this one has found it.
    environment["PYTHONPATH"] = os.pathsep.join(path for path in sys.path if path)
    try:
        done = subprocess.run(
            command,
            check=False,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            timeout=LONGEST_WAIT_S,
            env=environment,
        )
    except subprocess.TimeoutExpired as error:
        raise TidemarkError(
            f"the JARs were not fetched: Ivy was not done after {LONGEST_WAIT_S} seconds; "
            "check the network and rerun `tidemark setup`"
        ) from error
    return done.stdout.decode(errors="replace")


def _find_resolved(ivy: Path, name: str, digest: str, said: str) -> Path:
    # Ivy names a file as Maven does, and once more with its group in front.
    candidates = sorted([*ivy.rglob(name), *ivy.rglob(f"*_{name}")])
    if not candidates:
        raise TidemarkError(f"{name} was not fetched: {explain_failure(said)}")
    found = candidates[0]
    if _sha256(found) != digest:
        raise TidemarkError(
            f"{name} was refused: {_origin(said, name)} gave a file with SHA-256 {_sha256(found)}, "
            f"and the pinned one has {digest}; fetch it from another repository"
        )
    return found


def _origin(said: str, name: str) -> str:
    """The address of a JAR; the name of the repository where Ivy printed no address."""
    said = hide_passwords(said)
    address = re.search(rf"downloading (\S*{re.escape(name)})", said)
    if address:
        return address[1]
    module, _, version = name.removesuffix(".jar").rpartition("-")
    repository = re.search(rf"found \S+#{re.escape(f'{module};{version}')} in (\S+)", said)
    return repository[1] if repository else "the repository"


def _put_in_place(found: Path, jar: Path) -> None:
    """Copies to another name first, so that a JVM never reads half a JAR."""
    draft = jar.with_name(f".{jar.name}.{os.getpid()}")
    try:
        shutil.copyfile(found, draft)
        draft.replace(jar)
    finally:
        draft.unlink(missing_ok=True)


def _sha256(file: Path) -> str:
    with file.open("rb") as opened:
        return hashlib.file_digest(opened, "sha256").hexdigest()


if __name__ == "__main__":
    sys.exit(main())
