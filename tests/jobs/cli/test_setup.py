"""`tidemark setup`: the pinned JARs and no others, and failures that name address and error."""

import hashlib
import json
import re
from collections.abc import Iterable
from importlib.metadata import version
from pathlib import Path

import pyspark
import pytest
from click.testing import CliRunner, Result

from jobs import session
from jobs import setup as jars
from jobs.cli.main import main
from jobs.sessions.jars import JAR_NAMES, PINNED, name_file
from windowing.errors import TidemarkError

GOOD = {name: f"the bytes of {name}".encode() for name in JAR_NAMES}
BASE = "http://mirror.test/maven2/io/delta"
STARTED = ":: loading settings :: url = jar:file:ivysettings.xml\n"
REFUSED = f"""{STARTED}
:::: ERRORS
\tServer access error at url {BASE}/delta.pom (java.net.ConnectException: Connection refused)

\tServer access error at url {BASE}/delta.jar (java.net.ConnectException: Connection refused)
"""
TIMED_OUT = (
    f"{STARTED}:::: ERRORS\n\tServer access Error: Connection timed out url={BASE}/delta.pom\n"
)
NO_HOST = f"{STARTED}:::: ERRORS\n\tHost mirror.test not found. url={BASE}/delta.pom\n"
NOT_THERE = f"""{STARTED}
\t==== central: tried

\t  {BASE}/delta.pom

\t  -- artifact io.delta#delta;4.4.0!delta.jar:

\t  {BASE}/delta.jar
"""
BROKE_OFF = f"{STARTED}\t[FAILED     ] io.delta#delta;4.4.0!delta.jar:  Read timed out (30000ms)\n"


