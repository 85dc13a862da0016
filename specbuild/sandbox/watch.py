"""Watches a running Command for what the kernel does not bound: time, silence, and the size of the layer."""

from __future__ import annotations

import time
from typing import Protocol

import anyio

from specbuild.sandbox.contract import Command, End, Limits
from specbuild.sandbox.lines import Lines


class Killable(Protocol):
    """Something that runs."""

    def kill(self) -> None:
        """Have it ended, at once; does not wait."""
        ...


class Disk(Protocol):
    """The size of a layer."""

    async def check(self, limit: int) -> tuple[int, float]:
        """A size that it has, or surely does not exceed while below `limit`, and seconds until the next look."""
        ...


class Watch:
    """Kills the Command and says why in `end` and `note`, or sleeps until `stop`."""

    def __init__(
        self,
        command: Command,
        limits: Limits,
        output: Lines,
        disk: Disk,
        target: Killable,
    ) -> None:
        self._command = command
        self._limits = limits
        self._output = output
        self._disk = disk
        self._target = target
        self._started = time.monotonic()
        self._scope = anyio.CancelScope()
        self.end: End | None = None
        self.note = ""

    def stop(self) -> None:
        """The Command has ended by itself."""
        self._scope.cancel()

    async def run(self) -> None:
        """Until stopped, or until a limit was hit and the Command killed."""
        with self._scope:
            while self.end is None:  # noqa: ASYNC110 - the kernel tells nobody of these
                await anyio.sleep(max(0.0, await self._check()))
            self._target.kill()

    async def _check(self) -> float:
        """Look at everything; seconds until it is worth looking again."""
        now = time.monotonic()
        waits = [3600.0]
        if (timeout := self._command.timeout) is not None:
            waits.append(self._started + timeout - now)
            if waits[-1] <= 0:
                return self._stop_for(End.TIMEOUT, f"it took longer than {timeout:g} s")
        if (silence := self._command.silence) is not None:
            waits.append(self._output.last + silence - now)
            if waits[-1] <= 0:
                return self._stop_for(End.SILENT, f"it wrote nothing for {silence:g} s")
        if (limit := self._limits.disk_bytes) is not None:
            size, wait = await self._disk.check(limit)
            waits.append(wait)
            if size > limit:
                return self._stop_for(
                    End.OUT_OF_DISK,
                    f"its files grew to {size / (1 << 20):,.0f} MiB, over the limit of {limit / (1 << 20):,.0f} MiB",
                )
        return min(waits)

    def _stop_for(self, end: End, note: str) -> float:
        self.end, self.note = end, note
        return 0.0
