"""A build of a simulated repository: the engine that builds real ones, on a virtual clock and virtual cores."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

import anyio

from bench.thinking import Latency, Thinker, ThinkingMender, ThinkingWorkshop
from specbuild.breadth import Breadth
from specbuild.events import Reporter, Silent
from specbuild.execution import Mends, Workshop
from specbuild.field import Field
from specbuild.recipe import Recipe
from specbuild.sandbox.contract import Backend
from specbuild.speculate import Later, RaceResult, race
from specbuild.strategies.contract import Candidate
from specbuild.testing.clock import VirtualLoop
from specbuild.testing.cpu import Cpu
from specbuild.tree import Entry


@dataclass(frozen=True)
class Mode:
    """How a repository is built."""

    breadth: Breadth
    ahead: bool
    beside: bool = False
    checkpoints: bool = True


MODES: Mapping[str, Mode] = {
    "sequential": Mode(Breadth.RECIPE, ahead=False, checkpoints=False),
    "checkpoint": Mode(Breadth.RECIPE, ahead=False),
    "strategy": Mode(Breadth.ALL, ahead=False),
    "command": Mode(Breadth.STRATEGY, ahead=True),
    "both": Mode(Breadth.ALL, ahead=True),
    "full": Mode(Breadth.ALL, ahead=True, beside=True),
}


@dataclass(frozen=True)
class Machine:
    """What the commands run on."""

    cores: int
    slots: int

    @classmethod
    def parse(cls, text: str) -> Machine:
        """From `2/3`: cores, slots; from `4`: as many of both."""
        cores, _, slots = text.partition("/")
        return cls(int(cores), int(slots or cores))

    def __str__(self) -> str:
        return f"{self.cores}/{self.slots}"


@dataclass
class Tally:
    """Seconds of work in one race, by what is known of it."""

    recorded: float = 0.0
    assumed: float = 0.0

    def add(self, seconds: float, *, assumed: bool) -> None:
        """So many more."""
        if assumed:
            self.assumed += seconds
        else:
            self.recorded += seconds


@dataclass(frozen=True)
class Stage:
    """What a race of a simulated repository needs, for one race."""

    backend: Backend
    workshop: Workshop
    mender: Mends
    tally: Tally


class Simulated(Protocol):
    """A repository, and all that would happen to it."""

    @property
    def name(self) -> str: ...

    @property
    def before(self) -> float:
        """Seconds from the start of a build until its race begins."""
        ...

    @property
    def candidates(self) -> Sequence[Candidate]: ...

    @property
    def later(self) -> Sequence[tuple[float, Sequence[Candidate]]]:
        """Candidates that come so many seconds after they are asked for."""
        ...

    def stage(self, cpu: Cpu, field: Field, reporter: Reporter) -> Stage:
        """For one race; on a virtual loop."""
        ...

    def alone(self, recipe: Recipe, cores: float) -> float:
        """Seconds of a Recipe's work, run alone."""
        ...

    def is_known(self, recipe: Recipe) -> bool:
        """Whether all of a Recipe's work is known to end as it does; else some of that is assumed."""
        ...

    def oracle(self, cores: float) -> float:
        """Seconds of the quickest Recipe that is known to work, run alone; infinite if there is none."""
        ...


@dataclass(frozen=True)
class Run:
    """A repository built in one mode on one machine."""

    seconds: float
    """Until the commit; the limit if there was none and one was set."""
    committed: bool
    cpu_seconds: float
    commands: int
    alone_seconds: float = math.inf
    """Of the winner's own work, run alone."""
    assumed: float = 0.0
    """Share of all seconds of work of which no recording tells how it ends."""
    assumed_win: bool = False
    """Whether the winner's work holds any such."""


@dataclass(frozen=True)
class Conditions:
    """What holds for every build."""

    limit: float | None = None
    """Seconds after which a build ends without a commit."""
    thinking: Latency | None = None
    """Of the model that makes candidates and repairs, if one does."""


async def build(
    world: Simulated, mode: Mode, machine: Machine, conditions: Conditions, reporter: Reporter
) -> tuple[RaceResult, Tally]:
    """Race the world's candidates; on a virtual loop only."""
    field = Field(anyio.current_time, reporter, lambda recipe: None, salt=lambda name: "" if mode.checkpoints else name)
    stage = world.stage(Cpu(machine.cores), field, reporter)
    workshop, mender, before = stage.workshop, stage.mender, world.before
    if conditions.thinking is not None:
        thinker = Thinker(conditions.thinking, world.name)
        if mode.breadth is Breadth.RECIPE:
            workshop = ThinkingWorkshop(workshop, thinker)
        else:
            mender, before = ThinkingMender(mender, thinker), before + thinker.latency_of("candidates")
    result = await race(
        field.enter(world.candidates),
        stage.backend,
        workshop,
        slots=1 if mode.breadth is Breadth.RECIPE else machine.slots,
        reporter=reporter,
        later=[_later(field, after, candidates) for after, candidates in world.later],
        mender=mender,
        ahead=mode.ahead,
        beside=mode.beside,
        breadth=mode.breadth,
        time_limit=conditions.limit,
        clock=anyio.current_time,
        began=anyio.current_time() - before,
    )
    return result, stage.tally


def _later(field: Field, after: float, candidates: Sequence[Candidate]) -> Later:
    async def bring() -> list[Entry]:
        await anyio.sleep(after)
        return field.enter(candidates)

    return bring


def run(
    world: Simulated,
    mode: Mode,
    machine: Machine,
    conditions: Conditions = Conditions(),
    reporter: Reporter | None = None,
) -> Run:
    """Build a world and sum up; events go to `reporter`."""
    arguments = world, mode, machine, conditions, reporter or Silent()
    result, tally = anyio.run(build, *arguments, backend_options={"loop_factory": VirtualLoop})
    committed = result.winner is not None
    return Run(
        seconds=result.seconds if committed or conditions.limit is None else conditions.limit,
        committed=committed,
        cpu_seconds=sum(done.cpu_seconds for done in result.executions),
        commands=sum(done.completed is not None or done.verdict is not None for done in result.executions),
        alone_seconds=world.alone(result.winner.recipe, machine.cores) if result.winner else math.inf,
        assumed=tally.assumed / ((tally.assumed + tally.recorded) or 1.0),
        assumed_win=result.winner is not None and not world.is_known(result.winner.recipe),
    )
