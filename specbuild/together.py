"""Two pieces of work side by side."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any, TypeVar, cast

import anyio

A = TypeVar("A")
B = TypeVar("B")


async def together(first: Callable[[], Awaitable[A]], second: Callable[[], Awaitable[B]]) -> tuple[A, B]:
    """Run both, and return what they return.

    When one fails, the other is cancelled, and the error of the first to fail is raised alone.
    """
    results: dict[int, Any] = {}

    async def run(number: int, work: Callable[[], Awaitable[object]]) -> None:
        results[number] = await work()

    try:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(run, 0, first)
            tasks.start_soon(run, 1, second)
    except ExceptionGroup as group:  # what the other met while it was cancelled follows from the first
        raise group.exceptions[0] from None
    return cast("A", results[0]), cast("B", results[1])
