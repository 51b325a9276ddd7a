"""A session whose log store does not ask the fence commits to no shared lake. No JVM."""

from types import SimpleNamespace
from typing import Any

import pytest

from jobs.locking import lock
from jobs.locking.lock import _fenced
from tests.support.leased_process import describe_trips
from windowing.errors import CommitUnknown, StateRefused, UsageError
from windowing.location import Location
from windowing.spec.load import load_pipeline

STORES = {
    "s3://bucket/lake": ("spark.delta.logStore.s3a.impl", "tidemark.ConditionalLogStore"),
    "hdfs://node:8020/lake": ("spark.delta.logStore.hdfs.impl", "tidemark.FencedLogStore"),
}


def session_with(monkeypatch: pytest.MonkeyPatch, **given: str) -> Any:
    """A session whose context has these settings: the fences that stand, by their lakes."""
    monkeypatch.setattr(lock, "read_setting", lambda _, name: given.get(name, ""))
    fences: list[str] = []
    fence = SimpleNamespace(lift=fences.clear)
    monkeypatch.setattr(lock, "CommitFence", lambda spark, lake: spark.append(lake) or fence)
    return fences


@pytest.mark.parametrize("lake", STORES)
@pytest.mark.parametrize("found", ["", "io.delta.storage.S3DynamoDBLogStore"])
def test_another_log_store_is_refused(
    found: str, lake: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    trips = load_pipeline(describe_trips(Location(lake)))
    name, ours = STORES[lake]
    fences = session_with(monkeypatch, **{name: found})
    with pytest.raises(UsageError) as refused, _fenced(fences, trips):
        pass
    assert f"{name} of this Spark is {found or 'not set'}, " in str(refused.value)
    assert f"set it to {ours}, as `tidemark.spark_session` does" in str(refused.value)
    assert fences == []


@pytest.mark.parametrize("lake", STORES)
def test_our_log_store_is_fenced(lake: str, monkeypatch: pytest.MonkeyPatch) -> None:
    trips = load_pipeline(describe_trips(Location(lake)))
    fences = session_with(monkeypatch, **dict([STORES[lake]]))
    with _fenced(fences, trips):
        assert fences == [trips.root.hadoop]
    assert fences == []


@pytest.mark.parametrize(
    ("error", "stays"),
    [
        (StateRefused("TABLE_LOST", "made up"), False),
        (CommitUnknown("made up"), True),
        (ValueError("made up"), True),
    ],
)
def test_a_fence_stays_where_the_jvm_may_still_be_at_work(
    error: Exception,
    stays: bool,  # noqa: FBT001
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    lake = "s3://bucket/lake"
    fences = session_with(monkeypatch, **dict([STORES[lake]]))
    with (
        pytest.raises(type(error), match="made up"),
        _fenced(fences, load_pipeline(describe_trips(Location(lake)))),
    ):
        raise error
    assert bool(fences) is stays
