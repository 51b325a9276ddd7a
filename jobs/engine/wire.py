"""Messages between client and engine: JSON with its length before it, and open files with it."""

import json
import os
import socket
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from jobs.engine.engine_directory import EngineDirectory

_LENGTH_BYTES = 4
_LONGEST = 16 * 1024 * 1024
"""No request is as long: an environment has at most a few megabytes."""
_MOST_FILES = 3
_ANSWER_SECONDS = 10.0
"""How long an engine may take to accept a command: it may just be starting a JVM."""


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


def connect(directory: EngineDirectory) -> socket.socket | None:
    """A connection to the engine that listens there; None where none does."""
    connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    connection.settimeout(_ANSWER_SECONDS)
    try:
        connection.connect(directory.socket)
    except OSError:
        connection.close()
        return None
    return connection


def ask_engine(directory: EngineDirectory, request: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """The engine's answer to a request that has only one; None where no engine answers."""
    connection = connect(directory)
    if connection is None:
        return None
    with connection:
        try:
            send_frame(connection, request)
            frame = receive_frame(connection)
        except OSError:
            return None
    return None if frame is None else frame.body
