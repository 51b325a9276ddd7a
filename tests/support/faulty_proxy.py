"""A proxy in front of an S3 server, on which requests fail as they do behind a network.

It also counts requests by kind, so that tests can hold bounds.
"""

import http.client
import socket
import time
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from enum import Enum
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Lock, Thread
from urllib.parse import parse_qs, unquote, urlsplit

from tests.support.s3_server import KEYS, environ_of
from tests.support.s3_signature import sign

READS, CHANGES = frozenset({"GET", "HEAD", "LIST"}), frozenset({"PUT", "DELETE", "COPY", "POST"})
_CONDITIONS = ("if-match", "if-none-match")
_SILENCE = 2.0
_LATE_SECONDS = 0.3
"""Less than any client waits."""
_WRAPPED = ("content-encoding", "x-amz-decoded-content-length", "x-amz-trailer")
_HOP = ("connection", "keep-alive", "transfer-encoding", "content-length")


class Fault(Enum):
    """What happens to a request."""

    LOST = "it does not reach the server, and its connection is closed"
    UNANSWERED = "the server does it, and its connection is closed without an answer"
    REFUSED = "the server is too busy (503)"
    EXPIRED = "the credentials have expired (403)"
    SILENT = "it is not answered for so long that its client gives up"
    LATE = "the server does it at once, and its answer comes later, when it may be out of date"
    UNCONDITIONAL = "the server does it as if it named no condition"


@dataclass(frozen=True)
class Planned:
    """`fault` for `times` requests of `kinds` after `skipped` ones; None: for all that follow.

    Of these it befalls the first, and then every so many-th.
    """

    fault: Fault
    kinds: frozenset[str] = READS | CHANGES
    skipped: int = 0
    times: int | None = 1
    every: int = 1

    def befalls(self, kind: str, number: int) -> bool:
        """Whether the request `number`, counted from 0 among those of `kinds`, is one."""
        place = number - self.skipped
        if kind not in self.kinds or place < 0 or place % self.every:
            return False
        return self.times is None or place < self.times


@dataclass(frozen=True)
class Asked:
    """A request: its kind, its key in the bucket, and what its client calls itself.

    `key` of a LIST is the prefix. `status` is that of the answer, 0 where there was none.
    """

    kind: str
    key: str
    client: str
    status: int


@dataclass
class FaultyProxy:
    """It passes requests on to the server at `target`, but for those that `planned` is about."""

    target: str
    planned: tuple[Planned, ...] = ()
    counts: Counter[str] = field(default_factory=Counter)
    asked: list[Asked] = field(default_factory=list, repr=False)
    port: int = 0
    _turn: Lock = field(default_factory=Lock, repr=False)

    @property
    def endpoint(self) -> str:
        """The address that clients are given."""
        return f"http://127.0.0.1:{self.port}"

    @property
    def environ(self) -> dict[str, str]:
        """The variables by which every client finds this proxy."""
        return environ_of(self.endpoint)

    def plan(self, *planned: Planned) -> None:
        """From now on this happens to requests, counted anew."""
        with self._turn:
            self.planned = planned
            self.counts = Counter()
            self.asked = []

    def begin(self) -> None:
        """From now on requests are counted anew, and nothing happens to them."""
        self.plan()

    def note(self, kind: str) -> Fault | None:
        """Counts a request; what happens to it."""
        with self._turn:
            found = None
            for each in self.planned:
                number = sum(self.counts[name] for name in each.kinds)
                if found is None and each.befalls(kind, number):
                    found = each.fault
            self.counts[kind] += 1
            return found


def key_of(target: str) -> str:
    """The key that a request is about, or the prefix that it lists."""
    url = urlsplit(target)
    prefix = parse_qs(url.query).get("prefix")
    return prefix[0] if prefix else unquote(url.path.strip("/").partition("/")[2])


def kind_of(method: str, target: str, headers: Mapping[str, str]) -> str:
    """What S3 calls a request: one of READS or CHANGES."""
    url = urlsplit(target)
    query = parse_qs(url.query, keep_blank_values=True)
    if method == "GET" and ("list-type" in query or not url.path.strip("/").partition("/")[2]):
        return "LIST"
    if method == "PUT" and "x-amz-copy-source" in headers:
        return "COPY"
    if method == "POST" and "delete" in query:
        return "DELETE"
    return method


