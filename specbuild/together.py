"""Pieces of work side by side, of which the first failure counts."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any, TypeVar, cast

import anyio
from anyio.abc import TaskGroup

A = TypeVar("A")
B = TypeVar("B")


@asynccontextmanager
async def joined() -> AsyncGenerator[TaskGroup]:
    """A task group that raises the error of the first task to fail, alone.

    What the others met while they were cancelled, or the block itself, follows from it.
    """
    try:
        async with anyio.create_task_group() as tasks:
            yield tasks
    except ExceptionGroup as group:
        raise _first(group) from None


async def together(first: Callable[[], Awaitable[A]], second: Callable[[], Awaitable[B]]) -> tuple[A, B]:
    """Run both, and return what they return. When one fails, the other is cancelled (see `joined`)."""
    results: dict[int, Any] = {}

    async def run(number: int, work: Callable[[], Awaitable[object]]) -> None:
        results[number] = await work()

    async with joined() as tasks:
        tasks.start_soon(run, 0, first)
        tasks.start_soon(run, 1, second)
    return cast("A", results[0]), cast("B", results[1])


def _first(group: ExceptionGroup[Exception]) -> Exception:
    error = group.exceptions[0]
    return _first(cast("ExceptionGroup[Exception]", error)) if isinstance(error, ExceptionGroup) else error
