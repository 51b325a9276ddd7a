"""The store on HDFS keeps the contract of all stores, also where it is lost for a while."""

import pytest

from tests.support.shared_store_contract import SharedStoreContract
from windowing.location import Location
from windowing.storage.store import Store, store_of


@pytest.fixture
def home(hdfs_home: Location) -> Location:
    """A directory without files."""
    return hdfs_home


class TestHdfsStore(SharedStoreContract):
    """A name node and a data node."""

    @pytest.fixture
    def store(self, home: Location) -> Store:
        """A store."""
        return store_of(home)
