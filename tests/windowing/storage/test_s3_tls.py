"""A store whose certificate a private authority has signed: followed where it is named, or said."""

from collections.abc import Iterator

import pyarrow as pa
import pytest

from tests.support.private_authority import make_certificate
from tests.support.s3_server import S3Server, started_s3_server
from windowing.location import Location
from windowing.storage import control
from windowing.storage.store import store_of

COLUMNS = pa.schema([("n", pa.int64())])
pytestmark = pytest.mark.s3


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[S3Server]:
    """A server with TLS."""
    certificate = make_certificate(tmp_path_factory.mktemp("authority"))
    with started_s3_server(tmp_path_factory.mktemp("s3"), certificate) as server:
        yield server


@pytest.fixture
def home(server: S3Server, monkeypatch: pytest.MonkeyPatch) -> Location:
    """A directory without files; the environment says where S3 is, and not whom to trust."""
    for name, value in server.environ.items():
        monkeypatch.setenv(name, value)
    for name in ("SSL_CERT_FILE", "SSL_CERT_DIR", "AWS_CA_BUNDLE"):
        monkeypatch.delenv(name, raising=False)
    return Location(server.make_home())


def trust(server: S3Server, monkeypatch: pytest.MonkeyPatch) -> None:
    """Names the authority of the server."""
    assert server.certificate is not None
    monkeypatch.setenv("SSL_CERT_FILE", str(server.certificate.authority))


def test_an_authority_that_is_named_is_trusted(
    home: Location, server: S3Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also by a process that has asked the store before."""
    with pytest.raises(OSError, match="SSL_CERT_FILE"):
        store_of(home).read(home / "a")
    trust(server, monkeypatch)
    store_of(home).write(home / "a", b"1")
    assert store_of(home).read(home / "a") == b"1"
    control.create_table(home / "t", COLUMNS)
    assert control.open_table(home / "t") is not None


@pytest.mark.parametrize("ask", [lambda place: store_of(place).read(place), control.open_table])
def test_an_unknown_authority_is_a_sentence(
    ask: object, home: Location, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert callable(ask)
    said = "nobody here knows the authority that signed the certificate of the store; name the file"
    with pytest.raises(OSError, match=said):
        ask(home / "a")


def test_a_certificate_of_another_address_is_a_sentence(
    home: Location, server: S3Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    trust(server, monkeypatch)
    monkeypatch.setenv("AWS_ENDPOINT_URL", f"https://localhost:{server.port}")
    for ask in (store_of(home).read, control.open_table):
        with pytest.raises(OSError, match="the certificate of the store is not valid for it; "):
            ask(home / "a")
