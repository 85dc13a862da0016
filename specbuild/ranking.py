"""Edges by falling worth, kept in order while little changes: a decision looks at the best few of thousands.

The worth of an edge is the best *probability of success ÷ expected remaining seconds* of the live Recipes that pass
through it; why, is told in `specbuild.scheduler`. Worths are found again only for edges of which something changed, and
entries of the heap that are out of date are dropped when they come up.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterator
from typing import NamedTuple


class Rank(NamedTuple):
    """What an edge is worth, by the best Recipe that passes through it. Sorts the best first, and leaves no ties.

    A tuple, since a decision may have to make and compare thousands of them.
    """

    cost: float
    """What it is worth, which is probability of success a second, below zero."""
    order: int
    """Of that Recipe: ties are broken by it."""
    aside: bool
    """Whether it can only take over what the work changes: ties go to the work whose turn it is."""
    key: str
    """Of the edge."""
    odds: float
    """Probability of verification of that Recipe."""

    @property
    def place(self) -> tuple[float, int]:
        """Sorts the best first; edges of one Recipe have the same."""
        return self[:2]


class Ranking:
    """The edges that wait, by falling worth."""

    def __init__(self, find: Callable[[str], Rank]) -> None:
        """`find` tells the present rank of an edge."""
        self._find = find
        self._ranks: dict[str, Rank] = {}
        self._waiting: set[str] = set()
        self._fresh: set[str] = set()
        """Waiting edges that the heap does not hold as they are now."""
        self._heap: list[Rank] = []

    def __contains__(self, key: str) -> bool:
        return key in self._waiting

    def __iter__(self) -> Iterator[str]:
        return iter(self._waiting)

    def admit(self, key: str) -> None:
        """The edge waits from now on."""
        if key not in self._waiting:
            self._waiting.add(key)
            self._fresh.add(key)

    def withdraw(self, key: str) -> None:
        """The edge does not wait any more."""
        self._waiting.discard(key)
        self._fresh.discard(key)

    def change(self, key: str) -> None:
        """Its rank may be another one now."""
        self._ranks.pop(key, None)
        if key in self._waiting:
            self._fresh.add(key)

    def rank(self, key: str) -> Rank:
        """The present rank of an edge, waiting or not."""
        found = self._ranks.get(key)
        if found is None:
            found = self._ranks[key] = self._find(key)
        return found

    def best(self, count: int) -> list[Rank]:
        """The best of those that wait."""
        self._take_in()
        found: list[Rank] = []
        while self._heap and len(found) < count:
            rank = heapq.heappop(self._heap)
            if rank.key in self._waiting and self._ranks.get(rank.key) is rank and not (found and found[-1] is rank):
                found.append(rank)
        for rank in found:
            heapq.heappush(self._heap, rank)
        return found

    def _take_in(self) -> None:
        fresh = list(map(self.rank, self._fresh))
        self._fresh.clear()
        if len(fresh) > len(self._heap) // 8:
            self._heap += fresh
            heapq.heapify(self._heap)
        else:
            for rank in fresh:
                heapq.heappush(self._heap, rank)
