"""Downloads ahead, in races on a scripted backend and a virtual clock."""

from __future__ import annotations

from collections.abc import Mapping

import anyio
import pytest

from specbuild.account import waste
from specbuild.breadth import Breadth
from specbuild.events import StepStarted
from specbuild.recipe import BaseRef, Check, Level, Recipe, Step, StepKind
from specbuild.sandbox.contract import Completed, LineSink, Sandbox
from specbuild.speculate import RaceResult, race
from specbuild.testing.clock import VirtualLoop
from specbuild.testing.fakes import Behaviour, FakeBackend, FakeSandbox, Files, Recorder, ScriptWorkshop
from specbuild.tree import Entry
from specbuild.warmers import APT_TOLD

BASE = BaseRef(name="debian:test", digest="sha256:0")
FIRST = Step(kind=StepKind.SYSTEM, run="apt-get update; apt-get install python3", caches=("apt",))
TOOLS = Step(kind=StepKind.TOOLCHAIN, run="install uv", caches=("pip",))
COMPILERS = Step(kind=StepKind.SYSTEM, run="apt-get install gcc", caches=("apt",))
SOURCE = Step(kind=StepKind.SOURCE, run="sha256:tree", network=False)
NEEDS = Step(kind=StepKind.DEPENDENCIES, run="uv pip install numpy", env=(("A", "b"),), caches=("uv",))
BUILD = Step(kind=StepKind.BUILD, run="uv pip install .")
FETCH_COMPILERS = f"apt-get update -qq\n{COMPILERS.run}"
SCRIPT = {
    FIRST.run: Behaviour(seconds=20, writes={"/lists": b""}),
    TOOLS.run: Behaviour(seconds=5, writes={"/uv": b""}),
    COMPILERS.run: Behaviour(seconds=20, writes={"/gcc": b""}),
}


class Watching(ScriptWorkshop):
    """Keeps which Step was run on which files."""

    def __init__(self, backend: FakeBackend) -> None:
        super().__init__(backend)
        self.runs: list[tuple[Step, frozenset[str], float]] = []

    async def run_step(self, sandbox: Sandbox, step: Step, *, on_line: LineSink, log: object) -> Completed:
        assert isinstance(sandbox, FakeSandbox)
        files = frozenset(sandbox.files)
        self.runs.append((step, files, anyio.current_time()))
        return await super().run_step(sandbox, step, on_line=on_line, log=None)

    @property
    def warmers(self) -> list[Step]:
        """The Steps that warmers ran."""
        return [step for step, files, _ in self.runs if APT_TOLD in files or "UV_NO_BUILD" in dict(step.env)]


class Raced:
    def __init__(
        self,
        *paths: tuple[Step, ...],
        script: Mapping[str, Behaviour] | None = None,
        slots: int = 3,
        breadth: Breadth = Breadth.ALL,
        warm: bool = True,
        beside: bool = False,
        time_limit: float | None = None,
    ) -> None:
        def behave(command: str, files: Files) -> Behaviour:
            return {**SCRIPT, **(script or {})}.get(command, Behaviour(seconds=1.0))

        self.backend = FakeBackend(behave)
        self.workshop = Watching(self.backend)
        self.recorder = Recorder()
        check = Check(level=Level.TESTS, runner="pytest", step=Step(kind=StepKind.TEST, run="check"))
        entries = [
            Entry(f"c{number}", Recipe(base=BASE, steps=steps, check=check), 0.9 - number / 10, 60.0, number)
            for number, steps in enumerate(paths)
        ]

        async def main() -> RaceResult:
            return await race(
                entries,
                self.backend,
                self.workshop,
                slots=slots,
                reporter=self.recorder,
                breadth=breadth,
                warm=warm,
                beside=beside,
                time_limit=time_limit,
                clock=anyio.current_time,
            )

        self.result = anyio.run(main, backend_options={"loop_factory": VirtualLoop})

    @property
    def warmed(self) -> list[str]:
        return [step.run for step in self.workshop.warmers]


PATH = (FIRST, TOOLS, COMPILERS, SOURCE, NEEDS, BUILD)


def test_packages_of_a_later_step_are_fetched_while_the_first_ones_are_installed() -> None:
    raced = Raced(PATH)
    assert raced.warmed[0] == FETCH_COMPILERS
    step, files, at = raced.workshop.runs[1]
    assert (step.run, at) == (FETCH_COMPILERS, 0.0), "beside the first step, on the bare base"
    assert files == {APT_TOLD}
    assert raced.result.winner is not None


def test_wheels_are_fetched_while_compilers_are_installed_and_nothing_is_built() -> None:
    raced = Raced(PATH)
    fetched = next(step for step in raced.workshop.warmers if step.kind is StepKind.DEPENDENCIES)
    assert dict(fetched.env) == {"A": "b", "UV_NO_BUILD": "1", "PIP_ONLY_BINARY": ":all:"}
    places = [(step.run, files) for step, files, at in raced.workshop.runs if at in (25.0, 26.0)]
    tools = frozenset({"/lists", "/uv"})
    assert (SOURCE.run, tools) in places, "in a fork of the state with the tools, the source tree is placed first"
    assert not any(step.kind is StepKind.BUILD for step in raced.workshop.warmers)


