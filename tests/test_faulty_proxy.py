"""What the proxy of the tests on S3 does to requests, in front of a server of a few lines."""

import http.client
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from time import sleep

import pytest

from tests.support.faulty_proxy import Fault, FaultyProxy, Planned, started_proxy

LISTING = "/bucket?list-type=2&prefix=lake"
FILES: list[str] = []


class Lister(BaseHTTPRequestHandler):
    """It answers each request by the files that there are."""

    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        """A listing."""
        content = ",".join(FILES).encode()
        self.send_response_only(200)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, format: str, *args: object) -> None:
        """Prints nothing."""


@pytest.fixture
def proxy() -> Iterator[FaultyProxy]:
    """A proxy in front of such a server, which has one file."""
    FILES[:] = ["a"]
    with ThreadingHTTPServer(("127.0.0.1", 0), Lister) as server:
        thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
        thread.start()
        with started_proxy(f"http://127.0.0.1:{server.server_port}") as started:
            yield started
        server.shutdown()
        thread.join()


def list_files(proxy: FaultyProxy) -> tuple[int, str]:
    """Status and content of a listing."""
    connection = http.client.HTTPConnection("127.0.0.1", proxy.port, timeout=10)
    try:
        connection.request("GET", LISTING)
        answer = connection.getresponse()
        return answer.status, answer.read().decode()
    finally:
        connection.close()


def test_a_late_listing_lacks_what_was_written_meanwhile(proxy: FaultyProxy) -> None:
    proxy.plan(Planned(Fault.LATE, frozenset({"LIST"})))
    with ThreadPoolExecutor(1) as pool:
        listed = pool.submit(list_files, proxy)
        while not proxy.asked:
            sleep(0.01)
        FILES.append("b")
        assert not listed.done()
        assert listed.result() == (200, "a")
    assert list_files(proxy) == (200, "a,b")


def test_credentials_expire_after_so_many_requests(proxy: FaultyProxy) -> None:
    proxy.plan(Planned(Fault.EXPIRED, skipped=2, times=None))
    assert [list_files(proxy)[0] for _ in range(4)] == [200, 200, 403, 403]
    assert "ExpiredToken" in list_files(proxy)[1]
