"""The Tree: the prefix tree of all live Recipes. Data only: no I/O, no clock, no opinion on what runs next.

Nodes are states, named by checkpoint keys; the edge into a node is the work that makes the state: providing a Base,
running a Step, or verifying a leaf by a Check. Since every node has one incoming edge, an edge is named by the node
that it leads to. Recipes that agree on a prefix share its nodes, so that nothing runs twice at one node. Where a Step
can run before its turn, the edge of its work on the earlier state is the twin of its own.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from enum import Enum

import networkx as nx

from specbuild.durations import Durations
from specbuild.model import digest_of
from specbuild.ranking import Rank, Ranking
from specbuild.recipe import BaseRef, Check, Recipe, Step
from specbuild.sides import sides

Work = BaseRef | Step | Check
"""What an edge does."""


_LEAST_SECONDS = 0.001


class EdgeState(Enum):
    """How far the work of an edge is."""

    WAITING = "waiting"
    RUNNING = "running"
    DONE = "done"
    FAILED = "failed"


class RecipeState(Enum):
    """What became of a Recipe."""

    LIVE = "live"
    VERIFIED = "verified"
    FAILED = "failed"
    CANCELLED = "cancelled"


@dataclass(frozen=True, slots=True)
class Entry:
    """A Recipe in the race, with the odds it was given."""

    id: str
    recipe: Recipe
    prior: float
    """Probability of verification, 0 to 1."""
    expected_seconds: float
    """Of all its work, run alone."""
    order: int
    """Rank among equals: lower first."""
    against: str | None = None
    """The edge whose failure the Recipe repairs, if that is only foreseen: it is given up once the edge succeeds."""

    @property
    def family(self) -> str:
        """The id of what a strategy proposed, for that itself and for all its repairs (`c3` of `c3.1.2`)."""
        return self.id.partition(".")[0]


@dataclass(slots=True)
class Edge:
    """The work that leads to the node `key`."""

    key: str
    parent: str | None
    work: Work
    state: EdgeState = EdgeState.WAITING
    recipes: set[str] = field(default_factory=set[str])
    """Ids of the live Recipes that pass through."""
    sides: set[str] = field(default_factory=set[str])
    """Ids of live Recipes that do not pass through, but can take over what its work changes (`specbuild.sides`)."""
    twin: str | None = None
    """The edge that does the same work on an earlier state."""

    @property
    def users(self) -> set[str]:
        """All live Recipes that its work is for."""
        return self.recipes | self.sides


class Tree:
    """All Recipes of a race and the state of their shared work.

    Invariants: an edge runs at most once unless it was interrupted; only edges whose parent is done ever run; an edge
    without live Recipes is not runnable, and if it is running it is unneeded; nor is one whose twin is running.
    """

    def __init__(self, durations: Durations | None = None, *, beside: bool = False) -> None:
        """`durations` tells how long work is expected to take; `beside` lets Steps run before their turn."""
        self._durations = durations or Durations()
        self._beside = beside
        self._aside: dict[str, list[str]] = {}
        """Recipe → the edges of which it can only take over what they change, in order."""
        self._twinned: dict[str, list[str]] = {}
        """Edge → those that it is the twin of."""
        self._in_turn: set[str] = set()
        """Edges that did their work themselves, though they have a twin."""
        self._scales: dict[str, float] = {}
        """Recipe → its expected seconds ÷ what its kinds of work usually take."""
        self._left: dict[str, float] = {}
        """Recipe → expected seconds of the work that is not done."""
        self._graph: nx.DiGraph[str] = nx.DiGraph()
        self._edges: dict[str, Edge] = {}
        self._entries: dict[str, Entry] = {}
        self._states: dict[str, RecipeState] = {}
        self._odds: dict[str, float] = {}
        self._paths: dict[str, tuple[str, ...]] = {}
        self._by_digest: dict[str, str] = {}
        self._waiting = Ranking(self._rank)
        self._live: dict[str, Entry] = {}
        self._hedges: dict[str, list[str]] = {}
        """Edge → the Recipes that expect it to fail."""
        self._running: set[str] = set()
        self._steady: str | None = None

    def add(self, entry: Entry) -> bool:
        """Insert a Recipe; False if one with the same digest is there already and was not cancelled.

        A Recipe that needs an edge that has failed is inserted dead. Raises ValueError for an id in use.
        """
        if entry.id in self._entries:
            raise ValueError(f"the id {entry.id!r} is in the tree already")
        known = self._by_digest.get(entry.recipe.digest)
        if known is not None and self._states[known] is not RecipeState.CANCELLED:
            return False
        path = self._insert_path(entry.recipe)
        self._entries[entry.id] = entry
        self._odds[entry.id] = entry.prior
        self._by_digest[entry.recipe.digest] = entry.id
        self._paths[entry.id] = path
        self._states[entry.id] = RecipeState.LIVE
        self._live[entry.id] = entry
        if entry.against is not None:
            self._hedges.setdefault(entry.against, []).append(entry.id)
        usual = sum(self._durations.usual(self._edges[key].work) for key in path)
        self._scales[entry.id] = entry.expected_seconds / usual
        self._left[entry.id] = sum(self._cost(entry.id, edge) for edge in self.remaining(entry.id))
        for key in path:
            self._edges[key].recipes.add(entry.id)
        aside = self._insert_sides(entry) if self._beside else ()
        if any(self._edges[key].state is EdgeState.FAILED for key in path):
            self._end(entry.id, RecipeState.FAILED)
        self._renew((*path, *aside))
        return True

    def entry(self, recipe_id: str) -> Entry:
        """The entry of that id; KeyError if there is none."""
        return self._entries[recipe_id]

    def holds(self, recipe_id: str) -> bool:
        """Whether a Recipe of that id was ever inserted."""
        return recipe_id in self._entries

    def edge(self, key: str) -> Edge:
        """The edge that leads to that node; KeyError if there is none."""
        return self._edges[key]

    def path(self, recipe_id: str) -> tuple[str, ...]:
        """The nodes that a Recipe passes through: its Base, one a Step, and its Check."""
        return self._paths[recipe_id]

    def state(self, recipe_id: str) -> RecipeState:
        """What became of a Recipe."""
        return self._states[recipe_id]

    def odds(self, recipe_id: str) -> float:
        """The present probability of verification: the prior until something better is believed."""
        return self._odds[recipe_id]

    def believe(self, recipe_id: str, odds: float) -> None:
        """Take `odds` (0 to 1) for a Recipe's probability of verification from now on."""
        self._odds[recipe_id] = odds
        for key in (*self._paths[recipe_id], *self._aside.get(recipe_id, ())):
            self._waiting.change(key)

    @property
    def steady(self) -> str | None:
        """The live Recipe that is held to whatever is foreseen; None if there is none (see `specbuild.scheduler`)."""
        return self._steady

    def hold(self, recipe_id: str | None) -> None:
        """Hold to a live Recipe from now on."""
        self._steady = recipe_id

    def is_hedge(self, entry: Entry) -> bool:
        """Whether a Recipe repairs what is only foreseen as yet, and what a live Recipe may still run into."""
        edge = self._edges[entry.against] if entry.against is not None else None
        return edge is not None and edge.state is not EdgeState.FAILED and bool(edge.recipes)

    def steadiest(self, *, by_prior: bool) -> Entry | None:
        """The live Recipe of most odds, or prior, a second; none of those that repair what is only foreseen as yet."""
        left = self._left
        found: Entry | None = None
        best = 0.0, 1 << 60
        for name, entry in self._live.items():
            worth = -(entry.prior if by_prior else self._odds[name]) / max(left[name], _LEAST_SECONDS)
            if worth <= best[0] and (worth, entry.order) < best and not self.is_hedge(entry):
                found, best = entry, (worth, entry.order)
        return found

    def knows(self, recipe: Recipe) -> bool:
        """Whether a Recipe with the same digest was ever inserted."""
        return recipe.digest in self._by_digest

    def entries(self) -> Iterator[Entry]:
        """All Recipes ever inserted, in order of insertion."""
        return iter(self._entries.values())

    def live(self) -> list[Entry]:
        """The Recipes that can still win, in order."""
        return sorted(self._live.values(), key=lambda entry: entry.order)

    def users(self, key: str) -> list[Entry]:
        """The live Recipes that the work of the edge `key` is for, in order."""
        return self._sorted(self._edges[key].users)

    def is_runnable(self, key: str) -> bool:
        """Whether the edge may start now."""
        return key in self._waiting

    def passing(self, key: str) -> list[Entry]:
        """The live Recipes that pass through the edge `key`, in order."""
        return self._sorted(self._edges[key].recipes)

    @property
    def has_hope(self) -> bool:
        """Whether a Recipe can still win."""
        return bool(self._live)

    def runnable(self) -> list[Edge]:
        """Waiting edges whose parent is done and that a live Recipe needs."""
        return [self._edges[key] for key in self._waiting]

    def foremost(self, count: int) -> list[Rank]:
        """The best of the runnable edges, by falling worth."""
        return self._waiting.best(count)

    def rank(self, key: str) -> Rank:
        """What an edge is worth now; nothing, if no live Recipe passes through it."""
        return self._waiting.rank(key)

    def running(self) -> list[Edge]:
        """Edges that are being worked on."""
        return [self._edges[key] for key in self._running]

    def unneeded(self) -> list[Edge]:
        """Running edges that no live Recipe needs any more."""
        return [edge for edge in self.running() if not edge.recipes and not edge.sides]

    def start(self, key: str) -> Edge:
        """Mark a runnable edge as running. Raises ValueError if it is not runnable."""
        if key not in self._waiting:
            raise ValueError(f"edge {key[:12]} is not runnable")
        edge = self._edges[key]
        edge.state = EdgeState.RUNNING
        self._waiting.withdraw(key)
        self._running.add(key)
        self._renew(self._twinned.get(key, ()))
        return edge

    def take_turn(self, key: str) -> None:
        """A running edge does its work itself: what its twin may have changed is not taken over.

        Then nothing of what follows the twin can be either: package managers have one database.
        """
        edge = self._edges[key]
        self._in_turn.add(key)
        if edge.twin is not None:
            self._let_go(edge.twin, edge.recipes)

    def finish(self, key: str) -> None:
        """Mark a running edge as done: its node's state exists now."""
        edge = self._stop(key)
        edge.state = EdgeState.DONE
        self._renew(self._twinned.get(key, ()))
        learned, usual = self._durations.learned(edge.work), self._durations.usual(edge.work)
        for name in edge.recipes:
            self._left[name] -= usual * self._scales[name] if learned is None else learned
        self._renew(self._graph.successors(key))

    def fail(self, key: str) -> list[Entry]:
        """Mark a running edge as failed; every live Recipe that needs it dies and is returned, in order."""
        edge = self._stop(key)
        edge.state = EdgeState.FAILED
        self._let_go(key, edge.sides)
        self._renew(self._twinned.get(key, ()))
        dead = self._sorted(edge.recipes)
        for entry in dead:
            self._end(entry.id, RecipeState.FAILED)
        return dead

    def interrupt(self, key: str) -> None:
        """Mark a running edge as not done, as if it had never started."""
        self._stop(key).state = EdgeState.WAITING
        self._renew((key, *self._twinned.get(key, ())))

    def verify(self, key: str) -> Entry:
        """Mark a running Check edge as passed; its first Recipe has won and is returned.

        Raises ValueError if no live Recipe needs the edge.
        """
        if not self._edges[key].recipes:
            raise ValueError(f"no live recipe needs check {key[:12]}")
        edge = self._stop(key)
        winner = self._sorted(edge.recipes)[0]
        edge.state = EdgeState.DONE
        self._end(winner.id, RecipeState.VERIFIED)
        return winner

    def cancel(self, recipe_id: str) -> None:
        """Give a live Recipe up."""
        if self._states[recipe_id] is RecipeState.LIVE:
            self._end(recipe_id, RecipeState.CANCELLED)

    def hedges(self, key: str) -> list[Entry]:
        """The live Recipes that expect the edge `key` to fail, in order."""
        return self._sorted(name for name in self._hedges.get(key, ()) if name in self._live)

    def seconds_left(self, recipe_id: str) -> float:
        """Expected seconds of the work of a live Recipe that is not done, shared work included; at least 0.001."""
        return max(self._left[recipe_id], _LEAST_SECONDS)

    def remaining(self, recipe_id: str) -> list[Edge]:
        """The edges of a Recipe that are not done, in order."""
        return [self._edges[key] for key in self._paths[recipe_id] if self._edges[key].state is not EdgeState.DONE]

    def _insert_path(self, recipe: Recipe) -> tuple[str, ...]:
        works: Iterable[Work] = (recipe.base, *recipe.steps, recipe.check)
        keys = (*recipe.checkpoints, check_key(recipe))
        parent: str | None = None
        for key, work in zip(keys, works, strict=True):
            if key not in self._edges:
                self._edges[key] = Edge(key, parent, work)
                self._graph.add_node(key)
                if parent is not None:
                    self._graph.add_edge(parent, key)
            parent = key
        return keys

    def _insert_sides(self, entry: Entry) -> list[str]:
        """Insert the edges that can spare a Recipe work of its own; their keys."""
        aside = self._aside[entry.id] = list[str]()
        spared = True
        for key, side in sides(entry.recipe).items():
            edge, spared = self._edges[key], spared and key not in self._in_turn
            if side.key not in self._edges:
                self._edges[side.key] = Edge(side.key, side.parent, side.step)
                self._graph.add_edge(side.parent, side.key)
            if edge.twin is None:
                edge.twin = side.key
                self._twinned.setdefault(side.key, []).append(key)
            if spared and edge.state is EdgeState.WAITING:
                self._edges[side.key].sides.add(entry.id)
            aside.append(side.key)
        return aside

    def _let_go(self, key: str, recipes: Iterable[str]) -> None:
        """These Recipes want neither what the edge changes any more nor what those after it do."""
        for name in tuple(recipes):
            aside = self._aside[name]
            after = aside[aside.index(key) :] if key in aside else ()
            for one in after:
                self._edges[one].sides.discard(name)
            self._renew(after)

    def _cost(self, recipe_id: str, edge: Edge) -> float:
        learned = self._durations.learned(edge.work)
        return self._durations.usual(edge.work) * self._scales[recipe_id] if learned is None else learned

    def _stop(self, key: str) -> Edge:
        edge = self._edges[key]
        if edge.state is not EdgeState.RUNNING:
            raise ValueError(f"edge {key[:12]} is {edge.state.value}, not running")
        self._running.discard(key)
        return edge

    def _end(self, recipe_id: str, state: RecipeState) -> None:
        self._states[recipe_id] = state
        self._live.pop(recipe_id, None)
        if recipe_id == self._steady:
            self._steady = None
        for key in self._paths[recipe_id]:
            self._edges[key].recipes.discard(recipe_id)
        for key in self._aside.get(recipe_id, ()):
            self._edges[key].sides.discard(recipe_id)
        self._renew((*self._paths[recipe_id], *self._aside.get(recipe_id, ())))

    def _renew(self, keys: Iterable[str]) -> None:
        """Something has changed for these edges."""
        for key in keys:
            self._waiting.change(key)
            self._refresh(key)

    def _refresh(self, key: str) -> None:
        edge = self._edges[key]
        ready = edge.parent is None or self._edges[edge.parent].state is EdgeState.DONE
        if edge.twin is not None and ready and edge.state is EdgeState.WAITING:
            ready = self._need_not_wait(edge, self._edges[edge.twin])
        if edge.state is EdgeState.WAITING and ready and (edge.recipes or edge.sides):
            self._waiting.admit(key)
        else:
            self._waiting.withdraw(key)

    def _need_not_wait(self, edge: Edge, twin: Edge) -> bool:
        """Whether an edge that could start need not wait for its twin; one that has not started is of no use to it.

        One that runs, for whomever, runs for those who wait for it as well.
        """
        if twin.state is EdgeState.WAITING:
            self._let_go(twin.key, twin.sides & edge.recipes)
        elif twin.state is EdgeState.RUNNING:
            twin.sides.update(name for name in edge.recipes if twin.key in self._aside[name])
            self._waiting.change(twin.key)
        return twin.state is not EdgeState.RUNNING

    def _rank(self, key: str) -> Rank:
        odds, left, entries = self._odds, self._left, self._entries
        best: tuple[float, int, str] = 0.0, 1 << 60, ""
        edge = self._edges[key]
        for name in edge.users if edge.sides else edge.recipes:
            cost = -odds[name] / max(left[name], _LEAST_SECONDS)
            if cost <= best[0]:
                best = min(best, (cost, entries[name].order, name))
        cost, order, name = best
        return Rank(cost, order, name in edge.sides, key, odds.get(name, 0.0))

    def _sorted(self, ids: Iterable[str]) -> list[Entry]:
        return sorted((self._entries[name] for name in ids), key=lambda entry: entry.order)


def check_key(recipe: Recipe) -> str:
    """The key of the node in which `recipe` is verified."""
    return digest_of(["check", recipe.checkpoints[-1], recipe.check.digest])
