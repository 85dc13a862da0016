"""Tree and scheduler together, as a state machine: whatever comes, the decisions keep what was promised.

`SPECBUILD_EXAMPLES` sets how many random histories are tried.
"""

from __future__ import annotations

import os

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from specbuild.breadth import Breadth
from specbuild.recipe import BaseRef, Check, Level, Recipe, Step, StepKind
from specbuild.scheduler import LEADER_WEIGHT, choose, cpu_weights
from specbuild.testing.mending import package_step
from specbuild.tree import Edge, EdgeState, Entry, RecipeState, Tree

EXAMPLES = int(os.environ.get("SPECBUILD_EXAMPLES", "200"))
COMMANDS = st.lists(st.sampled_from("abcPQ"), max_size=4).map("".join) | st.sampled_from(
    ["PaQ", "PaQbR", "PaQR", "PQaR", "PQa", "PQR", "PQRa", "PbQ", "PaRbQ"]
)
"""Capitals install packages."""
ODDS = st.floats(0.01, 0.99)


def recipe(commands: str, check: str, base: str) -> Recipe:
    return Recipe(
        base=BaseRef(name=base, digest=f"sha256:{base}"),
        steps=tuple(map(step, commands)),
        check=Check(level=Level.TESTS, runner="pytest", step=Step(kind=StepKind.TEST, run=check)),
    )


def step(command: str) -> Step:
    return package_step(command) if command.isupper() else Step(kind=StepKind.DEPENDENCIES, run=command)


