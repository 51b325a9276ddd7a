"""The storage on which whole pipelines are tested besides a disk."""

from collections.abc import Iterator

import pytest

from tests.support.s3_session import session_on_s3
from tests.support.shared_storage import SharedStorage


@pytest.fixture(
    scope="module",
    params=[pytest.param("s3", marks=pytest.mark.s3), pytest.param("hdfs", marks=pytest.mark.hdfs)],
)
def storage(request: pytest.FixtureRequest, jvm: None) -> Iterator[SharedStorage]:
    """Each storage that machines share, for all tests of a file."""
    kind = request.param
    server = request.getfixturevalue(f"{kind}_server")
    if kind == "hdfs":
        yield SharedStorage(kind, server, request.getfixturevalue("spark"))
        return
    with session_on_s3(server) as session:
        yield SharedStorage(kind, server, session)
