"""A location as others spell it."""

from pathlib import Path

import pytest

from windowing.location import Location


def test_a_path_is_joined_named_and_spelled() -> None:
    table = Location("/data/my lake/100%") / "shop" / "hourly"
    assert str(table) == "/data/my lake/100%/shop/hourly"
    assert (table.name, table.local) == ("hourly", Path("/data/my lake/100%/shop/hourly"))
    assert table.sql == "delta.`/data/my lake/100%/shop/hourly`"
    assert table.uri == "file:///data/my%20lake/100%25/shop/hourly"
    assert not table.is_in_catalog


def test_the_root_of_a_disk_is_a_lake() -> None:
    assert Location("/") / "shop" == Location("/shop")


def test_a_path_on_s3_is_spelled_as_each_client_asks_for_it() -> None:
    table = Location("s3://bucket/my lake") / "shop" / "hourly"
    assert (str(table), table.uri) == ("s3://bucket/my lake/shop/hourly",) * 2
    assert table.hadoop == "s3a://bucket/my lake/shop/hourly"
    assert table.sql == "delta.`s3a://bucket/my lake/shop/hourly`"
    assert table.bucket_and_key == ("bucket", "my lake/shop/hourly")
    assert (table.name, table.parent) == ("hourly", Location("s3://bucket/my lake/shop"))
    assert not table.is_local
    assert not table.is_in_catalog
    with pytest.raises(ValueError, match="no path of this machine"):
        _ = table.local


def test_only_a_path_on_s3_has_a_bucket() -> None:
    assert Location("/data/shop").hadoop == "/data/shop"
    assert Location("/data").parent == Location("/")
    with pytest.raises(ValueError, match="not on S3"):
        _ = Location("/data/shop").bucket_and_key


def test_a_path_on_hdfs_is_spelled_alike_by_all_clients() -> None:
    table = Location("hdfs://node:8020/my lake") / "shop" / "hourly"
    assert {str(table), table.uri, table.hadoop} == {"hdfs://node:8020/my lake/shop/hourly"}
    assert table.cluster_and_path == ("hdfs://node:8020", "/my lake/shop/hourly")
    assert table.is_on_hdfs
    assert not table.is_local
    assert not table.is_in_catalog
    with pytest.raises(ValueError, match="not on HDFS"):
        _ = Location("s3://bucket/shop").cluster_and_path


def test_each_part_of_a_catalog_name_is_quoted() -> None:
    table = Location("my-catalog.shop.orders")
    assert table.is_in_catalog
    assert table.sql == "`my-catalog`.`shop`.`orders`"


@pytest.mark.parametrize(
    ("other", "is_inside"),
    [
        ("/lake/shop", True),
        ("/lake/shop/hourly", True),
        ("/lake/shop_raw", False),
        ("/lake", False),
        ("shop.orders", False),
    ],
)
def test_a_directory_contains_itself_and_what_lies_below(other: str, *, is_inside: bool) -> None:
    assert Location("/lake/shop").contains(Location(other)) == is_inside
