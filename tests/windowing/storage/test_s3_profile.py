"""Keys of profiles are found where AWS's own tools look for them, and in the same order."""

from pathlib import Path

import pytest

from tests.support.leased_process import describe_trips, make_tables
from tests.support.s3_server import KEYS
from windowing.errors import UsageError
from windowing.ledger.table import read_history
from windowing.location import Location
from windowing.spec.load import load_pipeline
from windowing.storage import s3_profile
from windowing.storage.s3_profile import find_profile_keys
from windowing.storage.store import store_of

CREDENTIALS = """
[default]
aws_access_key_id = first
aws_secret_access_key = with%percent
[nightly]
aws_access_key_id = second
aws_secret_access_key = made-up
aws_session_token = token
[half]
aws_access_key_id = third
"""
CONFIG = """
[profile half]
region = eu-central-1
[profile other]
aws_access_key_id = fourth
aws_secret_access_key = made-up
[profile sso]
sso_start_url = https://example.com
"""


@pytest.fixture
def environ(tmp_path: Path) -> dict[str, str]:
    """An environment whose home has profiles."""
    (tmp_path / ".aws").mkdir()
    (tmp_path / ".aws" / "credentials").write_text(CREDENTIALS)
    (tmp_path / ".aws" / "config").write_text(CONFIG)
    return {"HOME": str(tmp_path)}


@pytest.mark.parametrize(
    ("profile", "found"),
    [
        ("", ("first", "with%percent", None)),
        ("nightly", ("second", "made-up", "token")),
        ("other", ("fourth", "made-up", None)),
    ],
)
def test_a_profile_has_keys(
    profile: str, found: tuple[str | None, ...], environ: dict[str, str]
) -> None:
    keys = find_profile_keys({**environ, "AWS_PROFILE": profile})
    names = ("aws_access_key_id", "aws_secret_access_key", "aws_session_token")
    assert tuple(keys.get(name) for name in names) == found


@pytest.mark.parametrize("profile", ["half", "sso", "none"])
def test_a_profile_without_keys_is_a_sentence(profile: str, environ: dict[str, str]) -> None:
    with pytest.raises(UsageError, match=f"AWS_PROFILE is '{profile}', and .*credentials has no"):
        find_profile_keys({**environ, "AWS_PROFILE": profile})


@pytest.mark.parametrize("name", ["AWS_ACCESS_KEY_ID", "AWS_WEB_IDENTITY_TOKEN_FILE"])
def test_the_environment_comes_first(name: str, environ: dict[str, str]) -> None:
    assert find_profile_keys({**environ, name: "x", "AWS_PROFILE": "none"}) == {}


def test_without_a_profile_the_others_are_asked(tmp_path: Path, environ: dict[str, str]) -> None:
    assert find_profile_keys({"HOME": str(tmp_path / "none")}) == {}
    (tmp_path / ".aws" / "credentials").write_bytes(b"\xff[")
    assert find_profile_keys(environ) == {}
    elsewhere = tmp_path / "keys"
    elsewhere.write_text(CREDENTIALS)
    found = find_profile_keys({**environ, "AWS_SHARED_CREDENTIALS_FILE": str(elsewhere)})
    assert found["aws_access_key_id"] == "first"


def choose_profile(home: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where a profile is to be, whose keys are the only ones."""
    file = home / "keys"
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.delenv(name)
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(file))
    monkeypatch.setenv("AWS_PROFILE", "tests")
    return file


def write_keys(file: Path, secret: str) -> None:
    """Writes the profile, as a tool does that renews keys."""
    file.write_text(
        f"[tests]\naws_access_key_id = {KEYS.access}\naws_secret_access_key = {secret}\n"
    )


def test_keys_that_a_tool_has_renewed_are_followed(
    s3_home: Location, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A service or a notebook lives longer than keys of an hour."""
    store, file = store_of(s3_home), choose_profile(tmp_path, monkeypatch)
    write_keys(file, "made-up")
    with pytest.raises(OSError, match="the credentials are refused"):
        store.read(s3_home / "a")
    write_keys(file, KEYS.secret)
    store.write(s3_home / "a", b"1")
    assert store_of(s3_home).read(s3_home / "a") == b"1"


def test_a_profile_is_read_again_when_it_was_written(environ: dict[str, str]) -> None:
    assert find_profile_keys(environ)["aws_access_key_id"] == "first"
    made = s3_profile._parse_section.cache_info().misses
    assert find_profile_keys(environ)["aws_access_key_id"] == "first"
    assert s3_profile._parse_section.cache_info().misses == made
    file = Path(environ["HOME"], ".aws", "credentials")
    file.write_text(CREDENTIALS.replace("first", "renewed"))
    assert find_profile_keys(environ)["aws_access_key_id"] == "renewed"


def test_a_store_and_its_tables_are_opened_by_a_profile(
    s3_home: Location, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    trips = load_pipeline(describe_trips(s3_home))
    make_tables(trips)
    write_keys(choose_profile(tmp_path, monkeypatch), KEYS.secret)
    store_of(s3_home).write(s3_home / "a", b"1")
    assert store_of(s3_home).read(s3_home / "a") == b"1"
    assert len(read_history(trips).entries) == 1
