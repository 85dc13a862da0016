"""Two pieces of work side by side."""

from __future__ import annotations

import anyio
import pytest

from specbuild.errors import StoreError
from specbuild.together import together


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
