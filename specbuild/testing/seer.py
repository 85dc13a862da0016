"""A mender for races of scripts that takes its time, and foresees what it is told to, rightly or wrongly."""

from __future__ import annotations

from collections.abc import Sequence

import anyio

from specbuild.execution import Execution, Foresight
from specbuild.failures import Failure, MissingCommand
from specbuild.sites import node_at, place_alike, work_at
from specbuild.testing.mending import ScriptMender, ScriptReader
from specbuild.tree import Edge, Entry, Work


class Seer:
    """Repairs as a `ScriptMender` does."""

    def __init__(self, mender: ScriptMender, foreseen: Sequence[tuple[str, str, float]], latency: float) -> None:
        """`foreseen` are commands, what they will want for, and with which probability; `latency` is in seconds."""
        self._mender = mender
        self._foreseen = foreseen
        self._latency = latency

    def reader(self) -> ScriptReader:
        """A new reader."""
        return self._mender.reader()

    async def mend(
        self, edge: Edge, broken: Sequence[Entry], failures: Sequence[Failure], *, foreseen: bool
    ) -> list[Entry]:
        """What the mender makes of it, after a while."""
        await anyio.sleep(self._latency)
        return await self._mender.mend(edge, broken, failures, foreseen=foreseen)

    async def foresee(self, entry: Entry) -> Foresight:
        """The first of what is foreseen that the Recipe has a command for."""
        await anyio.sleep(self._latency)
        steps = [*entry.recipe.steps, entry.recipe.check.step]
        for command, name, probability in self._foreseen:
            place = next((n for n, step in enumerate(steps) if step.run == command), None)
            if place is not None:
                made = await self._repaired(entry, place, [MissingCommand(command=name, evidence="")])
                return Foresight(made, entry.prior * (1 - probability), node_at(entry.recipe, place))
        return Foresight()

    async def spread(self, entry: Entry, work: Work, failures: Sequence[Failure]) -> Foresight:
        """That the work most alike will fail so, too."""
        place = place_alike(entry.recipe, work)
        made = [] if place is None else await self._repaired(entry, place, failures)
        until = None if place is None else node_at(entry.recipe, place)
        return Foresight(made, entry.prior * 0.2, until) if made else Foresight()

    def observe(self, done: Execution) -> None:
        """Keep it."""
        self._mender.observe(done)

    def give_up(self, entry: Entry) -> None:
        """It may be wanted again."""
        self._mender.give_up(entry)

    async def _repaired(self, entry: Entry, place: int, failures: Sequence[Failure]) -> list[Entry]:
        edge = Edge(node_at(entry.recipe, place), None, work_at(entry.recipe, place))
        return await self._mender.mend(edge, [entry], failures, foreseen=True)
