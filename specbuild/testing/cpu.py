"""CPUs that jobs share by weight, as control groups have it: for fakes on a virtual clock."""

from __future__ import annotations

import math
from collections.abc import Generator
from contextlib import contextmanager

import anyio

_TINY = 1e-6
"""Seconds within which a job has what it wants: clocks add up fractions."""


class Job:
    """What keeps so many cores busy, on average: it gets no more. One that mostly waits keeps less than one busy."""

    def __init__(self, cpu: Cpu, weight: int, cores: float = 1.0) -> None:
        self._cpu = cpu
        self.weight = weight
        self.cores = cores
        self.rate = 0.0
        """CPU seconds a second, at present."""
        self.had = 0.0
        """CPU seconds, up to the last change of any job."""
        self._changed = anyio.Event()

    async def until(self, seconds: float) -> None:
        """Wait until the job is as far as it would be after so many seconds if it had all its cores."""
        wanted = seconds * self.cores
        self._cpu.settle()
        while self.had < wanted - _TINY * self.cores:
            with anyio.move_on_after((wanted - self.had) / self.rate):
                await self._changed.wait()
            self._cpu.settle()

    def settled(self) -> float:
        """CPU seconds that it has had until now."""
        self._cpu.settle()
        return self.had

    def run_at(self, rate: float) -> None:
        """Go on at another rate."""
        if rate != self.rate:
            self.rate = rate
            self._changed.set()
            self._changed = anyio.Event()


class Cpu:
    """So many cores, shared by the jobs that run: in proportion to their weights, none more than it can use."""

    def __init__(self, cores: float = math.inf) -> None:
        self._cores = cores
        self._jobs: dict[Job, None] = {}
        self._settled = 0.0

    @contextmanager
    def job(self, weight: int, cores: float = 1.0) -> Generator[Job]:
        """A job that can use so many cores for the time of a `with`."""
        self.settle()
        job = Job(self, weight, cores)
        self._jobs[job] = None
        self._share()
        try:
            yield job
        finally:
            self.settle()
            del self._jobs[job]
            self._share()

    def reweigh(self, job: Job, weight: int) -> None:
        """Change the weight of a job that runs."""
        self.settle()
        job.weight = weight
        self._share()

    def settle(self) -> None:
        """Write down what every job had until now."""
        now = anyio.current_time()
        for job in self._jobs:
            job.had += (now - self._settled) * job.rate
        self._settled = now

    def _share(self) -> None:
        """Those first that want least for their weight, so that what is more than they can use falls to the others."""
        cores, weights = self._cores, sum(job.weight for job in self._jobs)
        for job in sorted(self._jobs, key=lambda job: job.cores / job.weight):
            rate = min(job.cores, cores * job.weight / weights)
            cores, weights = cores - rate, weights - job.weight
            job.run_at(rate)
