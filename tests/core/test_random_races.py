"""Whole races of random recipes in random worlds: outcomes, durations, predictions right and wrong, cancellations.

`SPECBUILD_EXAMPLES` sets how many are tried.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import anyio
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from specbuild.breadth import Breadth
from specbuild.errors import SandboxError
from specbuild.recipe import BaseRef, Check, Level, Recipe, Step, StepKind
from specbuild.speculate import RaceResult, race
from specbuild.testing.clock import VirtualLoop
from specbuild.testing.cpu import Cpu
from specbuild.testing.fakes import Behaviour, FakeBackend, Files, Recorder, ScriptWorkshop
from specbuild.testing.mending import ScriptMender
from specbuild.testing.promises import check_promises
from specbuild.testing.seer import Seer
from specbuild.tree import Entry

EXAMPLES = int(os.environ.get("SPECBUILD_EXAMPLES", "200"))
FIXED = "/fixed/"


@dataclass(frozen=True)
class Doing:
    """What a command does: it takes its time, and fails for want of names, of which its output tells."""

    seconds: float
    needs: tuple[str, ...]
    tells: float | None
    """Share of its time after which it tells; None: at its end."""
    lies: bool
    """Whether it tells of what is not missing as well."""
    breaks: bool
    """Whether our machinery breaks under it."""


class World:
    """What commands do; `fix x` brings x if it works."""

    def __init__(self, doings: Mapping[str, Doing], fixes: Mapping[str, tuple[float, bool]]) -> None:
        self.doings = doings
        self.fixes = fixes

    def __call__(self, command: str, files: Files) -> Behaviour:
        if command.startswith("fix "):
            name = command.split()[1]
            seconds, works = self.fixes[name]
            return Behaviour(seconds, exit_code=int(not works), writes={FIXED + name: b""})
        doing = self.doings[command]
        missing = [name for name in doing.needs if FIXED + name not in files]
        told = missing[0] if missing else "ghost" if doing.lies else None
        if doing.breaks:
            return Behaviour(doing.seconds, breaks="the sandbox is gone")
        failed = int(bool(missing))
        if told is None:
            return Behaviour(doing.seconds)
        if doing.tells is None:
            return Behaviour(doing.seconds, exit_code=failed, output=(f"END {told}",))
        return Behaviour(doing.seconds, exit_code=failed, says=((doing.tells * doing.seconds, f"FAIL {told}"),))


@dataclass(frozen=True)
class Case:
    """A race to be run."""

    entries: tuple[Entry, ...]
    world: World
    foreseen: tuple[tuple[str, str, float], ...]
    latency: float
    rivals: int

    def run(
        self,
        *,
        slots: int,
        breadth: Breadth = Breadth.ALL,
        ahead: bool = True,
        beside: bool = False,
        cores: float = 2,
        limit: float | None = None,
    ) -> tuple[RaceResult, FakeBackend]:
        backend = FakeBackend(self.world, cpu=Cpu(cores))
        rivals: dict[str, int] = dict.fromkeys((*NAMES, "ghost"), self.rivals)

        async def main() -> RaceResult:
            return await race(
                self.entries,
                backend,
                ScriptWorkshop(backend),
                slots=slots,
                reporter=Recorder(),
                mender=Seer(ScriptMender(rivals=rivals, most=3), self.foreseen, self.latency),
                breadth=breadth,
                ahead=ahead,
                beside=beside,
                time_limit=limit,
                clock=anyio.current_time,
            )

        return anyio.run(main, backend_options={"loop_factory": VirtualLoop}), backend


NAMES = ("gcc", "make", "pq")
PACKAGES = ("p1", "p2")
"""Commands that install system packages."""
COMMANDS = ("c1", "c2", "c3", "c4", *PACKAGES)
CHECKS = ("check", "other")


@st.composite
def cases(draw: st.DrawFn, *, breaks: bool = True) -> Case:
    """Any race."""
    seconds = st.floats(0.1, 30.0)
    doing = st.builds(
        Doing,
        seconds=seconds,
        needs=st.lists(st.sampled_from(NAMES), max_size=2, unique=True).map(tuple),
        tells=st.none() | st.floats(0.05, 0.99),
        lies=st.integers(0, 7).map(lambda n: n == 0),
        breaks=st.integers(0, 15).map(lambda n: breaks and n == 0),
    )
    doings = {command: draw(doing) for command in (*COMMANDS, *CHECKS)}
    works = st.integers(0, 3).map(lambda n: n > 0)
    fixes = {name: (draw(seconds), draw(works)) for name in (*NAMES, "ghost")}
    path = st.lists(st.sampled_from(COMMANDS), min_size=1, max_size=4, unique=True)
    paths = draw(st.lists(path, min_size=1, max_size=6))
    entries = tuple(
        Entry(
            f"r{n}",
            recipe(commands, draw(st.sampled_from(CHECKS)), draw(st.sampled_from("xy"))),
            prior=draw(st.floats(0.05, 0.95)),
            expected_seconds=draw(st.floats(1.0, 100.0)),
            order=1000 * n,
        )
        for n, commands in enumerate(paths)
    )
    prediction = st.tuples(
        st.sampled_from((*COMMANDS, *CHECKS)), st.sampled_from((*NAMES, "ghost")), st.floats(0.05, 0.95)
    )
    foreseen = tuple(draw(st.lists(prediction, max_size=3)))
    return Case(
        entries, World(doings, fixes), foreseen, draw(st.sampled_from([0.0, 0.5, 5.0])), draw(st.integers(1, 3))
    )


def recipe(commands: Sequence[str], check: str, base: str) -> Recipe:
    test = Step(kind=StepKind.TEST, run=check)
    return Recipe(
        base=BaseRef(name=base, digest=f"sha256:{base}"),
        steps=tuple(map(step, commands)),
        check=Check(level=Level.TESTS, runner="pytest", step=test),
    )


def step(command: str) -> Step:
    if command in PACKAGES:
        return Step(kind=StepKind.SYSTEM, run=command, cwd="/", caches=("apt",))
    return Step(kind=StepKind.DEPENDENCIES, run=command)


@settings(deadline=None, max_examples=EXAMPLES)
@given(
    case=cases(),
    slots=st.integers(1, 6),
    cores=st.sampled_from([1, 2, 16]),
    ahead=st.booleans(),
    beside=st.booleans(),
    breadth=st.sampled_from(Breadth),
    limit=st.none() | st.floats(1.0, 100.0),
)
def test_whatever_happens_the_race_keeps_its_promises(
    case: Case, slots: int, cores: int, ahead: bool, beside: bool, breadth: Breadth, limit: float | None
) -> None:
    try:
        result, backend = case.run(slots=slots, cores=cores, ahead=ahead, beside=beside, breadth=breadth, limit=limit)
    except SandboxError:
        assert any(doing.breaks for doing in case.world.doings.values())
        return
    assert backend.open == 0
    assert backend.active == set(), "nothing is left behind"
    check_promises(result)
    verified = [done.end for done in result.executions if done.verdict is not None and done.verdict.ok]
    assert len(set(verified)) <= 1, "the first leaf that verifies ends the race"


@settings(deadline=None, max_examples=EXAMPLES)
@given(case=cases(breaks=False))
def test_with_one_slot_and_no_predictions_the_winner_is_that_of_the_sequential_run(case: Case) -> None:
    one, _ = case.run(slots=1, ahead=False, cores=1)
    sequential, _ = case.run(slots=1, ahead=False, cores=1, breadth=Breadth.RECIPE)
    assert (one.winner and one.winner.id) == (sequential.winner and sequential.winner.id)
    assert one.seconds == pytest.approx(sequential.seconds)
    assert [done.key for done in one.executions] == [done.key for done in sequential.executions]


@settings(deadline=None, max_examples=EXAMPLES)
@given(case=cases(breaks=False), slots=st.integers(2, 6), cores=st.sampled_from([2, 16]), beside=st.booleans())
def test_speculation_finds_a_winner_wherever_the_sequential_run_does(
    case: Case, slots: int, cores: int, beside: bool
) -> None:
    fast, _ = case.run(slots=slots, cores=cores, beside=beside)
    sequential, _ = case.run(slots=1, ahead=False, cores=1, breadth=Breadth.RECIPE)
    assert (fast.winner is None) == (sequential.winner is None)


@settings(deadline=None, max_examples=EXAMPLES)
@given(case=cases(), slots=st.integers(1, 6))
def test_a_race_with_the_same_observations_is_the_same_race(case: Case, slots: int) -> None:
    def told() -> list[tuple[str, float]] | str:
        try:
            return sorted((done.key, done.start) for done in case.run(slots=slots)[0].executions)
        except SandboxError as error:
            return error.message

    assert told() == told()
