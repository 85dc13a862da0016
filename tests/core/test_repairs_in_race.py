"""Repairs in a race, on a scripted backend and a virtual clock."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import anyio
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from specbuild.breadth import Breadth
from specbuild.chronicle import Chronicle
from specbuild.events import CandidateEnded, FailureSeen
from specbuild.execution import Foresight
from specbuild.failures import Failure, HollowPass, MissingCommand
from specbuild.hedging import Hedging
from specbuild.outcome import Outcome
from specbuild.recipe import BaseRef, Check, Level, Recipe, Step, StepKind
from specbuild.sites import node_at
from specbuild.speculate import RaceResult, race
from specbuild.testing.clock import VirtualLoop
from specbuild.testing.fakes import Behaviour, FakeBackend, Files, Recorder, Script, ScriptWorkshop
from specbuild.testing.mending import ScriptMender, ScriptReader
from specbuild.tree import Edge, EdgeState, Entry, RecipeState, Tree

BASE = BaseRef(name="debian:test", digest="sha256:0")
FIXES = "/fixed/"


def recipe(*commands: str, check: str = "check") -> Recipe:
    steps = tuple(Step(kind=StepKind.DEPENDENCIES, run=command) for command in commands)
    test = Step(kind=StepKind.TEST, run=check)
    return Recipe(base=BASE, steps=steps, check=Check(level=Level.TESTS, runner="pytest", step=test))


def entry(name: str, made: Recipe, *, prior: float = 0.5, order: int = 0) -> Entry:
    return Entry(id=name, recipe=made, prior=prior, expected_seconds=10.0, order=order)


class World:
    """Commands need names: without them they tell so after a while, and fail in the end. `fix x` brings x."""

    def __init__(
        self, commands: Mapping[str, tuple[str, ...]], *, seconds: float = 10.0, tells: float | None = 2.0
    ) -> None:
        self._commands = commands
        self._seconds = seconds
        self._tells = tells

    def __call__(self, command: str, files: Files) -> Behaviour:
        if command.startswith("fix "):
            name = command.removeprefix("fix ")
            if name.startswith("broken"):
                return Behaviour(seconds=1.0, exit_code=1)
            return Behaviour(seconds=1.0, writes={FIXES + name: b""})
        missing = [name for name in self._commands.get(command, ()) if FIXES + name not in files]
        if not missing:
            return Behaviour(seconds=self._seconds)
        if self._tells is None:
            return Behaviour(seconds=self._seconds, exit_code=1, output=(f"END {missing[0]}",))
        return Behaviour(seconds=self._seconds, exit_code=1, says=((self._tells, f"FAIL {missing[0]}"),))


class Raced:
    def __init__(
        self,
        entries: list[Entry],
        world: Script,
        *,
        slots: int = 4,
        ahead: bool = True,
        breadth: Breadth = Breadth.ALL,
        mender: ScriptMender | None = None,
    ) -> None:
        self.recorder, self.backend = Recorder(), FakeBackend(world)
        self.mender = mender or ScriptMender()

        async def main() -> RaceResult:
            return await race(
                entries,
                self.backend,
                ScriptWorkshop(self.backend),
                slots=slots,
                reporter=self.recorder,
                mender=self.mender,
                ahead=ahead,
                breadth=breadth,
                clock=anyio.current_time,
            )

        self.result = anyio.run(main, backend_options={"loop_factory": VirtualLoop})
        self.winner = self.result.winner.id if self.result.winner else None

    def seen(self) -> list[str]:
        return [event.words for event in self.recorder.events if isinstance(event, FailureSeen)]

    def ends(self) -> dict[str, str]:
        return {event.candidate: event.end for event in self.recorder.events if isinstance(event, CandidateEnded)}


def test_an_observed_failure_extends_the_tree_by_its_repair_from_the_checkpoint_before_the_step() -> None:
    raced = Raced([entry("a", recipe("apt", "build"))], World({"build": ("gcc",)}), ahead=False)
    assert raced.winner == "a.fix gcc"
    assert raced.backend.ran == ["apt", "build", "fix gcc", "build", "check"]
    assert raced.result.seconds == pytest.approx(10 + 10 + 1 + 10 + 10)
    assert raced.ends() == {"a": "failed", "a.fix gcc": "committed"}
    assert raced.seen() == ["the program gcc is missing"]


def test_a_foreseen_failure_is_repaired_beside_the_running_step_and_the_seconds_are_gained() -> None:
    raced = Raced([entry("a", recipe("apt", "build"))], World({"build": ("gcc",)}, tells=2.0))
    assert raced.winner == "a.fix gcc"
    assert raced.backend.ran == ["apt", "build", "fix gcc", "build", "check"]
    assert raced.result.seconds == pytest.approx(10 + 2 + 1 + 10 + 10), "8 of 10 seconds are not waited for"


def test_the_repair_of_a_prediction_and_of_the_observation_are_one_recipe() -> None:
    raced = Raced([entry("a", recipe("build"))], World({"build": ("gcc",)}, tells=9.5))
    assert raced.winner == "a.fix gcc"
    assert [e.id for e in raced.result.tree.entries()] == ["a", "a.fix gcc"]
    assert raced.backend.ran.count("fix gcc") == 1


def test_a_wrong_prediction_costs_only_its_own_branch() -> None:
    def world(command: str, files: Files) -> Behaviour:
        if command == "build":
            return Behaviour(seconds=10, says=((1.0, "FAIL gcc"),))
        return Behaviour(seconds=30 if command == "fix gcc" else 1)

    raced = Raced([entry("a", recipe("build"))], world, slots=2, mender=ScriptMender())
    result, backend = raced.result, raced.backend
    assert result.winner is not None
    assert result.winner.id == "a"
    assert result.seconds == pytest.approx(11.0)
    assert result.tree.state("a.fix gcc") is RecipeState.CANCELLED
    assert result.ends["a.fix gcc"] == "what it repairs did not fail"
    assert backend.active == set()


def crying_wolf(command: str, files: Files) -> Behaviour:
    """`build` says that it wants for pq, and does not; the check does want for it."""
    if command == "fix pq":
        return Behaviour(seconds=1.0, writes={FIXES + "pq": b""})
    failed = command == "check" and FIXES + "pq" not in files
    return Behaviour(seconds=10.0, exit_code=int(failed), says=((2.0, "FAIL pq"),))


def test_a_repair_that_was_given_up_is_taken_up_again_when_it_is_needed_after_all() -> None:
    raced = Raced([entry("a", recipe("build"))], crying_wolf, mender=ScriptMender(early=["pq"]))
    first, again = (one for one in raced.result.tree.entries() if one.id != "a")
    assert first.recipe.digest == again.recipe.digest
    assert raced.ends() == {"a": "failed", first.id: "cancelled", again.id: "committed"}
    assert raced.result.seconds < 10 + 10 + 1 + 10 + 10, "from where it was given up"


class Slow(ScriptMender):
    """Takes its time over what repairs a repair."""

    async def mend(
        self, edge: Edge, broken: Sequence[Entry], failures: Sequence[Failure], *, foreseen: bool
    ) -> list[Entry]:
        await anyio.sleep(9.0 if any("fix" in entry.id for entry in broken) else 0.0)
        return await super().mend(edge, broken, failures, foreseen=foreseen)


@pytest.mark.parametrize("mender", [ScriptMender, Slow])
def test_what_repairs_a_repair_that_is_given_up_is_given_up_as_well(mender: type[ScriptMender]) -> None:
    def script(command: str, files: Files) -> Behaviour:
        if command.startswith("fix "):
            return Behaviour(seconds=0.5, writes={FIXES + command.removeprefix("fix "): b""})
        told = "make" if FIXES + "gcc" in files else "gcc"
        return Behaviour(seconds=10.0, says=((1.0, f"FAIL {told}"),) if command == "build" else ())

    raced = Raced([entry("a", recipe("build"))], script, mender=mender())
    assert raced.ends() == {"a": "committed", "a.fix gcc": "cancelled", "a.fix gcc.fix make": "cancelled"}
    assert set(raced.result.ends.values()) == {"1 passed", "what it repairs did not fail"}


def test_a_repair_of_what_nothing_comes_to_any_more_is_a_candidate_as_any_other() -> None:
    class Foreseeing(ScriptMender):
        async def foresee(self, entry: Entry) -> Foresight:
            build = Edge(node_at(entry.recipe, 1), None, entry.recipe.steps[1])
            return Foresight(
                await self.mend(build, [entry], [MissingCommand(command="pq", evidence="")], foreseen=True)
            )

    def script(command: str, files: Files) -> Behaviour:
        if command == "fix pq":
            return Behaviour(seconds=1.0, writes={FIXES + "pq": b""})
        return Behaviour(seconds=3.0, exit_code=int(command == "first" and FIXES + "pq" not in files))

    entries = [entry("a", recipe("first", "build"))]
    raced = Raced(entries, script, slots=1, breadth=Breadth.STRATEGY, mender=Foreseeing(early=["pq"]))
    assert raced.ends() == {"a": "failed", "a.fix pq": "committed"}


def test_a_chain_of_failures_is_repaired_one_after_the_other() -> None:
    raced = Raced([entry("a", recipe("build"))], World({"build": ("gcc", "make", "pq")}), ahead=False)
    assert raced.winner == "a.fix gcc.fix make.fix pq"
    assert raced.backend.ran == ["build", "fix gcc", "build", "fix make", "build", "fix pq", "build", "check"]


def test_what_fails_in_the_check_is_repaired_before_the_check() -> None:
    raced = Raced([entry("a", recipe("build"))], World({"check": ("less",)}))
    assert raced.winner == "a.fix less"
    assert raced.backend.ran == ["build", "check", "fix less", "check"]


def test_a_failure_that_shows_only_at_the_end_is_repaired_too() -> None:
    raced = Raced([entry("a", recipe("build"))], World({"build": ("gcc",)}, tells=None))
    assert raced.winner == "a.fix gcc"


def test_rival_repairs_race_and_the_one_that_works_wins() -> None:
    raced = Raced(
        [entry("a", recipe("build"))],
        World({"build": ("broken",)}),
        mender=ScriptMender(rivals={"broken": 2}),
        ahead=False,
    )
    assert raced.ends()["a.fix broken"] == "failed"
    assert raced.winner is None, "the second way does not bring what is needed, and then nothing is left"


def test_a_repair_that_changes_nothing_does_not_go_on_for_ever() -> None:
    raced = Raced([entry("a", recipe("build"))], World({"build": ("broken",)}))
    assert raced.winner is None
    assert len(list(raced.result.tree.entries())) == 2


def test_the_repairs_of_recipes_that_share_a_failing_step_share_it_as_well() -> None:
    raced = Raced(
        [entry("a", recipe("build", check="check a")), entry("b", recipe("build", check="check b"), order=1)],
        World({"build": ("gcc",), "check a": ("never",)}),
        ahead=False,
        mender=ScriptMender(most=1),
    )
    assert raced.backend.ran.count("fix gcc") == 1
    assert raced.backend.ran.count("build") == 2
    assert raced.winner == "b.fix gcc"


def test_sequential_mode_repairs_what_it_has_seen_before_it_tries_the_next_recipe() -> None:
    raced = Raced(
        [entry("a", recipe("build")), entry("b", recipe("other"), prior=0.1, order=1)],
        World({"build": ("gcc",)}),
        breadth=Breadth.RECIPE,
        slots=1,
    )
    assert raced.winner == "a.fix gcc"
    assert "other" not in raced.backend.ran
    assert raced.backend.ran == ["build", "fix gcc", "build", "check"]


def test_a_check_that_cannot_pass_any_more_is_ended_early_once_its_repair_is_under_way() -> None:
    tally = f"specbuild-tally {recipe('build').check.mark}"

    def world(command: str, files: Files) -> Behaviour:
        if command == "check" and FIXES + "db" not in files:
            says = ((1.0, "FAIL db"), (1.0, f"{tally} 3 1 40"), (5.0, f"{tally} 3 5 40"))
            return Behaviour(seconds=100, exit_code=1, says=says)
        return Behaviour(seconds=1.0, writes={FIXES + "db": b""} if command == "fix db" else {})

    raced = Raced([entry("a", recipe("build"))], world, slots=2, mender=ScriptMender())
    result, backend = raced.result, raced.backend
    assert result.winner is not None
    assert result.winner.id == "a.fix db"
    assert result.seconds == pytest.approx(1 + 5 + 1 + 1), "neither at the first failure, nor after 100 seconds"
    assert result.tree.state("a") is RecipeState.FAILED
    assert "5 of 40 tests had failed" in result.ends["a"]
    ended = next(done for done in result.executions if done.ended_early)
    assert ended.outcome is Outcome.FAILED
    assert ended.end == pytest.approx(6.0)
    assert backend.active == set()


FORGED = (
    *("specbuild-tally 0 40 40", "specbuild-tally", "specbuild-tally  0 40 40", "specbuild-tally x 0 40 40"),
    *(
        f"specbuild-tally {recipe('build').check.mark} {rest}"
        for rest in ("0 ² 3", f"0 {'9' * 5000} 1", "0 1 0", "0 -1 -9")
    ),
)


@pytest.mark.parametrize("line", FORGED)
def test_a_tally_that_a_test_has_printed_does_not_end_a_check(line: str) -> None:
    def world(command: str, files: Files) -> Behaviour:
        del files
        if command == "check":
            return Behaviour(seconds=100, says=((1.0, "FAIL db"), (2.0, line)))
        return Behaviour(seconds=1.0)

    raced = Raced([entry("a", recipe("build"))], world, slots=2, mender=ScriptMender())
    result = raced.result
    assert result.winner is not None
    assert result.winner.id == "a"
    assert result.seconds == pytest.approx(101.0)


def test_trouble_of_the_network_is_tried_again_and_not_repaired() -> None:
    tries = iter(("down", "up"))

    def world(command: str, files: Files) -> Behaviour:
        if command == "fetch" and next(tries) == "down":
            return Behaviour(exit_code=1, seconds=1, says=((0.5, "NET"),))
        return Behaviour(seconds=1)

    from specbuild.failures import NetworkTrouble

    class Reader:
        def feed(self, line: str) -> list[NetworkTrouble]:
            return [NetworkTrouble(host="example.org", evidence=line)] if line == "NET" else []

        def finish(self) -> list[NetworkTrouble]:
            return []

    class Mender(ScriptMender):
        def reader(self) -> Reader:  # type: ignore[override]  # pyright: ignore[reportIncompatibleMethodOverride]
            return Reader()

    raced = Raced([entry("a", recipe("fetch"))], world, slots=2, mender=Mender())
    result, backend = raced.result, raced.backend
    assert result.winner is not None
    assert backend.ran == ["fetch", "fetch", "check"]


names = st.sampled_from(["gcc", "make", "pq", "broken"])
commands = st.sampled_from(["c1", "c2", "c3", "c4"])
worlds = st.dictionaries(st.sampled_from(["c1", "c2", "c3", "c4", "check"]), st.lists(names, unique=True).map(tuple))


@settings(deadline=None, max_examples=150)
@given(
    paths=st.lists(st.lists(commands, min_size=1, max_size=4, unique=True), min_size=1, max_size=5),
    world=worlds,
    tells=st.sampled_from([None, 0.5, 5.0, 9.9]),
    slots=st.integers(1, 5),
    ahead=st.booleans(),
    rivals=st.integers(1, 3),
)
def test_whatever_fails_no_step_runs_twice_at_one_node_and_the_end_is_reached(
    paths: list[list[str]], world: dict[str, tuple[str, ...]], tells: float | None, slots: int, ahead: bool, rivals: int
) -> None:
    entries = [entry(f"r{n}", recipe(*path), prior=0.5 / (n + 1), order=100 * n) for n, path in enumerate(paths)]
    mender = ScriptMender(rivals=dict.fromkeys(["gcc", "make", "pq", "broken"], rivals), most=3)
    raced = Raced(entries, World(world, tells=tells), slots=slots, ahead=ahead, mender=mender)
    whole = [done.key for done in raced.result.executions if done.outcome is not Outcome.CANCELLED]
    assert len(whole) == len(set(whole)), "every edge came to its end once at the most"
    assert raced.backend.open == 0
    assert raced.backend.active == set()
    tree = raced.result.tree
    if raced.winner is None:
        assert all(tree.state(e.id) is not RecipeState.LIVE for e in tree.entries())
        assert not tree.running()
    else:
        assert all(tree.edge(key).state is EdgeState.DONE for key in tree.path(raced.winner))


@settings(deadline=None, max_examples=60)
@given(
    world=worlds,
    tells=st.sampled_from([0.5, 9.9]),
    paths=st.lists(st.lists(commands, min_size=1, max_size=3, unique=True), min_size=1, max_size=3),
)
def test_speculation_finds_a_winner_exactly_where_the_sequential_run_does(
    world: dict[str, tuple[str, ...]], tells: float, paths: list[list[str]]
) -> None:
    entries = [entry(f"r{n}", recipe(*path), prior=0.5 / (n + 1), order=100 * n) for n, path in enumerate(paths)]
    fast = Raced(entries, World(world, tells=tells), slots=4)
    slow = Raced(entries, World(world, tells=tells), slots=1, breadth=Breadth.RECIPE, ahead=False)
    assert (fast.winner is None) == (slow.winner is None)
    assert fast.winner is None or fast.result.seconds <= slow.result.seconds + 1e-6


class SlowMender(ScriptMender):
    """Seeks repairs for ever, as one does that waits for a mirror."""

    def __init__(self) -> None:
        super().__init__()
        self.seeking = 0

    async def mend(
        self, edge: Edge, broken: Sequence[Entry], failures: Sequence[Failure], *, foreseen: bool
    ) -> list[Entry]:
        del edge, broken, failures, foreseen
        self.seeking += 1
        try:
            await anyio.sleep_forever()
        finally:
            self.seeking -= 1
        return []


@pytest.mark.parametrize("how", ["limit", "cancelled"])
@pytest.mark.parametrize("ahead", [False, True])
def test_a_race_ends_in_time_while_repairs_are_being_sought(how: str, ahead: bool) -> None:
    backend, recorder, mender = FakeBackend(World({"build": ("gcc",)})), Recorder(), SlowMender()
    results: list[RaceResult] = []

    async def main() -> float:
        with anyio.move_on_after(30 if how == "cancelled" else 1000):
            results.append(
                await race(
                    [entry("a", recipe("build"))],
                    backend,
                    ScriptWorkshop(backend),
                    slots=2,
                    reporter=recorder,
                    mender=mender,
                    ahead=ahead,
                    time_limit=30 if how == "limit" else None,
                    clock=anyio.current_time,
                )
            )
        return anyio.current_time()

    assert anyio.run(main, backend_options={"loop_factory": VirtualLoop}) == pytest.approx(30)
    assert [(result.winner, result.timed_out) for result in results] == ([(None, True)] if how == "limit" else [])
    assert mender.seeking == 0
    assert backend.active == set()


class HollowMender(ScriptMender):
    """Takes `HOLLOW` for a suite without tests, and keeps what it is to repair."""

    def __init__(self) -> None:
        super().__init__()
        self.asked: list[Failure] = []

    class _Reader(ScriptReader):
        def feed(self, line: str) -> Iterable[Failure]:
            return [HollowPass(what="collected 0 items")] if line == "HOLLOW" else super().feed(line)

    def reader(self) -> ScriptReader:
        return self._Reader()

    async def mend(
        self, edge: Edge, broken: Sequence[Entry], failures: Sequence[Failure], *, foreseen: bool
    ) -> list[Entry]:
        self.asked += failures
        return await super().mend(edge, broken, failures, foreseen=foreseen)


@pytest.mark.parametrize("tally", [False, True])
def test_a_suite_that_fails_is_not_taken_for_an_empty_one_whatever_it_prints(tally: bool) -> None:
    mark = recipe("build").check.mark

    def world(command: str, files: Files) -> Behaviour:
        del files
        if command == "check":
            says = ((1.0, "HOLLOW"), (2.0, "FAIL x"), *(((3.0, f"specbuild-tally {mark} 0 40 40"),) if tally else ()))
            return Behaviour(seconds=5, exit_code=1, says=says)
        return Behaviour(seconds=1.0)

    mender = HollowMender()
    backend = FakeBackend(world)

    async def main() -> RaceResult:
        return await race(
            [entry("a", recipe("build"))],
            backend,
            ScriptWorkshop(backend),
            slots=2,
            reporter=Recorder(),
            mender=mender,
            clock=anyio.current_time,
        )

    assert anyio.run(main, backend_options={"loop_factory": VirtualLoop}).winner is None
    assert mender.asked
    assert not [failure for failure in mender.asked if isinstance(failure, HollowPass)]


class Doubting(ScriptMender):
    """Foresees that `build` of the recipes named will fail."""

    def __init__(self, *doubted: str) -> None:
        super().__init__()
        self._doubted = doubted

    async def foresee(self, entry: Entry) -> Foresight:
        if entry.id not in self._doubted:
            return Foresight()
        return Foresight((), entry.prior * 0.2, node_at(entry.recipe, len(entry.recipe.steps) - 1))


async def test_what_is_foreseen_counts_until_the_step_that_it_concerns_has_passed() -> None:
    tree, first = Tree(), entry("a", recipe("first", "second"), prior=0.5)
    hedging = Hedging(
        tree,
        Chronicle(Recorder(), anyio.current_time, None),
        Doubting("a"),
        ahead=True,
        min_pass_ratio=0.9,
        wake=lambda: None,
        end_early=lambda edge: None,
    )
    odds: list[float] = []
    async with anyio.create_task_group() as tasks:
        hedging.begin(tasks)
        hedging.add(first)
        hedging.look_ahead([first])
        await anyio.wait_all_tasks_blocked()
        for key in tree.path("a")[:3]:
            odds.append(tree.odds("a"))
            hedging.succeed(tree.start(key))
    assert odds == [pytest.approx(0.1)] * 3, "the base and another step say nothing of it"
    assert tree.odds("a") == pytest.approx(0.5)
