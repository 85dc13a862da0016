"""Which work runs next: a pure function of the Tree. No I/O, no clock.

The value of an edge is the best *probability of success ÷ expected remaining seconds* of the live Recipes that pass
through it. With independent Recipes on one machine, running them in that order minimises the expected time to the
first success: Smith's rule for ratios (W. E. Smith, Naval Research Logistics Quarterly 3, 1956), and the index of
Weitzman's Pandora boxes (Econometrica 47, 1979) when a box is paid for by its opening time. With several slots it is
a heuristic. Ties are broken by the order of the Recipes, so the same observations lead to the same decisions.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from specbuild.recipe import BaseRef, Check, Step, StepKind
from specbuild.tree import Edge, Entry, Tree

KIND_SECONDS: Mapping[StepKind, float] = {
    StepKind.SYSTEM: 20.0,
    StepKind.TOOLCHAIN: 6.0,
    StepKind.SOURCE: 0.5,
    StepKind.DEPENDENCIES: 10.0,
    StepKind.BUILD: 8.0,
    StepKind.TEST: 15.0,
}
"""How the expected seconds of a Recipe are spread over its Steps before anything was learned: medians seen over the
public corpus on two cores, rounded. Only the proportions matter."""

BASE_SECONDS = 2.0
"""Of providing a base that is in the cache."""

LEADER_WEIGHT = 10_000
"""CPU weight of the highest-ranked running edge: the maximum of cgroup v2."""

FOLLOWER_WEIGHT = 50
"""CPU weight of the other running edges: they live on what the leader leaves. Equal shares made two cores slower than
a sequential run in half of all simulated repositories (docs/architecture.md)."""


@dataclass(frozen=True, slots=True)
class Decision:
    """What to start now, best first."""

    start: tuple[str, ...]


def choose(tree: Tree, *, slots: int, sequential: bool = False) -> Decision:
    """The edges to start so that at most `slots` run.

    With `sequential`, only edges of the best live Recipe are started: one Recipe at a time.
    """
    free = slots - len(tree.running())
    if free <= 0:
        return Decision(())
    ranked = rank(tree, tree.runnable())
    if sequential:
        live = tree.live()
        leader = min(live, key=lambda entry: (-worth(tree, entry), entry.order)) if live else None
        ranked = [edge for edge in ranked if leader is not None and leader.id in edge.recipes]
    return Decision(tuple(edge.key for edge in ranked[:free]))


def rank(tree: Tree, edges: list[Edge]) -> list[Edge]:
    """Edges by falling value; ties by the order of their Recipes."""
    worths: dict[str, float] = {}

    def key(edge: Edge) -> tuple[float, int]:
        best = (float("inf"), 1 << 60)
        for recipe_id in edge.recipes:
            if recipe_id not in worths:
                worths[recipe_id] = worth(tree, tree.entry(recipe_id))
            best = min(best, (-worths[recipe_id], tree.entry(recipe_id).order))
        return best

    return sorted(edges, key=key)


def cpu_weights(tree: Tree) -> dict[str, int]:
    """The CPU weight (1 to 10,000) of each running edge: the leader first, the others on what it leaves."""
    ranked = rank(tree, tree.running())
    return {edge.key: FOLLOWER_WEIGHT if place else LEADER_WEIGHT for place, edge in enumerate(ranked)}


def worth(tree: Tree, entry: Entry) -> float:
    """Probability of success per expected remaining second of a Recipe."""
    return tree.odds(entry.id) / max(remaining_seconds(tree, entry), 0.001)


def remaining_seconds(tree: Tree, entry: Entry) -> float:
    """Expected seconds of the work of a Recipe that is not done, shared work included."""
    recipe = entry.recipe
    whole = _weight(recipe.base) + sum(_weight(step) for step in recipe.steps) + _weight(recipe.check)
    left = sum(_weight(edge.work) for edge in tree.remaining(entry.id))
    return entry.expected_seconds * left / whole


def _weight(work: BaseRef | Step | Check) -> float:
    match work:
        case Step():
            return KIND_SECONDS[work.kind]
        case Check():
            return KIND_SECONDS[StepKind.TEST]
        case BaseRef():
            return BASE_SECONDS
