"""What a Command writes: handed on line by line, its end kept, all of it on disk if wanted."""

from __future__ import annotations

import os
import time
from pathlib import Path
from types import TracebackType

import anyio

from specbuild.sandbox.contract import LineSink

TAIL_BYTES = 64 << 10
MAX_LINE_BYTES = 64 << 10
"""A longer line is handed on in pieces."""
_CHUNK = 64 << 10


class Output:
    """Reads a pipe to its end, in bounded memory. A context manager that owns the pipe's descriptor and the log."""

    def __init__(self, fd: int, on_line: LineSink | None, log: Path | None) -> None:
        self._fd = fd
        self._on_line = on_line
        self._log = log.open("wb", buffering=0) if log else None
        self._tail = bytearray()
        self._partial = bytearray()
        self.last = time.monotonic()
        """When something was last written."""

    def __enter__(self) -> Output:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        os.close(self._fd)
        if self._log:
            self._log.close()

    async def pump(self) -> None:
        """Read until nobody can write any more."""
        while True:
            try:
                chunk = os.read(self._fd, _CHUNK)
            except BlockingIOError:
                await anyio.wait_readable(self._fd)
                continue
            if not chunk:
                break
            self._take(chunk)
            await anyio.lowlevel.checkpoint()
        if self._partial:
            self._emit(bytes(self._partial))
            self._partial.clear()

    def _take(self, chunk: bytes) -> None:
        self.last = time.monotonic()
        if self._log:
            self._log.write(chunk)  # into the page cache: a thread would cost more than it
        self._tail += chunk
        if len(self._tail) > 2 * TAIL_BYTES:
            del self._tail[:-TAIL_BYTES]
        if self._on_line:
            self._split(chunk)

    def _split(self, chunk: bytes) -> None:
        *lines, rest = (bytes(self._partial) + chunk).split(b"\n")
        for line in lines:
            self._emit(line)
        while len(rest) > MAX_LINE_BYTES:
            self._emit(rest[:MAX_LINE_BYTES])
            rest = rest[MAX_LINE_BYTES:]
        self._partial[:] = rest

    def _emit(self, line: bytes) -> None:
        if self._on_line:
            self._on_line(line.removesuffix(b"\r").decode("utf-8", "replace"))

    @property
    def tail(self) -> str:
        """The last whole lines, at most TAIL_BYTES of them."""
        data = bytes(self._tail[-TAIL_BYTES:])
        if len(self._tail) > TAIL_BYTES and b"\n" in data:
            data = data[data.index(b"\n") + 1 :]
        return data.decode("utf-8", "replace")
