"""What a Command writes: handed on line by line, its end kept, all of it on disk if wanted. In bounded memory."""

from __future__ import annotations

import time
from pathlib import Path

from specbuild.sandbox.contract import LineSink

TAIL_BYTES = 64 << 10
MAX_LINE_BYTES = 64 << 10
"""A longer line is handed on in pieces."""


class Lines:
    """Takes output as it comes, in pieces of any size. Whoever makes one closes it."""

    def __init__(self, on_line: LineSink | None, log: Path | None) -> None:
        self._on_line = on_line
        self._log = log.open("wb", buffering=0) if log else None
        self._tail = bytearray()
        self._partial = bytearray()
        self.last = time.monotonic()
        """When something was last written."""

    def take(self, chunk: bytes) -> None:
        """The next piece of the output."""
        self.last = time.monotonic()
        if self._log:
            self._log.write(chunk)  # into the page cache: a thread would cost more than it
        self._tail += chunk
        if len(self._tail) > 2 * TAIL_BYTES:
            del self._tail[:-TAIL_BYTES]
        if self._on_line:
            self._split(chunk)

    def finish(self) -> None:
        """Nothing more comes: hand on a last line that has no end."""
        if self._partial:
            self._emit(bytes(self._partial))
            self._partial.clear()

    def close(self) -> None:
        """Close the log."""
        if self._log:
            self._log.close()

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
