"""The race on a scripted backend and a virtual clock."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import pairwise

import anyio
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from specbuild.account import waste
from specbuild.breadth import Breadth
from specbuild.errors import BaseUnavailableError, SandboxError, SpecBuildError, TransientError
from specbuild.events import CandidateEnded, Notice, StepEnded, StepStarted
from specbuild.outcome import Outcome
from specbuild.recipe import BaseRef, Check, Level, Recipe, Step, StepKind
from specbuild.speculate import Later, RaceResult, race
from specbuild.testing.clock import VirtualLoop
from specbuild.testing.fakes import Behaviour, FakeBackend, Files, Recorder, ScriptWorkshop
from specbuild.tree import Entry

BASE = BaseRef(name="debian:test", digest="sha256:0")


def recipe(*commands: str, check: str = "check", base: BaseRef = BASE) -> Recipe:
    steps = tuple(Step(kind=StepKind.DEPENDENCIES, run=command) for command in commands)
    return Recipe(base=base, steps=steps, check=Check(level=Level.TESTS, runner="pytest", step=test_step(check)))


def test_step(command: str) -> Step:
    return Step(kind=StepKind.TEST, run=command)


test_step.__test__ = False  # type: ignore[attr-defined]


def entry(name: str, made: Recipe, *, prior: float = 0.5, seconds: float = 10.0, order: int = 0) -> Entry:
    return Entry(id=name, recipe=made, prior=prior, expected_seconds=seconds, order=order)


class Raced:
    """A finished race with everything that a test looks at."""

    def __init__(
        self,
        entries: list[Entry],
        script: Mapping[str, Behaviour],
        *,
        slots: int = 4,
        sequential: bool = False,
        time_limit: float | None = None,
        missing_bases: tuple[str, ...] = (),
        later: tuple[Later, ...] = (),
    ) -> None:
        def behave(command: str, files: Files) -> Behaviour:
            return script.get(command, Behaviour(seconds=1.0))

        self.recorder = Recorder()
        self.backend = FakeBackend(behave)

        async def main() -> RaceResult:
            return await race(
                entries,
                self.backend,
                ScriptWorkshop(self.backend, missing=missing_bases),
                slots=slots,
                reporter=self.recorder,
                later=later,
                breadth=Breadth.RECIPE if sequential else Breadth.ALL,
                time_limit=time_limit,
                clock=anyio.current_time,
            )

        self.result = anyio.run(main, backend_options={"loop_factory": VirtualLoop})

    @property
    def winner(self) -> str | None:
        return self.result.winner.id if self.result.winner else None

    def ends(self) -> dict[str, str]:
        return {event.candidate: event.end for event in self.recorder.events if isinstance(event, CandidateEnded)}


def test_the_first_verified_leaf_wins_although_a_better_ranked_rival_hangs() -> None:
    raced = Raced(
        [entry("hangs", recipe("hang"), prior=0.9), entry("works", recipe("install"), prior=0.2, order=1)],
        {"hang": Behaviour(hangs=True)},
    )
    assert raced.winner == "works"
    assert raced.ends() == {"hangs": "cancelled", "works": "committed"}
    assert raced.backend.open == 0
    assert raced.backend.active == set()
    assert raced.result.seconds == pytest.approx(2.0)


def test_what_cancelled_steps_and_checks_have_used_is_accounted_for() -> None:
    raced = Raced(
        [entry("hangs", recipe("hang"), prior=0.9), entry("works", recipe("install"), prior=0.2, order=1)],
        {"hang": Behaviour(hangs=True), "install": Behaviour(seconds=3, writes={"/lib": b"12345"})},
    )
    (cancelled,) = (done for done in raced.result.executions if done.outcome is Outcome.CANCELLED)
    assert cancelled.completed is None
    assert cancelled.cpu_seconds == pytest.approx(4.0)
    cost = waste(raced.result)
    assert cost.loser_cpu_seconds == pytest.approx(4.0)
    assert cost.winner_cpu_seconds == pytest.approx(3.0 + 1.0), "the step and its check"
    assert (cost.winner_bytes, cost.loser_bytes) == (5, 0)
    told = {event.node: event.cpu_seconds for event in raced.recorder.events if isinstance(event, StepEnded)}
    assert told[cancelled.key] == pytest.approx(4.0)


def test_a_shared_prefix_runs_once() -> None:
    raced = Raced(
        [entry("a", recipe("apt", "uv a"), order=0), entry("b", recipe("apt", "uv b"), order=1)],
        {"uv a": Behaviour(exit_code=1)},
    )
    assert raced.backend.ran.count("apt") == 1
    assert raced.winner == "b"


def test_a_failed_step_ends_every_recipe_that_needs_it_and_says_why() -> None:
    raced = Raced(
        [entry("a", recipe("apt", "x")), entry("b", recipe("apt", "y"), order=1)], {"apt": Behaviour(exit_code=100)}
    )
    assert raced.winner is None
    assert raced.ends() == {"a": "failed", "b": "failed"}
    assert raced.result.ends["b"] == "apt exited with status 100"


def test_a_running_step_that_only_dead_recipes_need_is_cancelled() -> None:
    quick = recipe("fails")
    slow = recipe("slow", "after")
    raced = Raced(
        [entry("a", quick), entry("b", slow, order=1)],
        {"fails": Behaviour(seconds=1, exit_code=1), "slow": Behaviour(seconds=5), "after": Behaviour(exit_code=3)},
    )
    assert raced.ends() == {"a": "failed", "b": "failed"}
    assert raced.result.seconds == pytest.approx(5.0)


def test_sequential_mode_runs_one_step_at_a_time_and_one_recipe_after_the_other() -> None:
    raced = Raced(
        [entry("a", recipe("a1", "a2"), prior=0.9), entry("b", recipe("b1"), prior=0.1, order=1)],
        {"a2": Behaviour(seconds=1, exit_code=1)},
        slots=1,
        sequential=True,
    )
    assert raced.backend.ran == ["a1", "a2", "b1", "check"]
    assert raced.winner == "b"


def test_slots_bound_what_runs_at_once() -> None:
    entries = [entry(f"c{n}", recipe(f"step {n}"), order=n) for n in range(9)]
    script = {f"step {n}": Behaviour(seconds=1 + n, exit_code=1) for n in range(9)}
    raced = Raced(entries, script, slots=3)
    running = 0
    most = 0
    for event in raced.recorder.events:
        if isinstance(event, StepStarted):
            running += 1
            most = max(most, running)
        elif isinstance(event, StepEnded):
            running -= 1
    assert most == 3


def test_trouble_of_our_own_is_tried_again_and_never_looks_like_the_repositorys_failure() -> None:
    with pytest.raises(SandboxError, match="lost the mount"):
        Raced([entry("a", recipe("x"))], {"x": Behaviour(breaks="lost the mount")})


def test_a_base_that_cannot_be_had_only_removes_its_own_candidates() -> None:
    gone = BaseRef(name="gone", digest="sha256:1")
    raced = Raced(
        [entry("a", recipe("x", base=gone), prior=0.9), entry("b", recipe("x"), order=1)], {}, missing_bases=("gone",)
    )
    assert raced.winner == "b"
    assert raced.result.ends["a"] == "our own machinery failed: no base gone"


def test_the_time_limit_ends_the_race_and_everything_that_runs() -> None:
    raced = Raced([entry("a", recipe("hang"))], {"hang": Behaviour(hangs=True)}, time_limit=30)
    assert raced.result.timed_out
    assert raced.winner is None
    assert raced.result.seconds == pytest.approx(30)
    assert raced.ends() == {"a": "cancelled"}
    assert raced.backend.active == set()
    assert raced.backend.open == 0


def later(*entries: Entry, seconds: float = 0.0, error: SpecBuildError | None = None) -> Later:
    async def bring() -> list[Entry]:
        await anyio.sleep(seconds)
        if error is not None:
            raise error
        return list(entries)

    return bring


def test_a_base_that_is_made_beside_the_race_brings_its_candidates_in() -> None:
    raced = Raced(
        [entry("a", recipe("fails"))],
        {"fails": Behaviour(seconds=5, exit_code=1)},
        later=(later(entry("b", recipe("works"), order=1), seconds=20),),
    )
    assert raced.winner == "b"
    assert raced.result.seconds == pytest.approx(22), "it was being made while the first candidate ran"


def test_what_is_still_being_made_is_given_up_when_a_candidate_verifies() -> None:
    raced = Raced([entry("a", recipe("works"))], {}, later=(later(entry("b", recipe("x"), order=1), seconds=500),))
    assert raced.winner == "a"
    assert raced.result.seconds == pytest.approx(2)


def test_a_full_house_makes_nothing_on_speculation() -> None:
    raced = Raced(
        [entry("a", recipe("long", "longer"))],
        {},
        slots=1,
        later=(later(error=BaseUnavailableError("nobody should have asked")),),
    )
    assert raced.winner == "a"
    assert not [event for event in raced.recorder.events if isinstance(event, Notice)]


def test_sequential_mode_makes_another_base_only_when_all_candidates_have_failed() -> None:
    raced = Raced(
        [entry("a", recipe("fails"))],
        {"fails": Behaviour(seconds=5, exit_code=1)},
        slots=1,
        sequential=True,
        later=(later(entry("b", recipe("works"), order=1), seconds=20),),
    )
    assert raced.winner == "b"
    assert raced.result.seconds == pytest.approx(27)


def test_a_base_that_cannot_be_made_is_told_and_ends_nothing() -> None:
    raced = Raced(
        [entry("a", recipe("slow"))],
        {"slow": Behaviour(seconds=9)},
        later=(later(error=TransientError("the mirror is away")), later(entry("b", recipe("x"), order=1), seconds=1)),
    )
    assert [event.message for event in raced.recorder.events if isinstance(event, Notice)] == ["the mirror is away"]
    assert raced.winner == "b"


COMMANDS = st.lists(st.sampled_from(["s1", "s2", "s3", "s4", "s5"]), max_size=4)
OUTCOMES = st.fixed_dictionaries(
    {
        command: st.builds(
            Behaviour,
            seconds=st.integers(0, 20).map(float),
            exit_code=st.sampled_from([0, 0, 0, 1]),
            breaks=st.sampled_from(["", "", "", "", "machinery"]),
        )
        for command in ["s1", "s2", "s3", "s4", "s5", "check", "other check"]
    }
)


@settings(max_examples=300, deadline=None)
@given(
    paths=st.lists(st.tuples(COMMANDS, st.sampled_from(["check", "other check"])), min_size=1, max_size=8),
    outcomes=OUTCOMES,
    slots=st.integers(1, 6),
    sequential=st.booleans(),
)
def test_any_race_ends_runs_nothing_twice_and_commits_exactly_when_some_recipe_can_verify(
    paths: list[tuple[list[str], str]], outcomes: dict[str, Behaviour], slots: int, sequential: bool
) -> None:
    entries = [entry(f"c{n}", recipe(*path, check=check), order=n) for n, (path, check) in enumerate(paths)]
    can_verify = {
        f"c{n}"
        for n, (path, check) in enumerate(paths)
        if all(outcomes[c].exit_code == 0 and not outcomes[c].breaks for c in [*path, check])
    }
    try:
        raced = Raced(entries, outcomes, slots=slots, sequential=sequential)
    except SandboxError:
        assert not can_verify
        return
    assert (raced.winner in can_verify) if can_verify else raced.winner is None
    assert raced.backend.open == 0
    finished = [event.node for event in raced.recorder.events if isinstance(event, StepEnded) and event.ok]
    assert len(finished) == len(set(finished))
    times = [event.at for event in raced.recorder.events]
    assert all(earlier <= later for earlier, later in pairwise(times))
