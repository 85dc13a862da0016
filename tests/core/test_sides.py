"""System packages beside the Steps before them: which Steps can, what the race makes of it, what it never changes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import anyio

from specbuild.breadth import Breadth
from specbuild.outcome import Outcome
from specbuild.recipe import BaseRef, Check, Level, Recipe, Step, StepKind, checkpoint_key
from specbuild.scheduler import choose
from specbuild.sides import sides
from specbuild.speculate import RaceResult, race
from specbuild.testing.clock import VirtualLoop
from specbuild.testing.fakes import Behaviour, FakeBackend, Files, Recorder, ScriptWorkshop
from specbuild.testing.promises import check_promises
from specbuild.tree import Entry, Tree

BASE = BaseRef(name="debian:bookworm", digest="sha256:0")


def step(command: str) -> Step:
    """`apt …` installs packages, `uv …` the toolchain, `src` is the tree, `add …` changes apt's sources."""
    match command.split()[0]:
        case "apt":
            return Step(kind=StepKind.SYSTEM, run=command, cwd="/", caches=("apt",))
        case "uv":
            return Step(kind=StepKind.TOOLCHAIN, run=command, cwd="/")
        case "src":
            return Step(kind=StepKind.SOURCE, run=command, cwd="/")
        case "add":
            return Step(kind=StepKind.BUILD, run=f"{command} > /etc/apt/sources.list")
        case "other":
            return Step(kind=StepKind.SYSTEM, run=command, cwd="/")
        case _:
            return Step(kind=StepKind.DEPENDENCIES, run=command)


def recipe(*commands: str, check: str = "check") -> Recipe:
    test = Step(kind=StepKind.TEST, run=check)
    return Recipe(base=BASE, steps=tuple(map(step, commands)), check=Check(level=Level.TESTS, runner="x", step=test))


def moved(*commands: str) -> list[tuple[str, str]]:
    """Which Steps can run before their turn, and after which."""
    made = recipe(*commands)
    names = {made.checkpoints[0]: "base"}
    names |= {made.checkpoints[n + 1]: command for n, command in enumerate(commands)}
    found: list[tuple[str, str]] = []
    for side in sides(made).values():
        found.append((side.step.run, names[side.parent]))
        names[side.key] = f"{side.step.run} aside"
    return found


def test_packages_can_be_installed_on_the_last_state_that_only_packages_have_led_to() -> None:
    assert moved("apt python", "uv", "apt gcc", "src", "deps", "apt cairo", "build") == [
        ("apt gcc", "apt python"),
        ("apt cairo", "apt gcc aside"),
    ]
    assert moved("apt python", "apt gcc", "uv", "deps", "apt cairo") == [("apt cairo", "apt gcc")]


def test_what_is_in_its_turn_anyway_does_not_move() -> None:
    assert moved("apt python", "apt gcc", "uv", "deps") == []
    assert moved() == []


def test_packages_wait_for_what_may_change_what_they_are() -> None:
    assert moved("apt python", "uv", "other script", "apt gcc") == []
    assert moved("apt python", "uv", "apt gcc", "add repository", "apt cairo") == [("apt gcc", "apt python")]


def test_without_package_lists_nothing_moves() -> None:
    assert moved("uv", "apt gcc") == []


def test_the_state_aside_is_that_of_a_recipe_in_that_order() -> None:
    made, other = recipe("apt python", "uv", "apt gcc"), recipe("apt python", "apt gcc")
    (side,) = sides(made).values()
    assert side.key == other.checkpoints[-1] == checkpoint_key(made.checkpoints[1], step("apt gcc"))


TIMES: Mapping[str, float] = {"apt python": 6, "uv": 4, "apt gcc": 5, "src": 1, "deps": 2, "build": 3, "check": 1}


def raced(
    *recipes: Sequence[str],
    slots: int = 2,
    breadth: Breadth = Breadth.ALL,
    failing: str = "",
    clash: bool = False,
    times: Mapping[str, float] = TIMES,
) -> tuple[RaceResult, FakeBackend]:
    """Race Recipes, the first the likeliest; every command writes a file of its own, or all the same one."""

    def script(command: str, files: Files) -> Behaviour:
        written = {"/same" if clash else f"/{command}": command.encode()}
        return Behaviour(times.get(command, 1.0), exit_code=int(command == failing), writes=written)

    backend = FakeBackend(script)
    entries = [
        Entry(f"r{n}", recipe(*commands), prior=0.9 / (n + 1), expected_seconds=20, order=n)
        for n, commands in enumerate(recipes)
    ]

    async def main() -> RaceResult:
        return await race(
            entries,
            backend,
            ScriptWorkshop(backend),
            slots=slots,
            reporter=Recorder(),
            beside=True,
            breadth=breadth,
            clock=anyio.current_time,
        )

    result = anyio.run(main, backend_options={"loop_factory": VirtualLoop})
    check_promises(result)
    return result, backend


PATH = ("apt python", "uv", "apt gcc", "src", "deps", "build")


def test_packages_are_installed_beside_the_steps_before_them() -> None:
    result, backend = raced(PATH)
    assert result.seconds == 6 + max(4, 5) + 1 + 2 + 3 + 1
    assert backend.ran.count("apt gcc") == 1
    assert result.winner is not None
    leaf = backend.files[result.winner.recipe.checkpoints[-1]]
    assert set(leaf) == {f"/{command}" for command in PATH}, "all of it is there"
    assert [done.outcome for done in result.executions].count(Outcome.GRAFTED) == 1


