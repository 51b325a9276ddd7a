"""Messages between client and engine: JSON with its length before it, and open files beside it."""

import json
import os
import socket
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

_LENGTH_BYTES = 4
_LONGEST = 16 * 1024 * 1024
"""No request is as long: an environment has at most a few megabytes."""
_MOST_FILES = 3


@dataclass(frozen=True)
class Frame:
    """One message, and the descriptors that came with it."""

    body: Mapping[str, Any]
    files: tuple[int, ...] = ()


def send_frame(
    connection: socket.socket, body: Mapping[str, Any], files: Sequence[int] = ()
) -> None:
    """Sends `body`; the receiver gets descriptors of its own of the open `files`."""
    text = json.dumps(body).encode()
    socket.send_fds(connection, [len(text).to_bytes(_LENGTH_BYTES, "big")], files)
    connection.sendall(text)


def receive_frame(connection: socket.socket) -> Frame | None:
    """The next message; None where the sender has closed the connection, or sent anything else."""
    header, files, _, _ = socket.recv_fds(connection, _LENGTH_BYTES, _MOST_FILES)
    length = int.from_bytes(header, "big")
    text = _receive_exactly(connection, length) if length <= _LONGEST else b""
    try:
        body = json.loads(text)
    except ValueError:
        body = None
    if isinstance(body, dict):
        return Frame(body, tuple(files))
    for file in files:
        os.close(file)
    return None


def _receive_exactly(connection: socket.socket, length: int) -> bytes:
    """So many bytes, or fewer at the end of the connection."""
    parts = []
    while length > 0 and (part := connection.recv(min(length, 1 << 16))):
        parts.append(part)
        length -= len(part)
    return b"".join(parts)
