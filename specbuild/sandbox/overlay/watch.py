"""Watches a running Command for what the kernel does not bound: time, silence, and the size of the layer."""

from __future__ import annotations

import os
import time
from collections.abc import Awaitable, Callable
from pathlib import Path

import anyio

from specbuild.sandbox.contract import Command, End, Limits
from specbuild.sandbox.overlay.client import Call
from specbuild.sandbox.overlay.output import Output

_FASTEST_WRITER = 4 << 30
"""Bytes a second that nothing here writes faster than; how soon a limit can be reached follows from it."""
_SOONEST, _LATEST = 0.02, 1.0
_WALK_EVERY = 60.0
"""Seconds after which the layer is measured in any case: what others free meanwhile hides what it takes."""
_WALK_SHARE = 20
"""A walk over the layer is followed by at least this many times its duration without one."""


class Watch:
    """Kills the Command and says why in `end` and `note`, or sleeps until `stop`."""

    def __init__(
        self,
        command: Command,
        limits: Limits,
        output: Output,
        disk: Disk,
        call: Call,
    ) -> None:
        self._command = command
        self._limits = limits
        self._output = output
        self._disk = disk
        self._call = call
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
            self._call.kill()

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


class Disk:
    """The size of a layer: bounded from above by what the filesystem lost, measured when that could be too much."""

    def __init__(self, folder: Path, size: int, measure: Callable[[], Awaitable[int]]) -> None:
        self._folder = folder
        self._measure = measure
        self._size = size
        """As last measured."""
        self._free = self._free_now()
        self._walked = time.monotonic()
        self._next_walk = 0.0

    def _free_now(self) -> int:
        numbers = os.statvfs(self._folder)
        return numbers.f_bfree * numbers.f_frsize

    async def check(self, limit: int) -> tuple[int, float]:
        """A size that it has, or surely does not exceed while below `limit`, and seconds until the next look."""
        now = time.monotonic()
        most = self._size + max(0, self._free - self._free_now())
        if most > limit or now - self._walked > _WALK_EVERY:
            if now < self._next_walk:
                return self._size, self._next_walk - now
            most = await self._walk()
        return most, min(_LATEST, max(_SOONEST, (limit - most) / _FASTEST_WRITER))

    async def _walk(self) -> int:
        began, free = time.monotonic(), self._free_now()
        self._size, self._free = await self._measure(), free
        self._walked = time.monotonic()
        self._next_walk = self._walked + _WALK_SHARE * (self._walked - began)
        return self._size