def test_a_chain_of_packages_goes_on_aside() -> None:
    path = ("apt python", "uv", "apt gcc", "src", "deps", "apt cairo", "build")
    result, _ = raced(path, times={**TIMES, "apt cairo": 4})
    assert result.seconds == 6 + max(4 + 1 + 2, 5 + 4) + 3 + 1


def test_a_sequential_run_keeps_to_the_order() -> None:
    result, backend = raced(PATH, breadth=Breadth.RECIPE)
    assert result.seconds == sum(TIMES[command] for command in PATH) + 1
    assert backend.ran == [*PATH, "check"]


def test_one_slot_keeps_to_the_order() -> None:
    _, backend = raced(PATH, slots=1)
    assert backend.ran == [*PATH, "check"]


def test_where_both_ways_change_the_same_the_step_runs_in_its_turn() -> None:
    result, backend = raced(PATH, clash=True)
    assert result.winner is not None
    assert backend.ran.count("apt gcc") == 2
    assert backend.files[result.winner.recipe.checkpoints[-1]] == {"/same": b"build"}


def test_packages_that_fail_aside_fail_no_recipe_before_its_turn() -> None:
    result, backend = raced(("apt python", "uv", "apt gcc"), failing="apt gcc")
    assert result.winner is None
    assert backend.ran.count("apt gcc") == 2
    assert result.ends == {"r0": "apt gcc exited with status 1"}


def test_nothing_is_installed_aside_any_more_for_a_recipe_that_has_failed() -> None:
    result, backend = raced(("apt python", "uv", "apt gcc"), ("apt python", "deps"), failing="uv")
    assert result.winner is not None
    assert result.winner.id == "r1"
    (aside,) = (done for done in result.executions if done.work == step("apt gcc"))
    assert aside.outcome is Outcome.CANCELLED
    assert backend.open == 0


def test_what_one_recipe_does_in_its_turn_another_takes_over() -> None:
    result, backend = raced(PATH, ("apt python", "apt gcc", "other"), slots=3)
    assert backend.ran.count("apt gcc") == 1
    assert result.winner is not None


def test_once_packages_are_installed_in_their_turn_those_after_them_are_so_too() -> None:
    path = ("apt python", "uv", "apt gcc", "src", "apt cairo")
    result, _ = raced(path, clash=True, times={"apt python": 6, "uv": 1, "apt gcc": 5, "src": 1, "apt cairo": 20})
    assert [done.outcome for done in result.executions if done.work == step("apt cairo")] == ["ok"]
    assert result.seconds == 6 + 5 + 5 + 1 + 20 + 1, "nothing waits for what could not be taken over"


def waiting_for_another() -> tuple[Tree, str]:
    """A Tree in which `a` waits for packages that were begun for `b` alone, and the edge of those."""
    tree = Tree(beside=True)
    tree.add(Entry("a", recipe("apt python", "uv", "apt gcc"), prior=0.5, expected_seconds=20, order=0))
    tree.add(Entry("b", recipe("apt python", "apt gcc", "other"), prior=0.5, expected_seconds=20, order=1))
    for key in tree.path("a")[:3]:
        tree.start(key)
        tree.finish(key)
    aside = tree.path("b")[2]
    assert [entry.id for entry in tree.users(aside)] == ["b"], "for `a` it is the turn of the step itself"
    tree.start(aside)
    return tree, aside


def test_what_a_recipe_waits_for_is_done_for_it_too() -> None:
    tree, aside = waiting_for_another()
    assert not tree.is_runnable(tree.path("a")[3])
    assert [entry.id for entry in tree.users(aside)] == ["a", "b"]
    tree.cancel("b")
    assert tree.unneeded() == []
    tree.finish(aside)
    assert tree.is_runnable(tree.path("a")[3])


def test_packages_that_fail_for_another_recipe_take_their_turn_in_those_that_waited() -> None:
    tree, aside = waiting_for_another()
    assert [entry.id for entry in tree.fail(aside)] == ["b"]
    assert tree.is_runnable(tree.path("a")[3])


def test_the_step_whose_turn_it_is_comes_before_what_could_be_done_beside_it() -> None:
    for number in range(8):  # the keys, which come last of all, are in either order
        tree = Tree(beside=True)
        path = (f"apt python{number}", "uv", "apt gcc")
        tree.add(Entry("a", recipe(*path), prior=0.5, expected_seconds=20, order=0))
        for key in tree.path("a")[:2]:
            tree.start(key)
            tree.finish(key)
        first, second = tree.foremost(2)
        assert (first.key, first.aside, second.aside) == (tree.path("a")[2], False, True)


def test_a_recipe_that_does_two_things_at_once_fails_once() -> None:
    tree = Tree(beside=True)
    tree.add(Entry("a", recipe("apt python", "uv", "apt gcc"), prior=0.95, expected_seconds=20, order=0))
    tree.add(Entry("b", recipe("apt python", "deps"), prior=0.5, expected_seconds=20, order=1))
    for key in tree.path("a")[:2]:
        tree.start(key)
        tree.finish(key)
    (side,) = sides(tree.entry("a").recipe).values()
    uv, deps = tree.path("a")[2], tree.path("b")[2]
    assert choose(tree, slots=3, price=0.04).start == (uv, side.key, deps), "that `b` is needed is one in twenty"
    assert choose(tree, slots=3, price=0.06).start == (uv, side.key)
