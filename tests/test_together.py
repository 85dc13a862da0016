"""Two pieces of work side by side."""

from __future__ import annotations

import anyio
import anyio.lowlevel
import pytest

from specbuild.errors import StoreError
from specbuild.together import joined, together


async def test_both_run_at_once_and_their_results_keep_their_order() -> None:
    begun = anyio.Event()

    async def first() -> str:
        await begun.wait()
        return "first"

    async def second() -> int:
        begun.set()
        return 2

    assert await together(first, second) == ("first", 2)


async def test_an_error_cancels_the_other_and_is_raised_alone() -> None:
    ends: list[str] = []

    async def hangs() -> None:
        try:
            await anyio.sleep_forever()
        finally:
            ends.append("cancelled")

    async def fails() -> None:
        raise StoreError("the disk is full", hint="make room")

    with pytest.raises(StoreError, match="the disk is full"):
        await together(hangs, fails)
    assert ends == ["cancelled"]


async def test_cancelling_cancels_both() -> None:
    ends: list[str] = []

    async def hangs() -> None:
        try:
            await anyio.sleep_forever()
        finally:
            ends.append("cancelled")

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(together, hangs, hangs)
        await anyio.wait_all_tasks_blocked()
        tasks.cancel_scope.cancel()
    assert ends == ["cancelled", "cancelled"]


async def test_of_tasks_that_fail_the_first_error_is_raised_alone() -> None:
    async def fail(error: Exception) -> None:
        raise error

    async def fail_when_cancelled() -> None:
        try:
            await anyio.sleep_forever()
        finally:
            raise RuntimeError("what follows from it")

    async def run() -> None:
        async with joined() as tasks:
            tasks.start_soon(fail_when_cancelled)
            await anyio.lowlevel.checkpoint()
            tasks.start_soon(fail, KeyError("the cause"))

    with pytest.raises(KeyError, match="the cause"):
        await run()


async def test_groups_in_groups_are_opened() -> None:
    async def inner() -> None:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(fail)

    async def fail() -> None:
        raise KeyError("the cause")

    with pytest.raises(KeyError, match="the cause"):
        async with joined() as tasks:
            tasks.start_soon(inner)
