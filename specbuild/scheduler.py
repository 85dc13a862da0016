"""Which work runs next: a pure function of the Tree. No I/O, no clock.

The value of an edge is the best *probability of success ÷ expected remaining seconds* of the live Recipes that pass
through it. With independent Recipes on one machine, running them in that order minimises the expected time to the
first success: Smith's rule for ratios (W. E. Smith, Naval Research Logistics Quarterly 3, 1956), and the index of
Weitzman's Pandora boxes (Econometrica 47, 1979) when a box is paid for by its opening time. With several slots it is
a heuristic. Ties are broken by the order of the Recipes, so the same observations lead to the same decisions.

Four rules make speculation pay on few cores (figures: `python -m bench simulate`):

- One Recipe is held to until it fails, whatever is foreseen: the `steady` one, which a run without predictions would be
  at. Its work never waits for a slot and gets the CPU first. So nothing that is foreseen wrongly, and no rival, delays
  it: speculation is beside the sequential run, not in its place. With one slot there is no beside; then what was
  learned from other branches tells where to go on after a failure.
- CPU follows the ranking (`cpu_weights`): on two cores the steady Recipe has one, and the best of all others the other.
- What outranks everything that runs does not wait for a slot: it starts at once, up to `slots` edges more than there
  are slots, since those that run hardly cost it anything. Work is not thrown away for it; it goes on at the bottom.
- Waste has a price: an edge that is needed only if all better Recipes fail, and then brings little, is not started.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable
from dataclasses import dataclass

from specbuild.breadth import Breadth
from specbuild.tree import Edge, Entry, Tree

LEADER_WEIGHT = 10_000
"""CPU weight of the first running edge: the maximum of cgroup v2."""

WEIGHT_RATIO = 100
"""CPU weight of a running edge over that of the next in rank. With 10 instead, speculation cost the steady Recipe 9%
of a core; with equal weights two cores were slower than a sequential run in half of all simulated repositories."""

WASTE_PRICE = 0.005
"""Probability of being needed from which an edge is worth a slot that nothing better wants. In simulations on 16 cores
0.02 closed 85% of the gap between checkpoints alone and the oracle for 3.2 times the CPU time of the oracle, 0.005 88%
for 3.6 times, 0 91% for 4.3 times; on two cores it hardly matters, since there are no slots left for such edges."""


@dataclass(frozen=True, slots=True)
class Decision:
    """What to do now."""

    start: tuple[str, ...]
    """Edges, best first."""
    steady: str | None = None
    """The Recipe to hold to; see `Tree.hold`."""


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


def choose(
    tree: Tree, *, slots: int, breadth: Breadth = Breadth.ALL, price: float = WASTE_PRICE, undecided: bool = False
) -> Decision:
    """The edges to start so that at most `slots` run, or some more that must not wait (see above).

    With less `breadth`, only edges of the steady Recipe, or of its family, are started. `price` is the least
    probability of being needed (0 to 1) of what is started beside the best. While it is `undecided` what repairs a
    failure, no other Recipe becomes the steady one.
    """
    steady = _steady(tree, undecided=undecided, by_prior=slots > 1)
    name = steady.id if steady else None
    running = _ranked(tree, tree.running())
    waiting = _ranked(tree, _within(tree, breadth, steady))
    first = [one for one in waiting if name in one.edge.recipes][: max(slots, 0)]
    others = [one for one in waiting if name not in one.edge.recipes]
    free = slots - len(running) - len(first)
    if free > 0:
        chosen = [*first, *_worth_it(others, [*running, *first], free, price)]
    elif others and _outranks(others[0], [*running, *first]) and len(running) + len(first) < 2 * slots:
        chosen = [*first, others[0]]
    else:
        chosen = first
    if not chosen and not running and slots > 0:
        chosen = waiting[:1]
    return Decision(tuple(one.edge.key for one in chosen), name)


def rank(tree: Tree, edges: list[Edge]) -> list[Edge]:
    """Edges by falling value; ties by the order of their Recipes."""
    return [one.edge for one in _ranked(tree, edges)]


def cpu_weights(tree: Tree) -> dict[str, int]:
    """The CPU weight (1 to 10,000) of each running edge: the steady Recipe's first, then by rank."""
    ranked = rank(tree, tree.running())
    ranked.sort(key=lambda edge: tree.steady not in edge.recipes)
    return {edge.key: max(LEADER_WEIGHT // WEIGHT_RATIO**place, 1) for place, edge in enumerate(ranked)}


def worth(tree: Tree, recipe_id: str) -> float:
    """Probability of success per expected remaining second of a live Recipe."""
    return tree.odds(recipe_id) / tree.seconds_left(recipe_id)


def _steady(tree: Tree, *, undecided: bool, by_prior: bool) -> Entry | None:
    """The Recipe to hold to: the one held to until now, as long as it lives."""
    if tree.steady is not None:
        return tree.entry(tree.steady)
    if undecided:
        return None

    def falling(entry: Entry) -> tuple[float, int]:
        odds = entry.prior if by_prior else tree.odds(entry.id)
        return -odds / tree.seconds_left(entry.id), entry.order

    return min((entry for entry in tree.live() if not tree.is_hedge(entry)), key=falling, default=None)


def _worth_it(waiting: list[_Rank], ahead: list[_Rank], free: int, price: float) -> list[_Rank]:
    """The first `free` of those that wait, as far as it is likely enough that they come to be needed.

    That is the probability that the best Recipe of every better edge fails, as if these failed independently; they
    mostly fail for the same reasons, so that it is a lower bound.
    """
    chosen: list[_Rank] = []
    needed, candidates = 1.0, {id(one) for one in waiting[:free]}
    for one in heapq.merge(sorted(ahead, key=_key), waiting, key=_key):
        if id(one) in candidates and needed >= price:
            chosen.append(one)
        needed *= 1 - one.odds
    return chosen


def _outranks(one: _Rank, others: Iterable[_Rank]) -> bool:
    return all(one.key < other.key for other in others)


def _within(tree: Tree, breadth: Breadth, steady: Entry | None) -> list[Edge]:
    """The runnable edges that the breadth allows."""
    runnable = tree.runnable()
    if breadth is Breadth.ALL:
        return runnable
    if steady is None:
        return []
    if breadth is Breadth.RECIPE:
        return [edge for edge in runnable if steady.id in edge.recipes]
    family = {entry.id for entry in tree.live() if entry.family == steady.family}
    return [edge for edge in runnable if edge.recipes & family]


def _ranked(tree: Tree, edges: list[Edge]) -> list[_Rank]:
    """Every live Recipe passes through one edge that runs or could run, so that this looks at each Recipe once."""
    return sorted((_rank(tree, edge) for edge in edges), key=_key)


def _key(one: _Rank) -> tuple[float, int]:
    return one.key


def _rank(tree: Tree, edge: Edge) -> _Rank:
    best = min(((-worth(tree, name), tree.entry(name).order, name) for name in edge.recipes), default=None)
    if best is None:
        return _Rank(edge, 0.0, 1 << 60, 0.0)
    return _Rank(edge, -best[0], best[1], tree.odds(best[2]))
