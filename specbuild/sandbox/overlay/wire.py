"""Messages between the engine and its helper: JSON in a memory file, sent with other descriptors over a unix socket.

A memory file, because one message with its descriptors must go through whole, and argument lists can be longer than
what a socket takes at once.
"""

from __future__ import annotations

import array
import json
import os
import socket
from collections.abc import Sequence
from typing import Any

Message = dict[str, Any]
"""The keys of each kind of message are written down where it is made: `client` and `helper`."""

_MAX_FDS = 250
"""The kernel takes 253 descriptors a message (SCM_MAX_FD)."""


def memory_file(data: bytes, name: str = "specbuild") -> int:
    """A descriptor of an anonymous file that holds `data`, at its start, closed on exec."""
    fd = os.memfd_create(name, os.MFD_CLOEXEC)
    try:
        view = memoryview(data)
        while view:
            view = view[os.write(fd, view) :]
        os.lseek(fd, 0, os.SEEK_SET)
    except BaseException:
        os.close(fd)
        raise
    return fd


def send(sock: socket.socket, message: Message, fds: Sequence[int] = ()) -> None:
    """Send one message. Raises BlockingIOError when the socket is full, OSError when nobody is there."""
    if len(fds) > _MAX_FDS:
        raise OSError(f"a message cannot carry {len(fds)} descriptors")
    payload = memory_file(json.dumps(message).encode())
    try:
        rights = array.array("i", [payload, *fds])
        sock.sendmsg([b"m"], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, rights)], socket.MSG_NOSIGNAL)
    finally:
        os.close(payload)


def receive(sock: socket.socket) -> tuple[Message, list[int]] | None:
    """The next message and its descriptors, which the caller owns from here; None when the other side is gone."""
    space = socket.CMSG_SPACE(array.array("i").itemsize * (_MAX_FDS + 1))
    try:
        data, ancillary, _, _ = sock.recvmsg(1, space, socket.MSG_CMSG_CLOEXEC)
    except ConnectionError:
        return None
    rights = array.array("i")
    for level, kind, content in ancillary:
        if level == socket.SOL_SOCKET and kind == socket.SCM_RIGHTS:
            rights.frombytes(content[: len(content) - len(content) % rights.itemsize])
    if not data or not rights:
        return None
    payload, *fds = rights
    with os.fdopen(payload, "rb") as file:
        file.seek(0)
        return json.load(file), fds
