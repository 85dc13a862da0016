"""Runs the journey so that Ctrl-C ends it cleanly, however often it is pressed."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Awaitable, Callable, Generator
from contextlib import contextmanager, suppress
from functools import partial
from types import FrameType
from typing import TypeVar

import anyio

from specbuild.cli.failures import Interrupted
from specbuild.cli.terminal import Terminal

T = TypeVar("T")

TICK_SECONDS = 0.12

SAID = 2
"""Signals that are answered; the answers to any number of them could fill a pipe that nobody reads."""

_GOES_ON = (
    "still cleaning up; this takes seconds, or minutes where a container engine or a disk does not answer."
    " Ctrl-\\ ends it at once, and the next command cleans up"
)

SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


def run_to_end(work: Callable[[], Awaitable[T]], terminal: Terminal, tick: Callable[[], None] | None = None) -> T:
    """Run `work` on an event loop of its own and return its result; call `tick` meanwhile.

    The first SIGINT, SIGTERM or SIGHUP cancels the work and lets it clean up; a second one only says that this goes on.
    Raises Interrupted after that; signals are then still without effect, until the process ends or sets its own
    handlers.
    """
    from specbuild.journey import run

    interrupts = _Interrupts(terminal)
    with interrupts.heeded():
        return run(partial(_supervise, work, interrupts, tick))


class _Interrupts:
    """Turns signals into one cancellation.

    The handlers are plain ones. Those of an event loop go with the loop and leave the default behind, by which one more
    signal would end the process before it could say how it ended.
    """

    def __init__(self, terminal: Terminal) -> None:
        self._terminal = terminal
        self._loop: asyncio.AbstractEventLoop | None = None
        self._scope: anyio.CancelScope | None = None
        self.count = 0

    @contextmanager
    def heeded(self) -> Generator[None]:
        """For as long as this lasts, and after it if there was one."""
        before = {number: signal.signal(number, self._arrived) for number in SIGNALS}
        try:
            yield
        finally:
            self._loop = None
            if not self.count:
                for number, handler in before.items():
                    signal.signal(number, handler)

    def attend(self, scope: anyio.CancelScope) -> None:
        """Cancel this scope of the running loop at a signal, and at one that has come already."""
        self._loop, self._scope = asyncio.get_running_loop(), scope
        if self.count:
            self._tell()

    def _arrived(self, number: int, frame: FrameType | None) -> None:
        del number, frame
        self.count += 1
        if self._loop is not None and self.count <= SAID:
            with suppress(RuntimeError):  # the loop has just been closed
                self._loop.call_soon_threadsafe(self._tell)

    def _tell(self) -> None:
        assert self._scope is not None, "there is a loop, so there is a scope"  # noqa: S101
        again = self._scope.cancel_called
        self._terminal.line(_GOES_ON if again else "stopping all steps and cleaning up")
        self._scope.cancel()


async def _supervise(work: Callable[[], Awaitable[T]], interrupts: _Interrupts, tick: Callable[[], None] | None) -> T:
    failure: Exception | None = None
    results: list[T] = []
    scope = anyio.CancelScope()
    async with anyio.create_task_group() as helpers:
        with scope:
            interrupts.attend(scope)
            if tick is not None:
                helpers.start_soon(_keep_ticking, tick)
            try:
                results.append(await work())
            except Exception as error:  # noqa: BLE001 - carried out of the task group, which would wrap it
                failure = error
        helpers.cancel_scope.cancel()
    if results:
        return results[0]
    if failure is not None and not scope.cancel_called:
        raise failure
    raise Interrupted from failure


async def _keep_ticking(tick: Callable[[], None]) -> None:
    while True:
        tick()
        await anyio.sleep(TICK_SECONDS)
