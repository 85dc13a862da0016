"""The pipe that a Command writes to."""

from __future__ import annotations

import os
from pathlib import Path
from types import TracebackType

import anyio

from specbuild.sandbox.contract import LineSink
from specbuild.sandbox.lines import Lines

_CHUNK = 64 << 10


class Output(Lines):
    """Reads a pipe to its end. A context manager that owns the pipe's descriptor and the log."""

    def __init__(self, fd: int, on_line: LineSink | None, log: Path | None) -> None:
        super().__init__(on_line, log)
        self._fd = fd

    def __enter__(self) -> Output:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        os.close(self._fd)
        self.close()

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
            self.take(chunk)
            await anyio.lowlevel.checkpoint()
        self.finish()