class DecisionMachine(RuleBasedStateMachine):
    """What the race does with decisions, on random outcomes, predictions, cancellations and late recipes."""

    def __init__(self) -> None:
        super().__init__()
        self.tree = Tree()
        self.count = 0
        self.finished: set[str] = set()
        self.won = False
        self.slots = 2
        self.breadth = Breadth.ALL
        self.in_turn: set[str] = set()
        """Edges whose work was not taken over from their twins."""
        self.before = self.started = 0
        """Steps that ran before the last decision, and that it started."""

    @initialize(beside=st.sampled_from([True, True, False]))
    def begin(self, beside: bool) -> None:
        """Packages may be installed before their turn, or not."""
        self.tree = Tree(beside=beside)

    @rule(slots=st.integers(1, 5), breadth=st.sampled_from(Breadth))
    def bear(self, slots: int, breadth: Breadth) -> None:
        """The machine bears another number of steps from now on."""
        self.slots, self.breadth = slots, breadth
        self.decide()

    @rule(
        commands=COMMANDS,
        check=st.sampled_from(["check", "other"]),
        base=st.sampled_from("xy"),
        prior=ODDS,
        seconds=st.floats(1, 100),
        data=st.data(),
    )
    def insert(self, commands: str, check: str, base: str, prior: float, seconds: float, data: st.DataObject) -> None:
        """A recipe joins in; maybe one that repairs what is foreseen of a running step."""
        running = sorted(edge.key for edge in self.tree.running())
        against = data.draw(st.sampled_from([None, *running]))
        repaired = data.draw(st.sampled_from([None, *(entry.id for entry in self.tree.live())]))
        self.count += 1
        name = f"{repaired}.{self.count}" if repaired else f"r{self.count}"
        self.tree.add(Entry(name, recipe(commands, check, base), prior, seconds, self.count, against))
        self.decide()

    @precondition(lambda self: self.tree.has_hope)
    @rule(data=st.data(), odds=ODDS)
    def predict(self, data: st.DataObject, odds: float) -> None:
        """Something is foreseen, rightly or wrongly."""
        self.tree.believe(data.draw(st.sampled_from([entry.id for entry in self.tree.live()])), odds)
        self.decide()

    @precondition(lambda self: self.tree.has_hope)
    @rule(data=st.data())
    def cancel(self, data: st.DataObject) -> None:
        """A recipe is given up."""
        self.tree.cancel(data.draw(st.sampled_from([entry.id for entry in self.tree.live()])))
        self.decide()

    @precondition(lambda self: self.tree.running())
    @rule(data=st.data(), how=st.sampled_from(["succeed", "succeed", "succeed", "fail", "interrupt"]))
    def end(self, data: st.DataObject, how: str) -> None:
        """A running step ends."""
        edge = self.tree.edge(data.draw(st.sampled_from(sorted(edge.key for edge in self.tree.running()))))
        if how == "interrupt":
            self.tree.interrupt(edge.key)
        elif how == "fail":
            self.tree.fail(edge.key)
        else:
            self.succeed(edge)
        self.decide()

    def succeed(self, edge: Edge) -> None:
        assert edge.key not in self.finished, "no work is done twice at one node"
        self.finished.add(edge.key)
        if isinstance(edge.work, Check):
            self.won = True
            winner = self.tree.verify(edge.key)
            assert self.tree.state(winner.id) is RecipeState.VERIFIED
            return
        self.tree.finish(edge.key)
        for hedge in self.tree.hedges(edge.key):
            self.tree.cancel(hedge.id)

    @precondition(lambda self: self.tree.running())
    @rule(data=st.data())
    def take_turn(self, data: st.DataObject) -> None:
        """A running step cannot take over what its twin has changed."""
        edge = self.tree.edge(data.draw(st.sampled_from(sorted(edge.key for edge in self.tree.running()))))
        self.in_turn.add(edge.key)
        self.tree.take_turn(edge.key)
        self.decide()

    def decide(self) -> None:
        """As the race does after every event."""
        for edge in self.tree.unneeded():
            self.tree.interrupt(edge.key)
        decision = choose(self.tree, slots=self.slots, breadth=self.breadth)
        again = choose(self.tree, slots=self.slots, breadth=self.breadth)
        assert decision == again, "a decision changes nothing by itself"
        self.before = len(self.tree.running())
        self.tree.hold(decision.steady)
        start = [key for key in decision.start if self.tree.is_runnable(key) and self.tree.start(key)]
        assert all(self.tree.users(key) for key in start), "nothing runs without a live recipe"
        self.started = len(start)
        if len(start) < len(decision.start):  # one of them is spared by its twin
            self.decide()
        assert choose(self.tree, slots=self.slots, breadth=self.breadth).start == (), "nothing waits without a reason"

    @invariant()
    def what_runs_is_needed(self) -> None:
        assert not self.tree.unneeded()

    @invariant()
    def there_is_no_standstill(self) -> None:
        plain = [entry for entry in self.tree.live() if not self.tree.is_hedge(entry)]
        if self.tree.live() if self.breadth is Breadth.ALL else plain:
            assert self.tree.running(), "as long as a recipe lives, something runs"

    @invariant()
    def the_recipe_that_is_held_to_never_waits_and_is_first(self) -> None:
        if self.tree.steady is None:
            return
        work = self.tree.remaining(self.tree.steady)[0]
        if work.state is EdgeState.WAITING:
            work = self.twin_of(work)  # it takes over what comes of it
        assert work.state is EdgeState.RUNNING
        assert self.tree.steady in work.users
        weights, family = cpu_weights(self.tree), self.tree.entry(self.tree.steady).family
        assert LEADER_WEIGHT in weights.values()
        ahead = [key for key, weight in weights.items() if weight > weights[work.key]]
        assert len(ahead) <= 1, "no more than the best of its repairs"
        assert all(family in {entry.family for entry in self.tree.users(key)} for key in ahead)

    def twin_of(self, edge: Edge) -> Edge:
        assert edge.twin is not None
        return self.tree.edge(edge.twin)

    @invariant()
    def slots_are_exceeded_by_what_must_not_wait_only(self) -> None:
        if self.started:
            assert self.before + self.started <= max(2 * self.slots, self.before + 1)

    @invariant()
    def the_kept_order_is_the_true_one(self) -> None:
        def place(edge: Edge) -> tuple[float, int, bool]:
            return min(
                (-self.tree.odds(n) / self.tree.seconds_left(n), self.tree.entry(n).order, n in edge.sides)
                for n in edge.users
            )

        runnable = sorted(self.tree.runnable(), key=place)
        assert [one.key for one in self.tree.foremost(len(runnable) + 1)] == [edge.key for edge in runnable]
        assert [one.key for one in self.tree.foremost(2)] == [edge.key for edge in runnable[:2]]

    @invariant()
    def no_live_recipe_is_lost(self) -> None:
        for entry in self.tree.live():
            work = self.tree.remaining(entry.id)[0]
            assert entry.id in work.recipes
            if work not in self.tree.running() and work not in self.tree.runnable():
                twin = self.twin_of(work)
                assert twin in self.tree.running()
                assert entry.id in twin.users, "what a recipe waits for is done for it"

    @invariant()
    def nothing_is_done_aside_that_cannot_be_taken_over(self) -> None:
        """Packages have one database: once some were installed in their turn, those after them are so, too."""
        for entry in self.tree.live():
            in_turn = False
            for edge in map(self.tree.edge, self.tree.path(entry.id)):
                if edge.twin is not None:
                    assert not (in_turn and entry.id in self.twin_of(edge).sides)
                    in_turn = in_turn or edge.key in self.in_turn

    def teardown(self) -> None:
        """From wherever this is: with every step failing, the end is reached; with none failing, someone wins."""
        for _ in range(10_000):
            if self.won or not self.tree.has_hope:
                return
            if not self.tree.running():
                self.breadth = Breadth.ALL  # only repairs of what is foreseen are left
                self.decide()
            edge = min(self.tree.running(), key=lambda edge: edge.key)
            if self.count % 2:
                self.tree.fail(edge.key)
            else:
                self.succeed(edge)
            self.decide()
        raise AssertionError("there is no end")


TestDecisionMachine = DecisionMachine.TestCase
TestDecisionMachine.settings = settings(max_examples=EXAMPLES, stateful_step_count=40, deadline=None)
