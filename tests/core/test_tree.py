"""The Tree as a state machine: whatever happens in whatever order, its invariants hold."""

from __future__ import annotations

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, invariant, precondition, rule

from specbuild.recipe import BaseRef, Check, Level, Recipe, Step, StepKind
from specbuild.tree import Edge, EdgeState, Entry, RecipeState, Tree, check_key

COMMANDS = st.lists(st.sampled_from("abcd"), max_size=4)


def recipe(commands: list[str] | str, check: str = "check", base: str = "base") -> Recipe:
    return Recipe(
        base=BaseRef(name=base, digest=f"sha256:{base}"),
        steps=tuple(Step(kind=StepKind.DEPENDENCIES, run=command) for command in commands),
        check=Check(level=Level.TESTS, runner="pytest", step=Step(kind=StepKind.TEST, run=check)),
    )


def entry(name: str, made: Recipe, order: int = 0) -> Entry:
    return Entry(id=name, recipe=made, prior=0.5, expected_seconds=10, order=order)


def run_to_check(tree: Tree, name: str) -> None:
    for key in tree.path(name)[:-1]:
        tree.start(key)
        tree.finish(key)


def test_recipes_share_the_nodes_of_a_common_prefix_and_part_where_they_differ() -> None:
    tree = Tree()
    tree.add(entry("x", recipe("ab")))
    tree.add(entry("y", recipe("ac"), 1))
    assert tree.path("x")[:2] == tree.path("y")[:2]
    assert tree.path("x")[2] != tree.path("y")[2]


def test_the_same_recipe_is_taken_once() -> None:
    tree = Tree()
    assert tree.add(entry("x", recipe("ab")))
    assert not tree.add(entry("y", recipe("ab"), 1))
    assert [live.id for live in tree.live()] == ["x"]


def test_a_title_a_timeout_or_a_cache_makes_no_other_recipe() -> None:
    plain = Step(kind=StepKind.SYSTEM, run="apt-get update")
    dressed = plain.model_copy(update={"title": "update", "timeout": 5.0, "caches": ("apt",)})
    assert Step.model_validate(dressed.model_dump()).digest == plain.digest


def test_an_id_in_use_is_refused() -> None:
    tree = Tree()
    tree.add(entry("x", recipe("a")))
    with pytest.raises(ValueError, match="in the tree already"):
        tree.add(entry("x", recipe("b")))


def test_a_recipe_that_needs_a_failed_edge_is_dead_from_the_start() -> None:
    tree = Tree()
    tree.add(entry("x", recipe("a")))
    base, step, _ = tree.path("x")
    tree.start(base)
    tree.finish(base)
    tree.start(step)
    assert [dead.id for dead in tree.fail(step)] == ["x"]
    tree.add(entry("y", recipe("ab"), 1))
    assert tree.state("y") is RecipeState.FAILED
    assert not tree.runnable()


def test_two_checks_of_one_leaf_are_two_nodes_and_the_first_in_order_wins_a_shared_one() -> None:
    tree = Tree()
    tree.add(entry("late", recipe("a"), 5))
    tree.add(entry("other check", recipe("a", check="other"), 0))
    assert check_key(recipe("a")) != check_key(recipe("a", check="other"))
    run_to_check(tree, "late")
    tree.start(tree.path("late")[-1])
    assert tree.verify(tree.path("late")[-1]).id == "late"
    assert tree.state("other check") is RecipeState.LIVE


def test_a_running_edge_is_unneeded_once_its_last_recipe_is_given_up() -> None:
    tree = Tree()
    tree.add(entry("x", recipe("a")))
    base = tree.path("x")[0]
    tree.start(base)
    tree.cancel("x")
    assert [edge.key for edge in tree.unneeded()] == [base]
    tree.interrupt(base)
    assert tree.running() == []
    assert tree.runnable() == []


class TreeMachine(RuleBasedStateMachine):
    """Random recipes, starts, ends, failures, interruptions, verifications and cancellations."""

    names = Bundle("names")

    def __init__(self) -> None:
        super().__init__()
        self.tree = Tree()
        self.count = 0
        self.finished: set[str] = set()

    @rule(target=names, commands=COMMANDS, check=st.sampled_from(["check", "other"]), base=st.sampled_from("xy"))
    def insert(self, commands: list[str], check: str, base: str) -> str:
        name = f"r{self.count}"
        self.count += 1
        made = recipe(commands, check, base)
        if not self.tree.add(entry(name, made, self.count)):
            return next(known.id for known in self.tree.entries() if known.recipe.digest == made.digest)
        return name

    @rule(name=names)
    def cancel(self, name: str) -> None:
        self.tree.cancel(name)

    @precondition(lambda self: self.tree.runnable())
    @rule(data=st.data())
    def start(self, data: st.DataObject) -> None:
        self.tree.start(self._draw(data, self.tree.runnable()).key)

    @precondition(lambda self: self.tree.running())
    @rule(data=st.data(), how=st.sampled_from(["finish", "finish", "fail", "interrupt"]))
    def end(self, data: st.DataObject, how: str) -> None:
        edge = self._draw(data, self.tree.running())
        if how == "interrupt":
            self.tree.interrupt(edge.key)
        elif how == "fail":
            assert {dead.id for dead in self.tree.fail(edge.key)} == self._passing(edge.key, RecipeState.FAILED)
        elif isinstance(edge.work, Check) and edge.recipes:
            assert self.tree.state(self.tree.verify(edge.key).id) is RecipeState.VERIFIED
        else:
            assert edge.key not in self.finished, "no work is done twice at one node"
            self.finished.add(edge.key)
            self.tree.finish(edge.key)

    @invariant()
    def every_live_recipe_has_exactly_one_next_piece_of_work(self) -> None:
        for live in self.tree.live():
            path = [self.tree.edge(key) for key in self.tree.path(live.id)]
            open_edges = [edge for edge in path if edge.state is not EdgeState.DONE]
            if not open_edges:
                continue
            assert open_edges[0].state in {EdgeState.WAITING, EdgeState.RUNNING}
            assert all(edge.state is EdgeState.WAITING for edge in open_edges[1:])
            if open_edges[0].state is EdgeState.WAITING:
                assert open_edges[0] in self.tree.runnable()

    @invariant()
    def what_is_runnable_is_needed_waiting_and_ready(self) -> None:
        for edge in self.tree.runnable():
            assert edge.state is EdgeState.WAITING
            assert any(self.tree.state(name) is RecipeState.LIVE for name in edge.recipes)
            assert edge.parent is None or self.tree.edge(edge.parent).state is EdgeState.DONE

    @invariant()
    def edges_know_exactly_the_live_recipes_that_pass_through(self) -> None:
        for known in self.tree.entries():
            live = self.tree.state(known.id) is RecipeState.LIVE
            assert all((known.id in self.tree.edge(key).recipes) == live for key in self.tree.path(known.id))

    def _draw(self, data: st.DataObject, edges: list[Edge]) -> Edge:
        return data.draw(st.sampled_from(sorted(edges, key=lambda edge: edge.key)))

    def _passing(self, key: str, state: RecipeState) -> set[str]:
        return {
            known.id
            for known in self.tree.entries()
            if key in self.tree.path(known.id)
            and self.tree.state(known.id) is state
            and next(k for k in self.tree.path(known.id) if self.tree.edge(k).state is EdgeState.FAILED) == key
        }


TestTreeMachine = TreeMachine.TestCase
TestTreeMachine.settings = settings(max_examples=200, stateful_step_count=40, deadline=None)
