"""The scheduler's choices."""

from __future__ import annotations

from specbuild.breadth import Breadth
from specbuild.ranking import Rank, Ranking
from specbuild.recipe import BaseRef, Check, Level, Recipe, Step, StepKind
from specbuild.scheduler import LEADER_WEIGHT, WEIGHT_RATIO, choose, cpu_weights
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
    decision = choose(tree, slots=slots, breadth=breadth)
    tree.hold(decision.steady)
    works = [tree.edge(key).work for key in decision.start]
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
    assert weights == [LEADER_WEIGHT, LEADER_WEIGHT // WEIGHT_RATIO, LEADER_WEIGHT // WEIGHT_RATIO**2]


def step_of(tree: Tree, name: str) -> str:
    """The node that a recipe's first step leads to."""
    return tree.path(name)[1]


def test_nothing_foreseen_delays_the_recipe_that_is_held_to() -> None:
    tree = tree_of(("b", "xy", 0.9, 10), ("b", "z", 0.5, 10))
    assert started(tree, 2) == ["x", "z"]
    for name in ("r0", "r1"):
        tree.start(step_of(tree, name))
    tree.believe("r0", 0.01)
    weights = cpu_weights(tree)
    assert weights[step_of(tree, "r0")] == LEADER_WEIGHT > weights[step_of(tree, "r1")]
    tree.finish(step_of(tree, "r0"))
    assert started(tree, 1) == ["y"], "nor does it wait for a slot"


def test_when_the_recipe_that_was_held_to_fails_the_next_one_is() -> None:
    tree = tree_of(("b", "x", 0.9, 10), ("b", "y", 0.5, 10), ("b", "z", 0.4, 10))
    assert choose(tree, slots=2).steady == "r0"
    assert started(tree, 2) == ["x", "y"]
    for name in ("r0", "r1"):
        tree.start(step_of(tree, name))
    tree.fail(step_of(tree, "r0"))
    assert choose(tree, slots=2, undecided=True).steady is None, "its repairs may be better"
    assert choose(tree, slots=2).steady == "r1"


def test_a_repair_of_what_is_only_foreseen_is_not_held_to() -> None:
    tree = tree_of(("b", "x", 0.5, 10))
    failing = step_of(tree, "r0")
    step = Step(kind=StepKind.SYSTEM, run="fix")
    repaired = tree.entry("r0").recipe.model_copy(update={"steps": (step, *tree.entry("r0").recipe.steps)})
    tree.add(Entry("r0.1", repaired, 0.9, 10.0, 1, against=failing))
    assert choose(tree, slots=2).steady == "r0"
    tree.start(failing)
    tree.fail(failing)
    assert choose(tree, slots=2).steady == "r0.1"


def test_with_one_slot_what_other_branches_have_learned_tells_where_to_go_on() -> None:
    tree = tree_of(("b", "x", 0.6, 10), ("b", "y", 0.5, 10))
    tree.believe("r0", 0.1)
    assert choose(tree, slots=1).steady == "r1"
    assert choose(tree, slots=2).steady == "r0"


def test_what_is_hardly_ever_needed_does_not_start() -> None:
    tree = tree_of(("b", "x", 0.999, 10), ("b", "y", 0.5, 10))
    assert started(tree, 8) == ["x"]
    assert len(choose(tree, slots=8, price=0.0).start) == 2


def test_edges_stay_in_order_when_the_odds_change_and_the_worth_does_not() -> None:
    odds = iter((0.5, 0.25))
    ranking = Ranking(lambda key: Rank(cost=-0.5, order=0, aside=False, key=key, odds=next(odds)))
    ranking.admit("a")
    assert [one.odds for one in ranking.best(2)] == [0.5]
    ranking.change("a")
    assert [one.odds for one in ranking.best(2)] == [0.25]
