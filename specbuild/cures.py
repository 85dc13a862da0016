"""Which Repairs a candidate gets for its failures.

The Repairs of several failures of one Step are made one after the other in the order in which the output told of them,
each as Steps of its own: so what is foreseen from the first line shares its checkpoints with what is known at the end.
Rivals replace the first Repair by the next likely one.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass

from specbuild.failures import Failure
from specbuild.recipe import Recipe
from specbuild.repairs import Repair
from specbuild.repairs.edits import MoveToBase, apply
from specbuild.sites import Site

Options = Callable[[Site, Recipe], Sequence[Repair]]
"""The Repairs of a failure at its place in a Recipe, likeliest first."""


@dataclass(frozen=True, slots=True)
class Made:
    """A Repair that was made in a Recipe."""

    failure: Failure
    repair: Repair
    recipe: Recipe
    """With it, and with those made before."""
    since: int
    """The place of its first Step."""
    place: int
    """Where the work that failed is now."""
    grown: int
    """How many Steps it added."""


@dataclass(frozen=True, slots=True)
class Cure:
    """Repairs for the failures of one candidate, made together; in order of their sites."""

    repairs: tuple[tuple[Site, Repair], ...]

    @property
    def probability(self) -> float:
        """That all failures are gone."""
        return math.prod(repair.probability for _, repair in self.repairs)

    @property
    def base(self) -> str | None:
        """The base that it moves to, if it does."""
        edits = (edit for _, repair in self.repairs for edit in repair.edits)
        return next((edit.base for edit in edits if isinstance(edit, MoveToBase)), None)

    def made_in(self, recipe: Recipe) -> list[Made]:
        """The Repairs, made one after the other: the last one has the whole Recipe."""
        made: list[Made] = []
        moved = 0
        for site, repair in self.repairs:
            one = _make(Site(site.index + moved, site.failure), repair, recipe)
            made.append(one)
            recipe, moved = one.recipe, one.place - site.index
        return made


def cures(recipe: Recipe, sites: Sequence[Site], had: Collection[str], options: Options) -> list[Cure]:
    """All failures repaired in the likeliest way; then rivals for the first; then the first alone.

    `had` are the names of the Repairs that the candidate has: none is made twice.
    """
    chosen: list[tuple[Site, Repair]] = []
    rivals: list[tuple[Site, Repair]] = []
    taken, moved = set(had), 0
    for site in sites:
        here = Site(site.index + moved, site.failure)
        found = [repair for repair in options(here, recipe) if repair.name not in taken]
        if not found:
            continue
        if not chosen:
            rivals = [(site, other) for other in found[1:]]
        chosen.append((site, found[0]))
        taken.add(found[0].name)
        made = _make(here, found[0], recipe)
        recipe, moved = made.recipe, made.place - site.index
    if not chosen:
        return []
    ways = [chosen, *(_instead(rival, chosen[1:]) for rival in rivals), *([chosen[:1]] if len(chosen) > 1 else [])]
    return [Cure(tuple(way)) for way in ways]


def _instead(rival: tuple[Site, Repair], others: Sequence[tuple[Site, Repair]]) -> list[tuple[Site, Repair]]:
    """The rival with the other Repairs, none of them twice."""
    return [rival, *(other for other in others if other[1].name != rival[1].name)]


def _make(site: Site, repair: Repair, recipe: Recipe) -> Made:
    placed = apply(repair.edits, recipe, site.index)
    grown = len(placed.recipe.steps) - len(recipe.steps)
    return Made(site.failure, repair, placed.recipe, site.index, placed.index, grown)
