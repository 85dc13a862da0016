"""A model that thinks: how long, about what, and what waits for it.

A sequential agent thinks before each command. A speculative one asks for candidates once, and for the repairs of each
failure once it is told of, while commands run.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import anyio

from specbuild.execution import Execution, Foresight, LineReader, Mends, Workshop
from specbuild.failures import Failure
from specbuild.recipe import BaseRef, Check, Step, StepKind
from specbuild.sandbox.contract import Checkpoint, Completed, LineSink, Sandbox
from specbuild.tree import Edge, Entry, Work
from specbuild.verify.verdict import Verdict


@dataclass(frozen=True)
class Latency:
    """A distribution of seconds."""

    text: str
    """As it was given."""
    draw: Callable[[random.Random], float]

    @classmethod
    def parse(cls, text: str) -> Latency:
        """From `10` (always), `uniform:5,20` (from, to) or `lognormal:10,0.5` (median, deviation of the logarithm).

        Raises ValueError.
        """
        name, rest = text.split(":", 1) if ":" in text else ("always", text)
        try:
            figures = [float(figure) for figure in rest.split(",")]
        except ValueError:
            figures = []
        if not figures or not all(math.isfinite(figure) and figure >= 0 for figure in figures):
            raise ValueError(f"{text!r} has no figures of at least 0: write 10, uniform:5,20 or lognormal:10,0.5")
        match name, figures:
            case "always", [seconds]:
                return cls(text, lambda drawn: seconds)
            case "uniform", [low, high] if low <= high:
                return cls(text, lambda drawn: drawn.uniform(low, high))
            case "lognormal", [middle, spread] if middle > 0:
                return cls(text, lambda drawn: middle * math.exp(drawn.gauss(0, spread)))
            case _:
                raise ValueError(f"{text!r} is no distribution of seconds: write 10, uniform:5,20 or lognormal:10,0.5")


class Thinker:
    """Thinks once about each question, about several at a time; the same question takes as long in every race."""

    def __init__(self, latency: Latency, seed: str) -> None:
        self._latency = latency
        self._seed = seed
        self._ready: dict[str, float] = {}
        """Question → when the answer is there."""

    def latency_of(self, question: str) -> float:
        """Seconds from the question to its answer."""
        return self._latency.draw(random.Random(f"{self._seed} {question}"))

    async def about(self, question: str) -> None:
        """Wait for the answer; one who asks later, waits less."""
        now = anyio.current_time()
        ready = self._ready.setdefault(question, now + self.latency_of(question))
        await anyio.sleep(max(ready - now, 0.0))


class ThinkingWorkshop:
    """A workshop in which each command is thought about before it runs."""

    def __init__(self, workshop: Workshop, thinker: Thinker) -> None:
        self._workshop = workshop
        self._thinker = thinker
        self._commands = 0

    async def provide(self, base: BaseRef) -> Checkpoint:
        """No command."""
        return await self._workshop.provide(base)

    async def run_step(self, sandbox: Sandbox, step: Step, *, on_line: LineSink, log: Path | None) -> Completed:
        """Think, then run; the source tree is placed without a thought."""
        if step.kind is not StepKind.SOURCE:
            await self._think()
        return await self._workshop.run_step(sandbox, step, on_line=on_line, log=log)

    async def verify(self, sandbox: Sandbox, check: Check, *, on_line: LineSink, log: Path | None) -> Verdict:
        """Think, then run."""
        await self._think()
        return await self._workshop.verify(sandbox, check, on_line=on_line, log=log)

    async def _think(self) -> None:
        self._commands += 1
        await self._thinker.about(f"command {self._commands}")


class ThinkingMender:
    """A mender whose repairs come after thinking, which begins when a failure is first told of."""

    def __init__(self, mender: Mends, thinker: Thinker) -> None:
        self._mender = mender
        self._thinker = thinker

    def reader(self) -> LineReader:
        """Reads without a thought."""
        return self._mender.reader()

    async def mend(
        self, edge: Edge, broken: Sequence[Entry], failures: Sequence[Failure], *, foreseen: bool
    ) -> Sequence[Entry]:
        """What was foreseen is not thought about again once it is seen."""
        await self._thinker.about(f"{edge.key} {_keys(failures)}")
        return await self._mender.mend(edge, broken, failures, foreseen=foreseen)

    async def foresee(self, entry: Entry) -> Foresight:
        """All candidates are thought about at once."""
        await self._thinker.about("foresight")
        return await self._mender.foresee(entry)

    async def spread(self, entry: Entry, work: Work, failures: Sequence[Failure]) -> Foresight:
        """All candidates are thought about at once."""
        await self._thinker.about(f"spread {work.digest} {_keys(failures)}")
        return await self._mender.spread(entry, work, failures)

    def observe(self, done: Execution) -> None:
        """Without a thought."""
        self._mender.observe(done)

    def give_up(self, entry: Entry) -> None:
        """Without a thought."""
        self._mender.give_up(entry)


def _keys(failures: Sequence[Failure]) -> str:
    return " ".join(sorted(failure.key for failure in failures))
