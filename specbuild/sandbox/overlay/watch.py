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
"""Seconds after which the layer is measured in any case: what others free between two looks hides what it takes."""
_WALK_SHARE = 20
"""A walk over the layer is followed by at least this many times its duration without one."""


class Disk:
    """The size of a layer: bounded from above by what the filesystem lost, measured when that could be too much.

    What was lost from one look to the next is added up: room that others make is not taken for the layer's.
    """

    def __init__(self, folder: Path, size: int, measure: Callable[[], Awaitable[int]]) -> None:
        self._folder = folder
        self._measure = measure
        self._size = size
        """As last measured."""
        self._lost = 0
        """Bytes that the filesystem lost since."""
        self._free = self._free_now()
        self._walked = time.monotonic()
        self._next_walk = 0.0

    def _free_now(self) -> int:
        numbers = os.statvfs(self._folder)
        return numbers.f_bfree * numbers.f_frsize

    async def check(self, limit: int) -> tuple[int, float]:
        """A size that it has, or surely does not exceed while below `limit`, and seconds until the next look."""
        now, free = time.monotonic(), self._free_now()
        self._lost += max(0, self._free - free)
        self._free = free
        most = self._size + self._lost
        if most > limit or now - self._walked > _WALK_EVERY:
            if now < self._next_walk:
                return self._size, self._next_walk - now
            most = await self._walk()
        return most, min(_LATEST, max(_SOONEST, (limit - most) / _FASTEST_WRITER))

    async def _walk(self) -> int:
        began = time.monotonic()
        self._lost, self._free = 0, self._free_now()
        self._size = await self._measure()
        self._walked = time.monotonic()
        self._next_walk = self._walked + _WALK_SHARE * (self._walked - began)
        return self._size
