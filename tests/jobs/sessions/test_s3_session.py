"""Which settings a session has for tables on S3, by environment and lake."""

from pathlib import Path

import pytest

from jobs.session import _settings
from jobs.sessions.s3_session import ON_S3, describe_s3, describe_store
from windowing.location import Location
from windowing.storage import java
from windowing.storage.log_stores import LOG_STORE_SETTINGS
from windowing.storage.s3_settings import read_s3_settings

JAVA = Path(java.__file__).parent
STORE = {"AWS_ENDPOINT_URL": "http://127.0.0.1:9000"}


def test_every_session_commits_to_s3_by_our_log_store() -> None:
    assert LOG_STORE_SETTINGS["spark.delta.logStore.s3a.impl"] == "tidemark.ConditionalLogStore"
    assert _settings("tidemark", {}).items() >= LOG_STORE_SETTINGS.items()
    assert describe_s3(STORE).items() >= read_s3_settings(STORE).for_hadoop().items()


@pytest.mark.parametrize("environ", [{}, STORE], ids=["of AWS", "of a store"])
def test_no_session_lists_logs_on_s3_by_the_fast_way_of_delta(environ: dict[str, str]) -> None:
    assert describe_s3(environ)["spark.hadoop.delta.enableFastS3AListFrom"] == "false"
    source = (JAVA / "ConditionalLogStore.java").read_text()
    assert "class ConditionalLogStore extends HadoopFileSystemLogStore" in source


def test_an_environment_that_is_contradictory_stops_no_session() -> None:
    assert describe_s3({**STORE, "AWS_S3_ALLOW_UNSAFE_RENAME": "true"}) == describe_s3({})


@pytest.mark.parametrize(
    ("lake", "settings"),
    [("/lake/shop", {}), ("s3://bucket/shop", ON_S3), ("s3a://bucket/shop", ON_S3)],
)
def test_only_on_s3_delta_writes_no_checksums(lake: str, settings: dict[str, str]) -> None:
    assert describe_store(Location(lake)) == settings
