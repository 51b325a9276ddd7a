"""An authority of the tests, which nobody knows, and the certificate of a server that it signs."""

import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

import pytest

_KEY = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2")


@dataclass(frozen=True)
class ServerCertificate:
    """The files of a certificate for 127.0.0.1, of its key, and of the authority that signed it."""

    file: Path
    key: Path
    authority: Path


def make_certificate(home: Path) -> ServerCertificate:
    """A certificate by an authority of its own, in an empty directory."""
    if shutil.which("openssl") is None:
        pytest.skip("no `openssl` is installed")
    made = ServerCertificate(home / "server.pem", home / "server.key", home / "authority.pem")
    names, request, own_key = home / "names", home / "request", home / "authority.key"
    names.write_text("subjectAltName = IP:127.0.0.1\n")
    _run("req", "-x509", *_KEY, "-subj", "/CN=nobody", "-keyout", own_key, "-out", made.authority)
    _run("req", "-new", *_KEY, "-subj", "/CN=127.0.0.1", "-keyout", made.key, "-out", request)
    signed = ("-CA", made.authority, "-CAkey", own_key, "-CAcreateserial", "-extfile", names)
    _run("x509", "-req", "-in", request, *signed, "-days", "2", "-out", made.file)
    return made


def _run(*words: str | Path) -> None:
    done = subprocess.run(["openssl", *words], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