def test_package_lists_that_are_there_are_not_fetched_again() -> None:
    libraries = COMPILERS.model_copy(update={"run": "apt-get install libpq-dev"})
    raced = Raced((FIRST, TOOLS, COMPILERS, libraries), script={FETCH_COMPILERS: Behaviour(hangs=True)})
    assert raced.warmed == [FETCH_COMPILERS, libraries.run]


@pytest.mark.parametrize(
    "how", [{"warm": False}, {"breadth": Breadth.RECIPE}, {"slots": 1}], ids=["off", "one recipe", "one slot"]
)
def test_there_are_none_without_idle_slots_or_when_they_are_off(how: dict[str, object]) -> None:
    raced = Raced(PATH, **how)  # type: ignore[arg-type]
    assert raced.warmed == []
    assert raced.backend.ran == [*(step.run for step in PATH), "check"]
    assert raced.result.warmed.runs == 0


def test_what_another_branch_fetches_is_left_to_it() -> None:
    raced = Raced(PATH, (FIRST, TOOLS, SOURCE, NEEDS, BUILD), script={"check": Behaviour(seconds=60)})
    assert NEEDS.run not in raced.warmed


def test_a_warmer_ends_as_well_when_its_step_starts_before_its_turn() -> None:
    packages = COMPILERS.model_copy(update={"cwd": "/"})
    raced = Raced((FIRST, TOOLS, packages, SOURCE, BUILD), script={FETCH_COMPILERS: Behaviour(hangs=True)}, beside=True)
    assert raced.warmed == [FETCH_COMPILERS]
    assert raced.result.warmed.seconds == 20.0, "when the first packages were installed"


@pytest.mark.parametrize(
    "fault",
    [Behaviour(breaks="no fork"), Behaviour(exit_code=1), Behaviour(hangs=True)],
    ids=["machinery breaks", "command fails", "hangs"],
)
def test_whatever_becomes_of_a_warmer_the_race_is_the_same(fault: Behaviour) -> None:
    calm, troubled = Raced(PATH, warm=False), Raced(PATH, script={FETCH_COMPILERS: fault})
    assert troubled.warmed
    assert troubled.result.winner is not None
    assert troubled.result.seconds == pytest.approx(calm.result.seconds)
    assert troubled.result.ends == calm.result.ends
    told = [[e.title for e in raced.recorder.events if isinstance(e, StepStarted)] for raced in (calm, troubled)]
    assert told[0] == told[1], "no event tells of warmers as if they were steps"
    assert troubled.backend.open == 0
    assert troubled.backend.active == set()


def test_a_warmer_ends_at_once_when_its_step_starts() -> None:
    active: list[bool] = []

    def look(command: str, files: Files) -> Behaviour:
        if command == SOURCE.run:
            active.append(FETCH_COMPILERS in raced_backend.active)
        return {**SCRIPT, FETCH_COMPILERS: Behaviour(hangs=True)}.get(command, Behaviour(seconds=1.0))

    raced_backend = FakeBackend(look)
    workshop = Watching(raced_backend)
    check = Check(level=Level.TESTS, runner="pytest", step=Step(kind=StepKind.TEST, run="check"))
    entry = Entry("c1", Recipe(base=BASE, steps=PATH, check=check), 0.9, 60.0, 0)

    async def main() -> RaceResult:
        return await race(
            [entry], raced_backend, workshop, slots=3, reporter=Recorder(), warm=True, clock=anyio.current_time
        )

    result = anyio.run(main, backend_options={"loop_factory": VirtualLoop})
    assert FETCH_COMPILERS in raced_backend.ran
    assert active[-1] is False
    assert result.warmed.seconds >= 25.0, "it hung until its step began"


def test_a_race_that_ends_takes_its_warmers_along() -> None:
    raced = Raced(PATH, script={FETCH_COMPILERS: Behaviour(hangs=True)}, time_limit=10.0)
    assert raced.result.timed_out
    assert raced.warmed == [FETCH_COMPILERS]
    assert raced.backend.open == 0


def test_what_warmers_use_is_told_apart_from_winner_and_losers() -> None:
    calm = waste(Raced(PATH, warm=False).result)
    told = waste(Raced(PATH, script={FETCH_COMPILERS: Behaviour(seconds=3, writes={"/a": b"12345"})}).result)
    assert (told.winner_cpu_seconds, told.loser_cpu_seconds) == (calm.winner_cpu_seconds, calm.loser_cpu_seconds)
    assert told.warmer_cpu_seconds >= 3.0
    assert told.warmer_bytes >= 5
    assert calm.warmer_cpu_seconds == calm.warmer_bytes == 0
