"""Virtual CPUs: who shares them, and how."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import anyio
import pytest

from specbuild.recipe import BaseRef, checkpoint_root
from specbuild.sandbox.contract import Command, HostRoot, Limits
from specbuild.testing.clock import VirtualLoop
from specbuild.testing.cpu import Cpu
from specbuild.testing.fakes import Behaviour, FakeBackend


def ends(cores: float, *jobs: tuple[float, int], wanted: tuple[float, ...] = ()) -> list[float]:
    """When each of some (seconds, weight) jobs that begin together has ended; each wants a core, or those `wanted`."""

    async def main() -> list[float]:
        cpu, ended = Cpu(cores), [0.0] * len(jobs)

        async def work(number: int, seconds: float, weight: int) -> None:
            with cpu.job(weight, wanted[number] if wanted else 1.0) as job:
                await job.until(seconds)
            ended[number] = anyio.current_time()

        async with anyio.create_task_group() as tasks:
            for number, (seconds, weight) in enumerate(jobs):
                tasks.start_soon(work, number, seconds, weight)
        return ended

    return anyio.run(main, backend_options={"loop_factory": VirtualLoop})


def test_a_job_has_at_most_one_core() -> None:
    assert ends(4, (10, 100)) == [pytest.approx(10)]


def test_two_equal_jobs_on_one_core_take_twice_as_long() -> None:
    assert ends(1, (10, 100), (10, 100)) == [pytest.approx(20), pytest.approx(20)]


def test_a_follower_nearly_does_not_delay_the_leader() -> None:
    leader, follower = ends(1, (10, 10_000), (10, 50))
    assert leader == pytest.approx(10, rel=0.01)
    assert follower == pytest.approx(20), "no core is idle"


def test_what_the_heaviest_cannot_use_falls_to_the_others() -> None:
    assert ends(2, (10, 10_000), (5, 50), (5, 50)) == [pytest.approx(10), pytest.approx(10), pytest.approx(10)]


def test_who_is_left_alone_goes_on_at_full_speed() -> None:
    assert ends(1, (2, 100), (10, 100)) == [pytest.approx(4), pytest.approx(12)]


def test_jobs_that_mostly_wait_share_a_core_without_delay() -> None:
    assert ends(1, (10, 100), (10, 100), wanted=(0.5, 0.5)) == [pytest.approx(10), pytest.approx(10)]


def test_a_job_that_wants_more_cores_than_there_are_takes_longer() -> None:
    assert ends(2, (10, 100), wanted=(4.0,)) == [pytest.approx(20)]
    assert ends(8, (10, 100), wanted=(4.0,)) == [pytest.approx(10)]


def test_what_a_heavy_job_does_not_want_falls_to_a_greedy_one() -> None:
    assert ends(2, (10, 10_000), (10, 1), wanted=(0.5, 3.0)) == [pytest.approx(10), pytest.approx(17.5)]


def test_sandboxes_are_weighed_by_their_limits_and_again_while_they_run() -> None:
    ended: dict[str, float] = {}

    async def main() -> None:
        backend = FakeBackend(lambda command, files: Behaviour(seconds=10.0), cpu=Cpu(1))
        base = await backend.import_base(checkpoint_root(BaseRef(name="b", digest="b")), HostRoot(masked=()))

        async def run(name: str, weight: int) -> None:
            async with backend.fork(base, limits=Limits(cpu_weight=weight)) as sandbox:
                if name == "late":
                    tasks.start_soon(promote, sandbox.set_cpu_weight)
                done = await sandbox.run(Command([name]))
            ended[name] = anyio.current_time()
            assert done.cpu_seconds == pytest.approx(10)
            assert sandbox.spent.cpu_seconds == pytest.approx(10)

        async def promote(reweigh: Callable[[int], Awaitable[None]]) -> None:
            await anyio.sleep(4)
            await reweigh(10_000)

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(run, "first", 100)
            tasks.start_soon(run, "late", 1)

    anyio.run(main, backend_options={"loop_factory": VirtualLoop})
    assert ended["late"] == pytest.approx(14, rel=0.02)
    assert ended["first"] == pytest.approx(20)
