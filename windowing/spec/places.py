"""Where tables lie: a text of the spec -> an absolute, normalised path, or a catalog name.

A path is one of this machine, one on S3, which is spelled `s3://BUCKET/KEY` from then on, or one on
HDFS, `hdfs://HOST:PORT/PATH`. It may begin with a place that has a name, as in `lake://orders`.
"""

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from urllib.parse import unquote

from windowing.errors import SpecError
from windowing.spec.words import join_names, quote_value, suggest_name

_SCHEME = re.compile(r"([A-Za-z_][A-Za-z0-9_+.-]*):/", re.ASCII)
_FILE = re.compile(r"file:(?://(?:localhost)?(?=/))?(/(?!/).*)", re.IGNORECASE | re.DOTALL)
_S3 = re.compile(r"(?:s3|s3a|s3n)://([^/]*)/?(.*)", re.IGNORECASE | re.DOTALL)
_HDFS = re.compile(r"hdfs://([^/]*)/?(.*)", re.IGNORECASE | re.DOTALL)
_CLUSTER = re.compile(
    r"[A-Za-z0-9]([A-Za-z0-9.-]*[A-Za-z0-9])?(:(?P<port>[1-9][0-9]{0,4}))?", re.ASCII
)
_LAST_PORT = 65_535
_BUCKET = re.compile(r"[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]", re.ASCII)
_NOT_ON_HDFS = re.compile(r"[^A-Za-z0-9._=+~-]")
"""What delta-rs spells otherwise than Spark there, or HDFS can't have."""
_VARIABLE = re.compile(r"\$(?:\{([^{}]*)\}|([A-Za-z_]\w*))", re.ASCII)
_ENCODED = re.compile(r"%[0-9A-Fa-f]{2}")
"""What delta-rs takes for another character in the path of a table, and Spark does not."""
_NO_LAKE = re.compile(rf"[\[\]|^\\]|{_ENCODED.pattern}")
"""What delta-rs, which commits to tables of a lake, can't have in the path of one."""
_NAMED = re.compile(r"([a-z][a-z0-9_]*)://(.*)", re.DOTALL)
SCHEMES = frozenset(
    {
        *("file", "s3", "s3a", "s3n", "hdfs", "viewfs", "webhdfs", "swebhdfs"),
        *("gs", "gcs", "abfs", "abfss", "adl", "az", "azure", "wasb", "wasbs", "dbfs", "oss"),
        *("ftp", "sftp", "http", "https", "memory", "jdbc"),
    }
)
"""What addresses of stores begin with, here or elsewhere; no place can be called so."""
_CATALOG = re.compile(r"[\w-]+(\.[\w-]+){0,3}")


@dataclass(frozen=True)
class Base:
    """Where paths begin: relative ones at `directory`, others at one of the `places` by its name.

    Without a directory paths are absolute. `owner` says in messages who has the places.
    """

    directory: str | None = None
    places: Mapping[str, str] = field(default_factory=dict)
    owner: str = "this spec"


def resolve_directory(field: str, text: str, base: Base) -> str:
    """The absolute, normalised path that `text` names, relative to `base`.

    SpecError at `field` for variables, for schemes other than `file:`, `s3:`, `hdfs:` and the names
    of places, and for characters that a table's path can't have.
    """
    _check_no_variable(field, text)
    _check_characters(field, text)
    text = _begin_at_place(field, text, base)
    on_s3 = _S3.fullmatch(text)
    if on_s3:
        return _resolve_s3(field, text, on_s3[1], on_s3[2])
    on_hdfs = _HDFS.fullmatch(text)
    if on_hdfs:
        return _resolve_hdfs(field, text, on_hdfs[1], on_hdfs[2])
    _check_scheme(field, text)
    uri = _FILE.fullmatch(text)
    path = unquote(uri[1]) if uri else text
    if base.directory is None and not os.path.isabs(path):
        raise SpecError(
            field,
            f"{quote_value(text)} is a relative path, but a mapping has no file to start from; "
            "use an absolute one",
        )
    # normpath keeps two leading slashes, which POSIX allows to mean something else than one.
    return "/" + os.path.normpath(os.path.join(base.directory or "/", path)).lstrip("/")


def _begin_at_place(field: str, text: str, base: Base) -> str:
    """The path with the place that it begins with; SpecError for a name that is no place."""
    named = _NAMED.fullmatch(text)
    if named is None or named[1] in SCHEMES:
        return text
    name, rest = named[1], named[2]
    if name not in base.places:
        known = f"has {join_names(base.places)}" if base.places else "has none"
        raise SpecError(
            field,
            f"{quote_value(text)} begins with {name}:, which is neither a store nor a place; "
            f"{base.owner} {known}{suggest_name(name, base.places)}; use one of them, a path, or a "
            "URI with file:, s3: or hdfs:",
        )
    parts = _split_plain(field, text, rest, "which might lead out of the place")
    return "/".join([base.places[name].rstrip("/"), *parts])


