"""Which work runs next: a pure function of the Tree. No I/O, no clock.

The value of an edge is the best *probability of success ÷ expected remaining seconds* of the live Recipes that pass
through it. With independent Recipes on one machine, running them in that order minimises the expected time to the
first success: Smith's rule for ratios (W. E. Smith, Naval Research Logistics Quarterly 3, 1956), and the index of
Weitzman's Pandora boxes (Econometrica 47, 1979) when a box is paid for by its opening time. With several slots it is
a heuristic. Ties are broken by the order of the Recipes, so the same observations lead to the same decisions.

Three rules make speculation pay on few cores:

- The leader gets the CPU (`cpu_weights`), the others live on what it leaves. So the leader is never delayed by rivals.
- What outranks everything that runs does not wait for a slot: it starts at once, up to `slots` edges more than there
  are slots, since those that run hardly cost it anything. Work is not thrown away for it; it goes on at the bottom.
- Waste has a price: an edge that is needed only if all better Recipes fail, and then brings little, is not started
  (`needed`).
"""

from __future__ import annotations

from dataclasses import dataclass

from specbuild.breadth import Breadth
from specbuild.tree import Edge, Tree

LEADER_WEIGHT = 10_000
"""CPU weight of the highest-ranked running edge: the maximum of cgroup v2."""

FOLLOWER_WEIGHT = 50
"""CPU weight of the other running edges: they live on what the leader leaves. Equal shares made two cores slower than
a sequential run in half of all simulated repositories (docs/architecture.md)."""

WASTE_PRICE = 0.02
"""Probability of being needed from which an edge is worth a slot that nothing better wants."""


@dataclass(frozen=True, slots=True)
class Decision:
    """What to start now, best first."""

    start: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class _Rank:
    """An edge, and the Recipe for which it is valued."""

    edge: Edge
    worth: float
    order: int
    odds: float

    @property
    def key(self) -> tuple[float, int]:
        return -self.worth, self.order


def choose(tree: Tree, *, slots: int, breadth: Breadth = Breadth.ALL, price: float = WASTE_PRICE) -> Decision:
    """The edges to start so that at most `slots` run, or one more that outranks all of them (at most twice `slots`).

    With less `breadth`, only edges of the best live Recipe, or of its family, are started. `price` is the least
    probability of being needed (0 to 1) of what is started beside the best.
    """
    running = tree.running()
    waiting = _ranked(tree, _within(tree, breadth))
    if not waiting:
        return Decision(())
    free = slots - len(running)
    under_way = _ranked(tree, running)
    if free <= 0 and breadth is Breadth.RECIPE:
        return Decision(())
    if free <= 0:
        outranks = not under_way or waiting[0].key < under_way[0].key
        return Decision((waiting[0].edge.key,) if outranks and len(running) < 2 * slots else ())
    chosen = [rank for rank in waiting[:free] if needed(tree, rank.edge, [*under_way, *waiting]) >= price]
    if not chosen and not running:
        chosen = waiting[:1]
    return Decision(tuple(rank.edge.key for rank in chosen))


def rank(tree: Tree, edges: list[Edge]) -> list[Edge]:
    """Edges by falling value; ties by the order of their Recipes."""
    return [one.edge for one in _ranked(tree, edges)]


def cpu_weights(tree: Tree) -> dict[str, int]:
    """The CPU weight (1 to 10,000) of each running edge: the leader first, the others on what it leaves."""
    ranked = rank(tree, tree.running())
    return {edge.key: FOLLOWER_WEIGHT if place else LEADER_WEIGHT for place, edge in enumerate(ranked)}


def worth(tree: Tree, recipe_id: str) -> float:
    """Probability of success per expected remaining second of a live Recipe."""
    return tree.odds(recipe_id) / tree.seconds_left(recipe_id)


def needed(tree: Tree, edge: Edge, rivals: list[_Rank]) -> float:
    """The probability that an edge's work comes to be of use: that the best Recipe of every better edge fails.

    As if these failed independently; they mostly fail for the same reasons, so that this is a lower bound.
    """
    mine = next(one for one in rivals if one.edge is edge)
    product = 1.0
    for other in rivals:
        if other.key < mine.key:
            product *= 1 - other.odds
    return product


def _within(tree: Tree, breadth: Breadth) -> list[Edge]:
    """The runnable edges that the breadth allows."""
    runnable = tree.runnable()
    live = tree.live() if breadth is not Breadth.ALL else []
    if not live:
        return runnable
    leader = min(live, key=lambda entry: (-worth(tree, entry.id), entry.order))
    family = {entry.id for entry in live if entry.family == leader.family}
    allowed = {leader.id} if breadth is Breadth.RECIPE else family
    return [edge for edge in runnable if edge.recipes & allowed]


def _ranked(tree: Tree, edges: list[Edge]) -> list[_Rank]:
    """Every live Recipe passes through one edge that runs or could run, so that this looks at each Recipe once."""
    return sorted((_rank(tree, edge) for edge in edges), key=lambda one: one.key)


def _rank(tree: Tree, edge: Edge) -> _Rank:
    best = min(((-worth(tree, name), tree.entry(name).order, name) for name in edge.recipes), default=None)
    if best is None:
        return _Rank(edge, 0.0, 1 << 60, 0.0)
    return _Rank(edge, -best[0], best[1], tree.odds(best[2]))