class _Handler(BaseHTTPRequestHandler):
    """One connection of a client."""

    protocol_version = "HTTP/1.1"
    proxy: FaultyProxy

    def handle_any(self) -> None:
        """Passes the request on, or what is planned instead."""
        body = self._read_body()
        headers = {name.lower(): value for name, value in self.headers.items()}
        kind = kind_of(self.command, self.path, headers)
        fault = self.proxy.note(kind)
        if fault in (Fault.LOST, Fault.SILENT):
            time.sleep(_SILENCE if fault is Fault.SILENT else 0)
            self._hang_up()
        elif fault is Fault.REFUSED:
            self._answer(503, {}, _describe("SlowDown"))
        elif fault is Fault.EXPIRED:
            self._answer(403, {}, _describe("ExpiredToken"))
        else:
            if fault is Fault.UNCONDITIONAL:
                kept = {name: headers[name] for name in headers if name not in _CONDITIONS}
                kept, body = _unwrap(kept, body)
                headers = sign(KEYS, self.command, self.path, kept, body)
            status, answered, content = self._pass_on(headers, body)
            client = headers.get("user-agent", "")
            self.proxy.asked.append(Asked(kind, key_of(self.path), client, status))
            if fault is Fault.LATE:
                time.sleep(_LATE_SECONDS)
            if fault is Fault.UNANSWERED:
                self._hang_up()
            else:
                self._answer(status, answered, content)

    do_GET = do_HEAD = do_PUT = do_POST = do_DELETE = handle_any

    def _read_body(self) -> bytes:
        if "chunked" not in self.headers.get("Transfer-Encoding", ""):
            return self.rfile.read(int(self.headers.get("Content-Length", 0)))
        parts = []
        while size := int(self.rfile.readline().partition(b";")[0], 16):
            parts.append(self.rfile.read(size))
            self.rfile.readline()
        while self.rfile.readline().strip():
            pass
        return b"".join(parts)

    def _pass_on(
        self, headers: Mapping[str, str], body: bytes
    ) -> tuple[int, dict[str, str], bytes]:
        connection = http.client.HTTPConnection(urlsplit(self.proxy.target).netloc, timeout=60)
        try:
            connection.putrequest(self.command, self.path, skip_host=True)
            for name, value in headers.items():
                if name not in (*_HOP, "expect"):
                    connection.putheader(name, value)
            if body or self.command in ("PUT", "POST"):
                connection.putheader("content-length", str(len(body)))
            connection.endheaders(body)
            answer = connection.getresponse()
            return answer.status, dict(answer.getheaders()), answer.read()
        except OSError:
            return 502, {}, b""
        finally:
            connection.close()

    def _answer(self, status: int, headers: Mapping[str, str], content: bytes) -> None:
        self.send_response_only(status)
        length = str(len(content))
        for name, value in headers.items():
            if name.lower() == "content-length" and self.command == "HEAD":
                length = value
            elif name.lower() not in _HOP:
                self.send_header(name, value)
        self.send_header("Content-Length", length)
        self.end_headers()
        if self.command != "HEAD":
            # A client may have what it needs already.
            with suppress(BrokenPipeError):
                self.wfile.write(content)

    def _hang_up(self) -> None:
        self.close_connection = True
        self.connection.shutdown(socket.SHUT_RDWR)

    def log_message(self, format: str, *args: object) -> None:
        """Prints nothing."""


def _unwrap(headers: dict[str, str], body: bytes) -> tuple[dict[str, str], bytes]:
    """The request with its content as it is, where its client signed it piece by piece."""
    if "x-amz-decoded-content-length" not in headers:
        return headers, body
    pieces, rest = [], body
    while size := int(rest.partition(b"\r\n")[0].partition(b";")[0], 16):
        rest = rest.partition(b"\r\n")[2]
        pieces.append(rest[:size])
        rest = rest[size + 2 :]
    return {name: headers[name] for name in headers if name not in _WRAPPED}, b"".join(pieces)


def _describe(code: str) -> bytes:
    """An error as S3 words it; it may repeat the token of the session."""
    said = (
        f"<Error><Code>{code}</Code><Message>no</Message><Token-0>{KEYS.secret}</Token-0></Error>"
    )
    return said.encode()


@contextmanager
def started_proxy(target: str) -> Iterator[FaultyProxy]:
    """Inside, a proxy listens in front of the server at `target`."""
    proxy = FaultyProxy(target)
    handler = type("Handler", (_Handler,), {"proxy": proxy})
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        server.daemon_threads = True
        proxy.port = server.server_port
        thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
        thread.start()
        try:
            yield proxy
        finally:
            server.shutdown()
            thread.join()
