"""The scheduler's choices."""

from __future__ import annotations

from specbuild.breadth import Breadth
from specbuild.recipe import BaseRef, Check, Level, Recipe, Step, StepKind
from specbuild.scheduler import FOLLOWER_WEIGHT, LEADER_WEIGHT, choose, cpu_weights
from specbuild.tree import Entry, Tree


def tree_of(*rows: tuple[str, str, float, float]) -> Tree:
    """A tree from (base, commands, prior, seconds) rows; ids are r0, r1, …; every base is done."""
    tree = Tree()
    for order, (base, commands, prior, seconds) in enumerate(rows):
        steps = tuple(Step(kind=StepKind.DEPENDENCIES, run=command) for command in commands)
        check = Check(level=Level.TESTS, runner="pytest", step=Step(kind=StepKind.TEST, run="check"))
        made = Recipe(base=BaseRef(name=base, digest=base), steps=steps, check=check)
        tree.add(Entry(f"r{order}", made, prior, seconds, order))
    for edge in tree.runnable():
        tree.start(edge.key)
        tree.finish(edge.key)
    return tree


def started(tree: Tree, slots: int, *, breadth: Breadth = Breadth.ALL) -> list[str]:
    works = [tree.edge(key).work for key in choose(tree, slots=slots, breadth=breadth).start]
    return [work.run for work in works if isinstance(work, Step)]


def test_the_likelier_and_the_quicker_recipe_goes_first() -> None:
    tree = tree_of(("b", "x", 0.2, 10), ("b", "y", 0.6, 10), ("b", "z", 0.6, 100))
    assert started(tree, 2) == ["y", "x"]


def test_ties_go_by_the_order_of_the_recipes() -> None:
    tree = tree_of(("b", "x", 0.5, 10), ("b", "y", 0.5, 10), ("b", "z", 0.5, 10))
    assert started(tree, 3) == ["x", "y", "z"]


def test_shared_work_is_valued_by_its_best_recipe_and_started_once() -> None:
    tree = tree_of(("b", "sx", 0.9, 10), ("b", "sy", 0.1, 10), ("b", "t", 0.5, 10))
    assert started(tree, 5) == ["s", "t"]


def test_done_work_no_longer_counts_against_a_recipe() -> None:
    tree = tree_of(("b", "xy", 0.5, 40))
    before = tree.seconds_left("r0")
    tree.start(tree.path("r0")[1])
    tree.finish(tree.path("r0")[1])
    assert tree.seconds_left("r0") < before < 40


def test_no_more_starts_than_there_are_free_slots() -> None:
    tree = tree_of(("b", "x", 0.5, 10), ("b", "y", 0.4, 10))
    tree.start(tree.path("r0")[1])
    assert started(tree, 1) == []
    assert started(tree, 2) == ["y"]


def test_sequential_mode_stays_with_the_best_live_recipe() -> None:
    tree = tree_of(("b", "xy", 0.9, 10), ("b", "z", 0.5, 10))
    assert started(tree, 1, breadth=Breadth.RECIPE) == ["x"]
    key = tree.path("r0")[1]
    tree.start(key)
    tree.fail(key)
    assert started(tree, 1, breadth=Breadth.RECIPE) == ["z"]


def test_the_leader_gets_the_cpu_and_the_others_what_it_leaves() -> None:
    tree = tree_of(("b", "x", 0.9, 10), ("b", "y", 0.4, 10), ("b", "z", 0.3, 10))
    for name in ("r0", "r1", "r2"):
        tree.start(tree.path(name)[1])
    weights = [cpu_weights(tree)[tree.path(name)[1]] for name in ("r0", "r1", "r2")]
    assert weights == [LEADER_WEIGHT, FOLLOWER_WEIGHT, FOLLOWER_WEIGHT]
