"""Whole races of random recipes in random worlds: outcomes, durations, predictions right and wrong, cancellations,
packages that are installed beside other steps, downloads ahead of theirs, machines that bear more or less.

`SPECBUILD_EXAMPLES` sets how many are tried.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

import anyio
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from specbuild.account import waste
from specbuild.breadth import Breadth
from specbuild.durations import Durations, name_of
from specbuild.errors import SandboxError, TransientError
from specbuild.outcome import Outcome
from specbuild.recipe import BaseRef, Check, Level, Recipe, Step, StepKind
from specbuild.speculate import Later, RaceResult, race
from specbuild.testing.clock import VirtualLoop
from specbuild.testing.cpu import Cpu
from specbuild.testing.fakes import FakeBackend, Recorder, ScriptWorkshop
from specbuild.testing.mending import ScriptMender, package_step
from specbuild.testing.promises import check_promises, check_story
from specbuild.testing.seer import Seer
from specbuild.testing.worlds import Doing, World
from specbuild.tree import EdgeState, Entry, RecipeState

EXAMPLES = int(os.environ.get("SPECBUILD_EXAMPLES", "100"))

NAMES = ("gcc", "make", "pq")
"""What commands may want for."""
FIRST = "p0"
"""Brings the package lists, so that packages can be installed before their turn."""
PACKAGES = (FIRST, "p1", "p2", "p3")
"""Commands that install system packages."""
KINDS: Mapping[str, StepKind] = {
    "uv": StepKind.TOOLCHAIN,
    "c1": StepKind.DEPENDENCIES,
    "c2": StepKind.DEPENDENCIES,
    "c3": StepKind.BUILD,
    "script": StepKind.SYSTEM,
}
COMMANDS = (*KINDS, *PACKAGES[1:])
CHECKS = ("check", "other")
SECONDS = st.integers(1, 30 * 64).map(lambda count: count / 64)
"""Clocks add them up without an error: what is to be at the same time is."""


@dataclass(frozen=True)
class How:
    """How a race is run."""

    slots: int = 1
    cores: float = 2
    ahead: bool = True
    beside: bool = False
    warm: bool = False
    breadth: Breadth = Breadth.ALL
    limit: float | None = None
    admits: tuple[int, ...] = ()
    """How many steps the machine bears, each time it is asked; then all slots."""
    learned: Mapping[str, float] = field(default_factory=dict[str, float])
    """What commands are expected to take."""


SEQUENTIAL = How(ahead=False, cores=1, breadth=Breadth.RECIPE)


@dataclass(frozen=True)
class Case:
    """A race to be run."""

    entries: tuple[Entry, ...]
    world: World
    foreseen: tuple[tuple[str, str, float], ...]
    latency: float
    rivals: int
    installed: frozenset[str]
    """What repairs bring as system packages."""
    early: frozenset[str]
    """What repairs bring before all other steps."""
    later: int
    """How many Recipes, the last ones, come later, each by itself."""

    def run(self, how: How) -> tuple[RaceResult, FakeBackend]:
        backend = FakeBackend(self.world, cpu=Cpu(how.cores))
        recorder, admits = Recorder(), list(how.admits)
        rivals: dict[str, int] = dict.fromkeys((*NAMES, "ghost"), self.rivals)
        mender = ScriptMender(rivals=rivals, most=3, installed=self.installed, early=self.early)
        first = len(self.entries) - self.later

        async def main() -> RaceResult:
            return await race(
                self.entries[:first],
                backend,
                ScriptWorkshop(backend),
                slots=how.slots,
                reporter=recorder,
                admitted=lambda: admits.pop() if admits else how.slots,
                later=[bringing(entry) for entry in self.entries[first:]],
                mender=Seer(mender, self.foreseen, self.latency),
                durations=Durations({name_of(step(command)): took for command, took in how.learned.items()}),
                breadth=how.breadth,
                ahead=how.ahead,
                beside=how.beside,
                warm=how.warm,
                time_limit=how.limit,
                clock=anyio.current_time,
            )

        result = anyio.run(main, backend_options={"loop_factory": VirtualLoop})
        check_story(recorder.events, result)
        return result, backend


def bringing(entry: Entry) -> Later:
    """One Recipe; of every fifth nothing comes."""

    async def bring() -> Iterable[Entry]:
        await anyio.sleep(entry.expected_seconds / 8)
        if entry.order % 5000 == 4000:
            raise TransientError("nothing came")
        return [entry]

    return bring


@st.composite
def cases(draw: st.DrawFn, *, breaks: bool = True, later: int = 2) -> Case:
    """Any race."""
    doing = st.builds(
        Doing,
        seconds=SECONDS,
        needs=st.lists(st.sampled_from(NAMES), max_size=2, unique=True).map(tuple),
        tells=st.sampled_from([None, 0.125, 0.5, 0.875]),
        lies=st.sampled_from(["", "", *NAMES, "ghost"]),
        breaks=st.integers(0, 15).map(lambda n: breaks and n == 0),
        clashes=st.sampled_from([False, False, False, True]),
    )
    doings = {command: draw(doing) for command in (*COMMANDS, *CHECKS)}
    doings[FIRST] = replace(draw(doing), needs=())
    works = st.integers(0, 3).map(lambda n: n > 0)
    fixes = {name: (draw(SECONDS), draw(works)) for name in (*NAMES, "ghost")}
    named = st.frozensets(st.sampled_from((*NAMES, "ghost")))
    installed = draw(named)
    path = st.lists(st.sampled_from(COMMANDS), min_size=1, max_size=5, unique=True) | st.permutations(
        ("uv", "p1", "c1")
    )
    paths = [
        [*draw(st.sampled_from([(), (FIRST,), (FIRST,)])), *made]
        for made in draw(st.lists(path, min_size=1, max_size=6))
    ]
    entries = tuple(
        Entry(
            f"r{n}",
            recipe(commands, draw(st.sampled_from(CHECKS)), draw(st.sampled_from("xy"))),
            prior=draw(st.floats(0.05, 0.95)),
            expected_seconds=draw(SECONDS),
            order=1000 * n,
        )
        for n, commands in enumerate(paths)
    )
    prediction = st.tuples(
        st.sampled_from((*COMMANDS, *CHECKS)), st.sampled_from((*NAMES, "ghost")), st.floats(0.05, 0.95)
    )
    return Case(
        entries,
        World(doings, fixes, installing=PACKAGES, installed=installed),
        tuple(draw(st.lists(prediction, max_size=3))),
        latency=draw(st.sampled_from([0.0, 0.5, 5.0])),
        rivals=draw(st.integers(1, 3)),
        installed=installed,
        early=draw(named),
        later=draw(st.integers(0, min(later, len(entries) - 1))),
    )


def recipe(commands: Sequence[str], check: str, base: str) -> Recipe:
    test = Step(kind=StepKind.TEST, run=check)
    return Recipe(
        base=BaseRef(name=base, digest=f"sha256:{base}"),
        steps=tuple(map(step, commands)),
        check=Check(level=Level.TESTS, runner="pytest", step=test),
    )


def step(command: str) -> Step:
    return package_step(command) if command in PACKAGES else Step(kind=KINDS[command], run=command)


def ways(*, slots: int = 1) -> st.SearchStrategy[How]:
    """Any way to run a race in so many slots or more, to its end."""
    return st.builds(
        How,
        slots=st.integers(slots, 6),
        cores=st.sampled_from([1, 2, 16]),
        ahead=st.booleans(),
        beside=st.sampled_from([True, True, False]),
        warm=st.booleans(),
        breadth=st.sampled_from(Breadth),
        admits=st.lists(st.integers(1, 6), max_size=10).map(tuple),
        learned=st.dictionaries(st.sampled_from(COMMANDS), st.floats(0.1, 30.0), max_size=4),
    )


@settings(deadline=None, max_examples=EXAMPLES)
@given(case=cases(), how=ways(), limit=st.none() | st.floats(1.0, 100.0))
def test_whatever_happens_the_race_keeps_its_promises(case: Case, how: How, limit: float | None) -> None:
    try:
        result, backend = case.run(replace(how, limit=limit))
    except SandboxError:
        assert any(doing.breaks for doing in case.world.doings.values())
        return
    assert backend.open == 0
    assert backend.active == set(), "nothing is left behind"
    check_promises(result)
    check_outcomes(result, backend, case.world)
    check_spending(result, backend)
    check_nothing_is_done_again(result, backend)
    verified = [done.end for done in result.executions if done.verdict is not None and done.verdict.ok]
    assert len(set(verified)) <= 1, "the first leaf that verifies ends the race"


def check_outcomes(result: RaceResult, backend: FakeBackend, world: World) -> None:
    """Every state is the one that its Recipe makes in its own order, and so is every end of a Recipe."""
    for entry in result.tree.entries():
        for key, files in world.states(entry.recipe):
            if result.tree.edge(key).state is EdgeState.DONE:
                assert backend.files[key] == files
        match result.tree.state(entry.id):
            case RecipeState.VERIFIED:
                assert world.verifies(entry.recipe)
            case RecipeState.FAILED:
                assert not world.verifies(entry.recipe)
            case _:
                pass


def check_spending(result: RaceResult, backend: FakeBackend) -> None:
    """What all sandboxes have used is the winner's, the losers', or the warmers', and nobody's twice."""
    told = waste(result)
    used = told.winner_cpu_seconds + told.loser_cpu_seconds + told.warmer_cpu_seconds
    assert used == pytest.approx(backend.spent.cpu_seconds, abs=0.01)
    assert told.winner_bytes + told.loser_bytes + told.warmer_bytes == backend.spent.written_bytes


def check_nothing_is_done_again(result: RaceResult, backend: FakeBackend) -> None:
    """What was done aside, before the turn of a Step had come, is taken over wherever that can be."""
    ended = {done.key: done for done in result.executions if done.outcome in (Outcome.OK, Outcome.GRAFTED)}
    for done in ended.values():
        edge = result.tree.edge(done.key)
        aside = ended.get(edge.twin or "")
        if aside is not None and aside.end <= done.start and done.outcome is Outcome.OK:
            onto, side = backend.checkpoints[edge.parent or ""], backend.checkpoints[aside.key]
            assert anyio.run(backend.graft, onto, side, "probe") is None


@settings(deadline=None, max_examples=EXAMPLES)
@given(case=cases(breaks=False, later=0), beside=st.booleans(), warm=st.booleans())
def test_with_one_slot_and_no_predictions_the_winner_is_that_of_the_sequential_run(
    case: Case, beside: bool, warm: bool
) -> None:
    one, _ = case.run(How(ahead=False, cores=1, beside=beside, warm=warm))
    sequential, _ = case.run(replace(SEQUENTIAL, beside=beside, warm=warm))
    assert (one.winner and one.winner.id) == (sequential.winner and sequential.winner.id)
    assert one.seconds == pytest.approx(sequential.seconds)
    assert [done.key for done in one.executions] == [done.key for done in sequential.executions]


@settings(deadline=None, max_examples=EXAMPLES)
@given(case=cases(breaks=False), how=ways(slots=2))
def test_speculation_finds_a_winner_wherever_the_sequential_run_does(case: Case, how: How) -> None:
    fast, _ = case.run(how)
    sequential, _ = case.run(SEQUENTIAL)
    assert (fast.winner is None) == (sequential.winner is None)


@settings(deadline=None, max_examples=EXAMPLES)
@given(case=cases(), how=ways())
def test_a_race_with_the_same_observations_is_the_same_race(case: Case, how: How) -> None:
    assert told(case, how) == told(case, how)


@settings(deadline=None, max_examples=EXAMPLES)
@given(case=cases(), how=ways())
def test_downloads_ahead_change_nothing_of_a_race_but_its_caches(case: Case, how: How) -> None:
    idle = replace(how, cores=float("inf"), admits=())
    assert told(case, replace(idle, warm=True)) == told(case, replace(idle, warm=False))


def told(case: Case, how: How) -> list[tuple[str, float, float, str]] | str:
    """All that a race comes to; but not which of several leaves that verify at the same time."""
    try:
        result, _ = case.run(how)
    except SandboxError as error:
        return error.message
    return sorted((done.key, done.start, done.end, done.outcome) for done in result.executions)
