"""Runs the journey so that Ctrl-C ends it cleanly, however often it is pressed."""

from __future__ import annotations

import signal
from collections.abc import Awaitable, Callable
from functools import partial
from typing import TypeVar

import anyio
import anyio.abc

from specbuild.cli.failures import Interrupted
from specbuild.cli.terminal import Terminal

T = TypeVar("T")

TICK_SECONDS = 0.12


def run_to_end(work: Callable[[], Awaitable[T]], terminal: Terminal, tick: Callable[[], None] | None = None) -> T:
    """Run `work` on an event loop of its own and return its result; call `tick` meanwhile.

    The first SIGINT, SIGTERM or SIGHUP cancels the work and lets it clean up; further ones only say that this goes on.
    Raises Interrupted after that.
    """
    from specbuild.journey import run

    return run(partial(_supervise, work, terminal, tick))


async def _supervise(work: Callable[[], Awaitable[T]], terminal: Terminal, tick: Callable[[], None] | None) -> T:
    failure: Exception | None = None
    results: list[T] = []
    scope = anyio.CancelScope()
    async with anyio.create_task_group() as helpers:
        with scope:
            await helpers.start(_heed_signals, scope, terminal)
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


async def _heed_signals(
    scope: anyio.CancelScope,
    terminal: Terminal,
    *,
    task_status: anyio.abc.TaskStatus[None] = anyio.TASK_STATUS_IGNORED,
) -> None:
    with anyio.open_signal_receiver(signal.SIGINT, signal.SIGTERM, signal.SIGHUP) as signals:
        task_status.started()
        async for _ in signals:
            again = scope.cancel_called
            terminal.line("still cleaning up; this takes seconds" if again else "stopping all steps and cleaning up")
            scope.cancel()


async def _keep_ticking(tick: Callable[[], None]) -> None:
    while True:
        tick()
        await anyio.sleep(TICK_SECONDS)
