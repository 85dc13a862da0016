"""A virtual clock: an asyncio event loop in which waiting takes no time.

    anyio.run(main, backend_options={"loop_factory": VirtualLoop})

Only for code that waits by timers, not for real sockets, processes or threads.
"""

from __future__ import annotations

import asyncio
import selectors
from collections.abc import Mapping
from typing import Any


class _TimelessSelector(selectors.BaseSelector):
    """Passes waiting time to a callback instead of sleeping."""

    def __init__(self) -> None:
        self._real = selectors.DefaultSelector()
        self.skipped = 0.0

    def register(self, fileobj: Any, events: int, data: Any = None) -> selectors.SelectorKey:
        return self._real.register(fileobj, events, data)

    def unregister(self, fileobj: Any) -> selectors.SelectorKey:
        return self._real.unregister(fileobj)

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        ready = self._real.select(0)
        if not ready:
            if timeout is None:
                raise RuntimeError("every task waits for something that will never come")
            self.skipped += max(timeout, 0.0)
        return ready

    def close(self) -> None:
        self._real.close()

    def get_map(self) -> Mapping[Any, selectors.SelectorKey]:
        return self._real.get_map()


class VirtualLoop(asyncio.SelectorEventLoop):
    """An event loop whose time jumps to the next timer whenever nothing else is to be done.

    Raises RuntimeError when every task waits and no timer is set: a deadlock.
    """

    def __init__(self) -> None:
        self._timeless = _TimelessSelector()
        super().__init__(self._timeless)

    def time(self) -> float:
        """Seconds of virtual time since the loop was made."""
        return self._timeless.skipped
