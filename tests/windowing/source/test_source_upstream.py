"""A pipeline that would read another's output before its expectations have passed. No JVM."""

from dataclasses import replace
from pathlib import Path

import pytest

from tests.support.published_lake import PublishedLake
from windowing.errors import SpecError
from windowing.ledger.history import LedgerHistory
from windowing.ledger.rule import DONE, LedgerEntry
from windowing.source.upstream import check_upstream, describe_missing, describe_unpublished
from windowing.spec.load import load_pipeline
from windowing.spec.pipeline import Pipeline, PlacedBy

SPEC = """
name: days
lake: lake
source: {table: TABLE, event_time: window_start, key: [place]}
watermark: {delay: 0 seconds}
aggregates: {n: sum(n)}
windows:
  daily: {kind: tumbling, size: 1 day}
"""
BEGUN = LedgerHistory((LedgerEntry(DONE, 0, batch=0),))


def reading(home: Path, table: str) -> Pipeline:
    """A pipeline with that source."""
    spec = home / "days.yaml"
    spec.write_text(SPEC.replace("TABLE", table))
    return load_pipeline(spec)


def test_it_begins_with_the_published_table_alone(tmp_path: Path) -> None:
    lake = PublishedLake(tmp_path)
    first = LedgerHistory()
    with pytest.raises(SpecError, match=r"name \S+/trips/published/hourly, which has what was"):
        check_upstream(reading(tmp_path, "lake/trips/hourly"), first)
    check_upstream(reading(tmp_path, "lake/trips/hourly"), BEGUN)
    for table in ("lake/trips/published/hourly", "lake/bronze/trips", "lake/trips/_late"):
        check_upstream(reading(tmp_path, table), first)
    check_upstream(reading(tmp_path, "shop.orders"), first)
    assert lake.pipeline.root.local.exists()


def test_before_the_first_publication_it_says_so(tmp_path: Path) -> None:
    PublishedLake(tmp_path)
    missing = "nothing of hourly is published yet"
    days = reading(tmp_path, "lake/trips/published/hourly")
    # Without a project, a pipeline has no name on the command line.
    by_spec = "publish the pipeline 'trips' by its spec"
    assert describe_unpublished(days) == f"{missing}; {by_spec}"
    for options, command in (
        ((), "tidemark publish trips"),
        (("--target", "prod"), "tidemark publish trips --target prod"),
    ):
        placed = replace(days, placed_by=PlacedBy("/tidemark.toml", "prod", options))
        assert describe_unpublished(placed) == f"{missing}; `{command}` does that"
    for table in ("lake/trips/hourly", f"{tmp_path}/published/hourly", "published.hourly"):
        assert describe_unpublished(reading(tmp_path, table)) is None


def test_before_the_first_ingest_it_names_that_command(tmp_path: Path) -> None:
    table = "lake/bronze/trips, files: {folder: landing, columns: columns.yaml}"
    from_files = reading(tmp_path, table)
    command = f"`tidemark ingest {tmp_path / 'days.yaml'}`"
    said = describe_missing(from_files)
    assert said.endswith(
        f"; run {command} first, which makes it from the files in '{tmp_path}/landing'"
    )
    assert describe_missing(reading(tmp_path, "lake/bronze/trips")).endswith(
        "lake/bronze/trips'; create it or correct the path"
    )
