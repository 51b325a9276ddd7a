"""The keys of a profile, as AWS's own tools keep it, for the library that looks for none there.

All other places it asks by itself, so these have the same order for it and for all others: keys and
web identity in the environment, the profile, the roles of container and instance.
"""

from collections.abc import Mapping
from configparser import ConfigParser, Error
from functools import lru_cache
from pathlib import Path

from windowing.errors import UsageError

_BEFORE = ("AWS_ACCESS_KEY_ID", "AWS_WEB_IDENTITY_TOKEN_FILE")
"""Variables that come before any profile."""
_KEYS = ("aws_access_key_id", "aws_secret_access_key", "aws_session_token")


def find_profile_keys(environ: Mapping[str, str]) -> dict[str, str]:
    """The keys of the profile that `environ` names, or of the one that is meant otherwise.

    There are none where something else comes first, or where no profile is named and there is none.
    UsageError where the profile that is named has no keys of its own.
    """
    if any(environ.get(name) for name in _BEFORE):
        return {}
    named = environ.get("AWS_PROFILE")
    home = Path(environ.get("HOME") or Path.home()) / ".aws"
    name = named or "default"
    sections = (
        (environ.get("AWS_SHARED_CREDENTIALS_FILE") or str(home / "credentials"), name),
        (
            environ.get("AWS_CONFIG_FILE") or str(home / "config"),
            name if name == "default" else f"profile {name}",
        ),
    )
    for file, section in sections:
        found = _read_section(file, section)
        if all(found.get(key) for key in _KEYS[:2]):
            return {key: found[key] for key in _KEYS if found.get(key)}
    if named is None:
        return {}
    raise UsageError(
        f"AWS_PROFILE is {named!r}, and {sections[0][0]} has no keys of it; put keys there, or set "
        "the variables that `aws configure export-credentials --format env` prints"
    )


def _read_section(file: str, section: str) -> Mapping[str, str]:
    path = Path(file).expanduser()
    try:
        facts = path.stat()
    except OSError:
        return {}
    return _parse_section(path, section, (facts.st_mtime_ns, facts.st_size, facts.st_ino))


# Every request to a store asks, because a tool may renew keys of a profile at any time.
@lru_cache(maxsize=16)
def _parse_section(path: Path, section: str, _: tuple[int, ...]) -> Mapping[str, str]:
    """A section of a file as it was written last."""
    parser = ConfigParser(interpolation=None, strict=False)
    try:
        parser.read_string(path.read_text("utf-8"))
    except (OSError, Error, UnicodeDecodeError):
        return {}
    return dict(parser[section]) if parser.has_section(section) else {}
