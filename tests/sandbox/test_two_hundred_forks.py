"""Two hundred forks of one checkpoint at once: all run, none fails, nothing is left."""

from __future__ import annotations

from pathlib import Path

import anyio
import pytest

from specbuild.sandbox.contract import RootfsTar
from specbuild.sandbox.overlay import OverlayBackend
from specbuild.testing.leftovers import leftovers
from specbuild.testing.trial import frozen, new_marker, processes, shell, until

pytestmark = [pytest.mark.sandbox, pytest.mark.slow]

FORKS = 200


@pytest.mark.timeout(600)
async def test_two_hundred_forks_live_at_once_and_are_gone_afterwards(tiny: Path, tmp_path: Path) -> None:
    marker = new_marker()
    store = tmp_path / "store"
    outputs: dict[int, str] = {}
    release = anyio.Event()

    async with OverlayBackend(store) as backend:
        base = await backend.import_base("base", RootfsTar(tiny))
        state = await frozen(backend, base, "echo shared > /shared")

        async def branch(number: int) -> None:
            async with backend.fork(state) as box:
                done = await box.run(shell("echo $1 > /own; cat /shared /own", str(number)))
                outputs[number] = done.tail if done.ok else str(done)
                with anyio.CancelScope() as scope:
                    async with anyio.create_task_group() as inner:
                        inner.start_soon(box.run, shell("sleep $1", marker, timeout=None))
                        await release.wait()
                        scope.cancel()

        async with anyio.create_task_group() as group:
            for number in range(FORKS):
                group.start_soon(branch, number)
            await until(lambda: len(processes(marker)) >= 2 * FORKS, seconds=300)
            release.set()

        assert processes(marker) == []
        assert {number: text.split() for number, text in outputs.items()} == {
            number: ["shared", str(number)] for number in range(FORKS)
        }
    assert leftovers(store) == []


@pytest.mark.timeout(600)
async def test_two_hundred_forks_end_by_one_cancellation(tiny: Path, tmp_path: Path) -> None:
    marker = new_marker()
    store = tmp_path / "store"
    async with OverlayBackend(store) as backend:
        base = await backend.import_base("base", RootfsTar(tiny))

        async def branch() -> None:
            async with backend.fork(base) as box:
                await box.run(shell("trap '' TERM; (setsid sleep $1 &); sleep $1", marker, timeout=None))

        async with anyio.create_task_group() as group:
            for _ in range(FORKS):
                group.start_soon(branch)
            await until(lambda: len(processes(marker)) >= FORKS, seconds=300)
            group.cancel_scope.cancel()
        assert processes(marker) == []
    assert leftovers(store) == []
