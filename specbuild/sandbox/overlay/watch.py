"""How large the upper layer of a running Command is."""

from __future__ import annotations

import os
import time
from collections.abc import Awaitable, Callable
from pathlib import Path

_FASTEST_WRITER = 4 << 30
"""Bytes a second that nothing here writes faster than; how soon a limit can be reached follows from it."""
_SOONEST, _LATEST = 0.02, 1.0
_WALK_EVERY = 60.0
"""Seconds after which the layer is measured in any case: what others free meanwhile hides what it takes."""
_WALK_SHARE = 20
"""A walk over the layer is followed by at least this many times its duration without one."""


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
