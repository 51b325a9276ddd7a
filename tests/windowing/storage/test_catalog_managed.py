"""A table that a catalog manages is told by what Delta, delta-rs and its log say of it."""

from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import write_deltalake

from jobs.foreign_errors.control_errors import control_errors_explained
from jobs.ingest import find_nothing_new
from jobs.publication.editions import refuse_managed
from tests.support.drop_folder import DropFolder
from tests.support.managed_table import become_managed
from windowing.errors import SpecError, StateRefused
from windowing.location import Location
from windowing.merge.rule import published_name
from windowing.source.managed import check_features, managed_refused
from windowing.storage import control
from windowing.storage.catalog_managed import tells_of_catalog

CLAIMED = ("catalogManaged", "catalogOwned", "catalogOwned-preview")
SENTENCE = (
    "source.table: .*/bronze/trips is managed by a catalog, so its log may lack commits; "
    "name an external table that has its rows, such as one that a job of that catalog fills"
)


def make_managed(table: Path, feature: str = "catalogManaged") -> None:
    table.mkdir(parents=True, exist_ok=True)
    write_deltalake(table, pa.table({"id": [1]}))
    become_managed(table, feature)


@pytest.mark.parametrize("feature", CLAIMED)
def test_it_is_not_opened_without_spark(tmp_path: Path, feature: str) -> None:
    make_managed(tmp_path / "t", feature)
    with pytest.raises(control.TableError) as refused:
        control.read_version(Location(str(tmp_path / "t")))
    assert tells_of_catalog(refused.value.reason)


@pytest.mark.parametrize(
    ("message", "told"),
    [
        ("[DELTA_PATH_BASED_ACCESS_TO_CATALOG_MANAGED_TABLE_BLOCKED] Path-based access is", True),
        ("Couldn't locate commit coordinator for: `spark_catalog`.`default`.`t`", True),
        ('feature(s) that are unsupported by Delta Lake "4.4.0": a, catalogOwned.', True),
        ('feature(s) that are unsupported by Delta Lake "4.4.0": variantShredding.', False),
        ("File not found: /lake/catalogOwned/_delta_log", False),
    ],
)
def test_errors_that_tell_it(message: str, told: object) -> None:
    assert tells_of_catalog(message) is told


@pytest.mark.parametrize("feature", CLAIMED)
def test_an_ingest_into_it_is_refused_without_a_jvm(tmp_path: Path, feature: str) -> None:
    drop = DropFolder(tmp_path)
    drop.land("1.csv", "id,place,at\n1,a,2026-03-02T10:05:00Z\n")
    make_managed(tmp_path / "bronze" / "trips", feature)
    with pytest.raises(SpecError, match=SENTENCE) as refused:
        find_nothing_new(drop.pipeline)
    assert (refused.value.exit_code, "\n" in str(refused.value)) == (2, False)


def test_a_feature_alone_tells_it(tmp_path: Path) -> None:
    pipeline = DropFolder(tmp_path).pipeline
    check_features(pipeline, {"deletionVectors", "inCommitTimestamp"})
    with pytest.raises(SpecError, match=SENTENCE):
        check_features(pipeline, {"deletionVectors", "catalogManaged"})


def test_other_errors_pass(tmp_path: Path) -> None:
    with pytest.raises(OSError, match="disk"), managed_refused(DropFolder(tmp_path).pipeline):
        raise OSError("a disk")


def test_a_table_of_the_lake_is_named_with_what_to_do(tmp_path: Path) -> None:
    pipeline = DropFolder(tmp_path).pipeline
    make_managed(pipeline.table("hourly").local)
    sentence = (
        "TABLE_CHANGED: .*/trips/hourly is managed by a catalog, so its log may lack commits; "
        "drop that feature, then run again, or"
    )
    with pytest.raises(StateRefused, match=sentence), control_errors_explained(pipeline):
        control.read_version(pipeline.table("hourly"))


def test_a_published_table_is_refused_before_maintenance(tmp_path: Path) -> None:
    pipeline = DropFolder(tmp_path).pipeline
    shown = pipeline.table(published_name("hourly"))
    refuse_managed(pipeline)
    make_managed(shown.local)
    with pytest.raises(control.TableError) as refused:
        refuse_managed(pipeline)
    assert refused.value.path == shown
