"""Which work runs next: a pure function of the Tree. No I/O, no clock.

The value of an edge is the best *probability of success ÷ expected remaining seconds* of the live Recipes that pass
through it. With independent Recipes on one machine, running them in that order minimises the expected time to the
first success: Smith's rule for ratios (W. E. Smith, Naval Research Logistics Quarterly 3, 1956), and the index of
Weitzman's Pandora boxes (Econometrica 47, 1979) when a box is paid for by its opening time. With several slots it is
a heuristic. Ties are broken by the order of the Recipes, so the same observations lead to the same decisions.

Five rules make speculation pay on few cores (figures: `python -m bench simulate`):

- One Recipe is held to until it fails, whatever is foreseen: the `steady` one, which a run without predictions would be
  at. Its work never waits for a slot and gets the CPU first. So nothing that is foreseen wrongly, and no rival, delays
  it: speculation is beside the sequential run, not in its place. With one slot there is no beside; then what was
  learned from other branches tells where to go on after a failure.
- CPU follows the ranking (`cpu_weights`): on two cores the steady Recipe has one, and the best of all others the other.
- Work of a Recipe that can be done before its turn (`specbuild.sides`) is worth as much as its next Step, and so comes
  before that of all Recipes that are worth less.
- What nothing that runs outranks does not wait for a slot (if there are more than one): it starts at once, up to
  `slots` edges more than there are slots, since those that run hardly cost it anything. Work is not thrown away for
  it; it goes on at the bottom.
- Waste has a price: an edge that is needed only if all better Recipes fail, and then brings little, is not started.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable
from dataclasses import dataclass

from specbuild.breadth import Breadth
from specbuild.ranking import Rank
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


def choose(
    tree: Tree, *, slots: int, breadth: Breadth = Breadth.ALL, price: float = WASTE_PRICE, undecided: bool = False
) -> Decision:
    """The edges to start so that at most `slots` run, or some more that must not wait (see above).

    With less `breadth`, only edges of the steady Recipe, or of its family, are started. `price` is the least
    probability of being needed (0 to 1) of what is started beside the best. While it is `undecided` what repairs a
    failure, no other Recipe becomes the steady one, and with one slot nothing starts.
    """
    steady = _steady(tree, undecided=undecided, by_prior=slots > 1)
    if undecided and steady is None and slots <= 1:
        return Decision(())
    running = rank(tree, tree.running())
    first = _next_of(tree, steady)[: max(slots, 0)]
    others = [one for one in _waiting(tree, breadth, steady, slots + 1) if one not in first]
    free = max(slots - len(running) - len(first), 0)
    chosen = [*first, *_worth_it(others, [*running, *first], free, price)]
    late = [one for one in others if one not in chosen]
    if slots > 1 and late and _outranks(late[0], [*running, *chosen]):
        best = [one for one in late if one.place == late[0].place]  # of one Recipe: nothing of it waits
        chosen += best[: max(2 * slots - len(running) - len(chosen), 0)]
    if not chosen and not running and slots > 0:
        chosen = others[:1]
    return Decision(tuple(one.key for one in chosen), steady.id if steady else None)


def rank(tree: Tree, edges: Iterable[Edge]) -> list[Rank]:
    """The ranks of edges, by falling worth; ties by the order of their Recipes, then of their Steps."""
    return sorted(tree.rank(edge.key) for edge in edges)


def cpu_weights(tree: Tree) -> dict[str, int]:
    """The CPU weight (1 to 10,000) of each running edge: first the steady Recipe and its repairs, then by rank.

    Where the best of its repairs is worth more than the steady Recipe itself, it gets the CPU before it, but no other.
    """
    keys = [one.key for one in rank(tree, tree.running())]
    if tree.steady is not None:
        keys = _steady_first(tree, keys, tree.entry(tree.steady))
    return {key: max(LEADER_WEIGHT // WEIGHT_RATIO**place, 1) for place, key in enumerate(keys)}


def _steady_first(tree: Tree, keys: list[str], steady: Entry) -> list[str]:
    own = [key for key in keys if steady.id in tree.edge(key).users]
    own.sort(key=lambda key: steady.id not in tree.edge(key).recipes)
    rest = [key for key in keys if key not in own]
    repairs = [key for key in rest if any(entry.family == steady.family for entry in tree.users(key))]
    leads = [key for key in repairs[:1] if own and tree.rank(key).place < tree.rank(own[0]).place]
    return [*leads, *own, *(key for key in repairs if key not in leads), *(key for key in rest if key not in repairs)]


def _steady(tree: Tree, *, undecided: bool, by_prior: bool) -> Entry | None:
    """The Recipe to hold to: the one held to until now, as long as it lives."""
    if tree.steady is not None:
        return tree.entry(tree.steady)
    return None if undecided else tree.steadiest(by_prior=by_prior)


def _next_of(tree: Tree, steady: Entry | None) -> list[Rank]:
    """The edge of the steady Recipe, if it could start."""
    edge = next(iter(tree.remaining(steady.id)), None) if steady else None
    return [tree.rank(edge.key)] if edge is not None and tree.is_runnable(edge.key) else []


def _waiting(tree: Tree, breadth: Breadth, steady: Entry | None, count: int) -> list[Rank]:
    """The best runnable edges that the breadth allows; `count` of them or more, if there are."""
    if breadth is Breadth.ALL:
        return tree.foremost(count)
    if steady is None or breadth is Breadth.RECIPE:
        return []
    family = {entry.id for entry in tree.live() if entry.family == steady.family}
    return rank(tree, (edge for edge in tree.runnable() if edge.users & family))


def _worth_it(waiting: list[Rank], ahead: list[Rank], free: int, price: float) -> list[Rank]:
    """The first `free` of those that wait, as far as it is likely enough that they come to be needed.

    That is the probability that the best Recipe of every better edge fails, as if these failed independently; they
    mostly fail for the same reasons, so that it is a lower bound. A Recipe with several edges, one in its turn and
    others that need not wait for theirs, fails once.
    """
    chosen: list[Rank] = []
    needed, candidates = 1.0, {one.key for one in waiting[:free]}
    for _, group in itertools.groupby(sorted([*ahead, *waiting]), _place):
        edges = list(group)
        if needed >= price:
            chosen += [one for one in edges if one.key in candidates]
        needed *= 1 - edges[0].odds
    return chosen


def _outranks(one: Rank, others: Iterable[Rank]) -> bool:
    return all(one.place <= other.place for other in others)


def _place(one: Rank) -> tuple[float, int]:
    return one.place