class Repository:
    """Stands for Ivy and its network: what it gives, what it says, how often it was asked."""

    def __init__(self, given: dict[str, bytes], said: str = "") -> None:
        self.given, self.said, self.asked = given, said, 0

    def resolve(self, ivy: Path, _: Iterable[str]) -> str:
        self.asked += 1
        (ivy / "jars").mkdir()
        for name, content in self.given.items():
            (ivy / "jars" / f"io.delta_{name}").write_bytes(content)
        return self.said


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty place for JARs, and digests of the small files that stand for them."""
    digests = {name: hashlib.sha256(content).hexdigest() for name, content in GOOD.items()}
    monkeypatch.setattr(jars, "SHA256", digests)
    for module in (jars, session):
        monkeypatch.setattr(module, "JARS", tmp_path / "share" / "jars")
    return tmp_path / "share" / "jars"


def offer(monkeypatch: pytest.MonkeyPatch, given: dict[str, bytes], said: str = "") -> Repository:
    repository = Repository(given, said)
    monkeypatch.setattr(jars, "_resolve", repository.resolve)
    return repository


def setup(*words: str) -> Result:
    return CliRunner().invoke(main, ["setup", *words], prog_name="tidemark")


def contents(place: Path) -> dict[str, bytes]:
    return {file.name: file.read_bytes() for file in place.iterdir()}


def test_the_jars_are_fetched_once(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    repository = offer(monkeypatch, GOOD)
    first, second = setup("--json"), setup("--json")
    assert (first.exit_code, second.exit_code, repository.asked) == (0, 0, 1)
    assert json.loads(first.stdout)["fetched"] == list(GOOD)
    assert json.loads(second.stdout) == {
        "directory": str(session.JARS),
        "jars": dict(jars.SHA256),
        "fetched": [],
    }
    assert contents(place) == GOOD


@pytest.mark.parametrize("name", [*JAR_NAMES[:3], JAR_NAMES[-1]])
def test_a_jar_with_another_digest_is_fetched_again_and_the_other_is_kept(
    name: str, place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place.mkdir(parents=True)
    for jar, content in GOOD.items():
        (place / jar).write_bytes(content if jar != name else b"half of it")
    offer(monkeypatch, GOOD)
    assert jars.fetch_jars() == (name,)
    assert contents(place) == GOOD


def test_a_jar_is_not_taken_for_one_whose_name_ends_like_it(
    place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    short, long = "auth-2.29.52.jar", "http-auth-2.29.52.jar"
    assert {short, long} <= GOOD.keys()
    offer(monkeypatch, {name: content for name, content in GOOD.items() if name != short})
    assert f"{short} was not fetched" in setup().stderr
    assert short not in contents(place)


def test_a_repository_that_gives_another_file_is_refused(
    place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    name = JAR_NAMES[1]
    said = f"{STARTED}downloading http://me:secret@mirror.test/{name} ...\n"
    offer(monkeypatch, {**GOOD, name: b"not it"}, said)
    result = setup()
    assert result.exit_code == 1
    assert f"tidemark: {name} was refused: http://mirror.test/{name} gave a file" in result.stderr
    assert hashlib.sha256(b"not it").hexdigest() in result.stderr
    assert list(contents(place)) == [JAR_NAMES[0]]


def test_a_file_of_a_local_repository_is_refused_by_the_name_of_the_repository(
    place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    said = f"{STARTED}\tfound io.delta#delta-storage;4.4.0 in local-m2-cache\n"
    offer(monkeypatch, {**GOOD, JAR_NAMES[1]: b"not it"}, said)
    assert "was refused: local-m2-cache gave a file" in setup().stderr


@pytest.mark.parametrize(
    ("said", "cause"),
    [
        (REFUSED, f"{BASE}/delta.pom gave java.net.ConnectException: Connection refused"),
        (NO_HOST, f"{BASE}/delta.pom can't be reached: host mirror.test not found"),
        (NOT_THERE, f"there is none at {BASE}/delta.jar"),
        (BROKE_OFF, "io.delta#delta;4.4.0!delta.jar:  Read timed out"),
        ("JAVA_HOME is not set\n", "Java did not start (JAVA_HOME is not set); put Java 17"),
        (f"{STARTED}Killed\nTraceback\nPySparkRuntimeError\n", "Killed; --debug shows"),
        (f"{STARTED}:::: WARNINGS\n\todd module\nTraceback\n", "odd module; --debug shows"),
        (f"{STARTED}Exception in thread main: odd\n\tat org.Odd\n", "Exception in thread main"),
        (TIMED_OUT, f"{BASE}/delta.pom gave Connection timed out"),
        (REFUSED.replace("http://", "http://me:secret@"), f"{BASE}/delta.pom gave"),
        ("", "Java did not start (it said nothing)"),
    ],
    ids=[
        *("refused", "no host", "not there", "broke off", "no java", "other"),
        *("warning", "exception", "timed out", "password", "nothing"),
    ],
)
@pytest.mark.usefixtures("place")
def test_a_failure_names_address_and_error(
    said: str, cause: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    offer(monkeypatch, {}, said)
    result = setup()
    assert result.exit_code == 1
    assert result.stderr.startswith(f"tidemark: {JAR_NAMES[0]} was not fetched: ")
    assert " ".join(cause.split()) in result.stderr
    assert "secret" not in result.stderr
    assert len(result.stderr.splitlines()) == 1


@pytest.mark.usefixtures("place")
def test_debug_shows_what_ivy_said_without_passwords(monkeypatch: pytest.MonkeyPatch) -> None:
    offer(monkeypatch, {}, REFUSED.replace("http://", "http://me:secret@"))
    said = setup("--debug").stderr
    assert ":: loading settings ::" in said
    assert "secret" not in said


def test_a_place_that_can_not_be_written_to_is_said(
    place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place.parent.write_text("a file where a directory should be")
    repository = offer(monkeypatch, GOOD)
    result = setup()
    assert (result.exit_code, repository.asked) == (2, 0)
    assert f"{place} can't be written to" in result.stderr
    assert "TIDEMARK_JARS" in result.stderr


@pytest.mark.slow
def test_a_real_resolver_that_reaches_nobody_is_one_sentence(
    jvm: None, place: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Nothing listens on port 9; a home without Maven's repository has no JAR to find there.
    monkeypatch.setenv("DEFAULT_ARTIFACT_REPOSITORY", "http://127.0.0.1:9/maven2/")
    monkeypatch.setenv("JAVA_TOOL_OPTIONS", f"-Duser.home={tmp_path}")
    # Sessions do not look there either.
    monkeypatch.setenv("SPARK_HOME", str(tmp_path / "nowhere"))
    with pytest.raises(TidemarkError) as error:
        jars.fetch_jars()
    assert "was not fetched: http://127.0.0.1:9/maven2/io/delta/" in str(error.value)
    assert "Connection refused" in str(error.value)
    assert contents(place) == {}


@pytest.mark.parametrize(
    ("kept", "lacks"),
    [
        ((), f"{JAR_NAMES[0]} and {len(JAR_NAMES) - 1} more"),
        (("delta-spark_4.1_2.13-4.3.0.jar",), f"{JAR_NAMES[0]} and {len(JAR_NAMES) - 1} more"),
        (JAR_NAMES[:2], f"{JAR_NAMES[2]} and {len(JAR_NAMES) - 3} more"),
        (JAR_NAMES[:-1], JAR_NAMES[-1]),
    ],
)
def test_a_session_without_its_jars_says_which_and_what_to_run(
    kept: tuple[str, ...], lacks: str, place: Path
) -> None:
    place.mkdir(parents=True)
    for name in kept:
        (place / name).touch()
    with pytest.raises(TidemarkError) as error:
        session.spark_session()
    assert str(error.value) == (f"{place} lacks {lacks}; run `tidemark setup` once")


def test_the_pinned_jars_fit_what_is_installed() -> None:
    versions = {module.rpartition(":")[0]: module.rpartition(":")[2] for module in PINNED}
    delta = {at for module, at in versions.items() if module.startswith("io.delta:")}
    assert delta == {version("delta-spark")}
    installed = Path(pyspark.__file__).parent / "jars"
    hadoop = versions["org.apache.hadoop:hadoop-aws"]
    assert (installed / f"hadoop-client-api-{hadoop}.jar").exists()
    sdk = {at for module, at in versions.items() if module.startswith("software.amazon.awssdk:")}
    assert len(sdk) == 1


def test_each_jar_has_a_digest_and_a_name_of_its_own() -> None:
    assert len({*JAR_NAMES}) == len(PINNED)
    assert all(re.fullmatch(r"[0-9a-f]{64}", digest) for digest in PINNED.values())
    # Spark has these, in other versions.
    spark = Path(pyspark.__file__).parent / "jars"
    own = {file.name.rpartition("-")[0] for file in spark.glob("*.jar")}
    assert not own & {name_file(module).rpartition("-")[0] for module in PINNED}
