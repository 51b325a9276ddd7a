"""The change feed of an output: which of its versions can still be read, and their rows."""

from dataclasses import dataclass
from json import loads
from typing import Any
from urllib.parse import unquote

from pyspark.sql import DataFrame, SparkSession

from windowing.location import Location
from windowing.storage.kept_open import read_commit_text
from windowing.storage.store import store_of

_ON = "delta.enableChangeDataFeed"


@dataclass(frozen=True)
class Reach:
    """The versions `first` to `newest`, both included, whose changes can be read.

    There is none where `first` is greater. `changed` is the last of them that has changed rows; -1
    where none has.
    """

    first: int
    newest: int
    changed: int = -1


def find_reach(path: Location, newest: int) -> Reach:
    """The longest range of versions up to `newest` whose changes can be read.

    It begins behind a commit or a file that was deleted, behind the last change of the columns, and
    behind a version that recorded no change feed.
    """
    files = store_of(path).list_files(path).keys()
    first, changed = newest + 1, -1
    columns_since: tuple[int, str] | None = None
    for version in range(newest, -1, -1):
        text = read_commit_text(path, version)
        if text is None:
            break
        actions = _parse(text)
        told = _list_telling(actions)
        if not files >= set(told):
            break
        metadata = next((each["metaData"] for each in actions if "metaData" in each), None)
        if metadata is not None:
            if metadata.get("configuration", {}).get(_ON) != "true":
                break
            columns = metadata["schemaString"]
            if columns_since is not None and columns != columns_since[1]:
                # Spark reads the changes of one version, and those after it, as one set of columns.
                return Reach(columns_since[0], newest, changed)
            columns_since = version, columns
        first = version
        if told and changed < 0:
            changed = version
    if first > 0 and columns_since is not None:
        # Which columns there were before is not known.
        first = max(first, columns_since[0])
    return Reach(first, newest, changed)


def read_feed(spark: SparkSession, path: Location, reach: Reach) -> DataFrame:
    """The rows of the change feed: the table's columns + [_change_type, _commit_version, ...]."""
    reader = spark.read.format("delta").option("readChangeFeed", "true")
    reader = reader.option("startingVersion", reach.first).option("endingVersion", reach.newest)
    return reader.load(path.hadoop)


def _parse(text: str) -> list[dict[str, Any]]:
    return [loads(line) for line in text.split("\n") if line.strip()]


def _list_telling(actions: list[dict[str, Any]]) -> list[str]:
    """The files that tell the changes of a commit; none where it has changed no row."""
    names = [each["cdc"]["path"] for each in actions if "cdc" in each]
    if not names:
        for each in actions:
            for action in ("add", "remove"):
                if action in each and each[action].get("dataChange", True):
                    names.append(each[action]["path"])
    return [unquote(name) for name in names]
