"""How much a Sandbox has written: measured where the engine's storage can be reached, else asked of the engine."""

from __future__ import annotations

import time
from pathlib import Path

import anyio

from specbuild.sandbox.docker.boxes import Boxes
from specbuild.sandbox.docker.fidelity import folder_of
from specbuild.sandbox.overlay.trees import measure

_SOONEST, _LATEST = 0.25, 5.0
"""Seconds between two looks."""
_SHARE = 20
"""A look, which walks over all that was written, is followed by at least this many times its duration without one."""


class Sizes:
    """The size of one container's layer, in bytes."""

    def __init__(self, boxes: Boxes, container: str, folder: Path | None) -> None:
        self._boxes = boxes
        self._container = container
        self._folder = folder
        self._last = 0
        self._took = 0.0

    @classmethod
    async def of(cls, boxes: Boxes, container: str) -> Sizes:
        """For a container that was just made."""
        made = cls(boxes, container, folder_of(await boxes.inspect(container)))
        await made.settle()
        return made

    @property
    def folder(self) -> Path | None:
        """The layer's folder, if it can be reached."""
        return self._folder

    async def now(self) -> int:
        """The present size."""
        began = time.monotonic()
        if self._folder is not None:
            size = await anyio.to_thread.run_sync(measure, str(self._folder))
        else:
            size = int((await self._boxes.inspect(self._container, size=True)).get("SizeRw") or 0)
        self._took = time.monotonic() - began
        return size

    async def settle(self) -> None:
        """Leave out of the next growth what was written until now."""
        self._last = await self.now()

    async def growth(self) -> int:
        """Bytes since it was last asked for; below zero when files were removed."""
        before, self._last = self._last, await self.now()
        return self._last - before

    async def check(self, limit: int) -> tuple[int, float]:
        """See `watch.Disk`: the size, and seconds until the next look."""
        size = await self.now()
        left = _SOONEST if size > limit / 2 else _LATEST / 5
        return size, min(_LATEST, max(left, _SHARE * self._took))