def _resolve_s3(field: str, text: str, bucket: str, key: str) -> str:
    """The path of a directory on S3, which has no `.` and no `..`."""
    if not _BUCKET.fullmatch(bucket):
        raise SpecError(
            field,
            f"{quote_value(text)} names no bucket of S3: {quote_value(bucket)} is not 3 to 63 "
            "small letters, digits, dots and dashes; write it as s3://bucket/lake",
        )
    parts = _split_plain(field, text, key, "which S3 takes literally")
    if not parts:
        raise SpecError(
            field,
            f"{quote_value(text)} is a whole bucket; name a directory in it, "
            f"such as s3://{bucket}/lake",
        )
    return "/".join([f"s3://{bucket}", *parts])


def _resolve_hdfs(field: str, text: str, cluster: str, path: str) -> str:
    """The path of a directory on HDFS, without `.`, `..` and what a URL spells otherwise."""
    found = _CLUSTER.fullmatch(cluster)
    if found is None or int(found["port"] or 0) > _LAST_PORT:
        raise SpecError(
            field,
            f"{quote_value(text)} names no cluster of HDFS: {quote_value(cluster)} is no host and "
            "port of a name node; write it as hdfs://namenode:8020/data/lake",
        )
    parts = _split_plain(field, text, path, "which HDFS can't have in a path")
    if not parts:
        raise SpecError(
            field,
            f"{quote_value(text)} is a whole cluster; name a directory in it, "
            f"such as hdfs://{cluster}/data/lake",
        )
    odd = _NOT_ON_HDFS.search("".join(parts))
    if odd:
        raise SpecError(
            field,
            f"{quote_value(text)} holds {odd[0]!r}, which the path of a table on HDFS can't; "
            "use letters without accents, digits and .-_=+~ alone",
        )
    # Without a port it may be a nameservice, of which Hadoop's settings have the exact spelling.
    return "/".join([f"hdfs://{cluster.lower() if found['port'] else cluster}", *parts])


def _split_plain(field: str, text: str, path: str, why: str) -> list[str]:
    """The names of the directories of a path; SpecError for `.` and `..`."""
    parts = [part for part in path.split("/") if part]
    dots = [part for part in parts if part in (".", "..")]
    if dots:
        raise SpecError(
            field,
            f"{quote_value(text)} holds {quote_value(dots[0])} as the name of a directory, "
            f"{why}; write the path without it",
        )
    return parts


def resolve_lake(field: str, text: str, base: Base) -> str:
    """`resolve_directory` for the directory of a pipeline's own tables."""
    path = resolve_directory(field, text, base)
    _refuse_part(field, path, _NO_LAKE.search(path), "which the path of a lake can't")
    return path


def _refuse_part(field: str, path: str, found: re.Match[str] | None, why: str) -> None:
    """Raises SpecError where a part of a path was found that it can't have."""
    if found:
        holds = f"{quote_value(path)} holds {found[0]!r}"
        raise SpecError(field, f"{holds}, {why}; use a directory without it")


def resolve_table(field: str, text: str, base: Base) -> str:
    """A catalog name such as db.events as it is; any text with a slash as a directory.

    SpecError at `field` where `resolve_directory` raises it, and for `%41` in a path.
    """
    _check_no_variable(field, text)
    if "/" in text:
        path = resolve_directory(field, text, base)
        why = "which the path of a table can't, because only some programs decode it"
        _refuse_part(field, path, _ENCODED.search(path), why)
        return path
    if not _CATALOG.fullmatch(text):
        raise SpecError(
            field,
            f"{quote_value(text)} is neither a path with a slash nor a catalog name "
            "such as db.events",
        )
    return text


def _check_characters(field: str, text: str) -> None:
    for character in unquote(text):
        if character == "`" or not character.isprintable():
            raise SpecError(
                field,
                f"{quote_value(text)} holds {character!r}, which a path of a table can't; "
                "use a path such as ../lake",
            )


def _check_scheme(field: str, text: str) -> None:
    scheme = _SCHEME.match(text)
    if scheme and scheme[1].lower() != "file":
        raise SpecError(
            field,
            f"{quote_value(text)} lies in {scheme[1]}:, which is not supported yet; "
            "use a path, or a URI with file:, s3: or hdfs:",
        )
    if text.lower().startswith("file:") and not _FILE.fullmatch(text):
        raise SpecError(
            field,
            f"{quote_value(text)} is not a file: URI of this machine; write it as file:///data/lake",
        )


def _check_no_variable(field: str, text: str) -> None:
    """Raises for `${LAKE}`, `$LAKE` and `~`, because a spec means the same on every machine."""
    if text == "~" or text.startswith("~/"):
        raise SpecError(
            field,
            f"{quote_value(text)} begins with '~', but home directories are not expanded here; "
            "write the path itself",
        )
    found = _VARIABLE.search(text)
    if found is None:
        return
    named = re.match(r"\w+", found[1] or found[2] or "")
    name = named[0] if named else "LAKE"
    wrong = (
        f"{quote_value(text)} holds {found[0]!r}, but environment variables are not expanded here"
    )
    python = f"a mapping for load_pipeline, made in Python, can hold os.environ[{name!r}]"
    raise SpecError(field, f"{wrong}; write the path itself; {python}")
