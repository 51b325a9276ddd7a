"""A server that speaks S3, on this machine, for the tests that are marked `s3`."""

import http.client
import os
import socket
import ssl
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path

import pytest

from tests.support.private_authority import ServerCertificate
from tests.support.s3_signature import Keys, sign
from windowing.location import Location

BINARY = Path(__file__).parents[2] / ".tools/bin/versitygw"
KEYS = Keys("tidemark-test", "a-made-up-secret-of-the-tests")
_PATIENCE = 30.0
"""Seconds within which a server answers after its start."""
_NUMBERS = count(1)


@dataclass
class S3Server:
    """A server with a data directory `home`, on a port of 127.0.0.1 that it keeps."""

    home: Path
    port: int
    certificate: ServerCertificate | None = None
    process: "subprocess.Popen[bytes] | None" = field(default=None, repr=False)

    @property
    def endpoint(self) -> str:
        """The address that clients are given."""
        scheme = "http" if self.certificate is None else "https"
        return f"{scheme}://127.0.0.1:{self.port}"

    @property
    def environ(self) -> dict[str, str]:
        """The variables by which every client finds this server."""
        return environ_of(self.endpoint)

    def make_bucket(self) -> str:
        """The name of a new bucket."""
        name = f"bucket-{os.getpid()}-{next(_NUMBERS)}"
        status, said = self._ask("PUT", f"/{name}")
        assert status == 200, said
        return name

    def make_home(self) -> str:
        """The URL of a directory in a bucket that nobody else has."""
        return f"s3://{self.make_bucket()}/lakes"

    def make_object(self, bucket: Location, key: str) -> None:
        """An empty object whose key no store would choose, in the bucket of that place."""
        name = bucket.text.removeprefix("s3://").partition("/")[0]
        status, said = self._ask("PUT", f"/{name}/{key}")
        assert status == 200, said

    def start(self) -> None:
        """Starts the server, and returns when it answers."""
        data = self.home / "data"
        data.mkdir(exist_ok=True, parents=True)
        # With tags in files of their own (`--sidecar`) readers may get a content with the tag of
        # the next one, and two writers may then replace it.
        where = ["--port", f"127.0.0.1:{self.port}", "--quiet"]
        if self.certificate is not None:
            where += ["--cert", str(self.certificate.file), "--key", str(self.certificate.key)]
        command = [str(BINARY), *where, "posix", str(data)]
        keys = {"ROOT_ACCESS_KEY": KEYS.access, "ROOT_SECRET_KEY": KEYS.secret}
        with (self.home / "log").open("ab") as log:
            self.process = subprocess.Popen(
                command,
                env={**os.environ, **keys},
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
            )
        self._await_answer()

    def kill(self) -> None:
        """Ends the server as a lost machine ends; `start` brings it back with all its files."""
        if self.process is not None:
            self.process.kill()
            self.process.wait()

    def _await_answer(self) -> None:
        deadline = time.monotonic() + _PATIENCE
        while True:
            try:
                status, said = self._ask("GET", "/")
                assert status == 200, said
                return
            except OSError:
                log = (self.home / "log").read_text()
                assert self.process is not None and self.process.poll() is None, log
                assert time.monotonic() < deadline, log
                time.sleep(0.05)

    def _ask(self, method: str, target: str) -> tuple[int, bytes]:
        host = f"127.0.0.1:{self.port}"
        connection = http.client.HTTPConnection(host, timeout=10)
        if self.certificate is not None:
            known = ssl.create_default_context(cafile=str(self.certificate.authority))
            connection = http.client.HTTPSConnection(host, timeout=10, context=known)
        try:
            connection.request(
                method, target, headers=sign(KEYS, method, target, {"host": host}, b"")
            )
            answer = connection.getresponse()
            return answer.status, answer.read()
        finally:
            connection.close()


def environ_of(endpoint: str) -> dict[str, str]:
    """The variables by which clients find the server at `endpoint`, and its keys."""
    return {
        "AWS_ACCESS_KEY_ID": KEYS.access,
        "AWS_SECRET_ACCESS_KEY": KEYS.secret,
        "AWS_REGION": KEYS.region,
        "AWS_ENDPOINT_URL": endpoint,
    }


@contextmanager
def started_s3_server(
    home: Path, certificate: ServerCertificate | None = None
) -> Iterator[S3Server]:
    """Inside, a server answers; `home` is an empty directory for all that it writes."""
    if not BINARY.exists():
        pytest.fail(f"{BINARY} is not there; `make test-s3` installs it", pytrace=False)
    server = S3Server(home, find_free_port(), certificate)
    server.start()
    try:
        yield server
    finally:
        server.kill()


def find_free_port() -> int:
    """A port of 127.0.0.1 on which nobody listens."""
    with socket.socket() as asked:
        asked.bind(("127.0.0.1", 0))
        return int(asked.getsockname()[1])
