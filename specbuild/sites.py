"""Places in a Recipe, and failures at them.

A place is the index of a Step, or the number of Steps for the Check.
"""

from __future__ import annotations

from dataclasses import dataclass

from specbuild.failures import Failure
from specbuild.predictors.foresee import Foreseen
from specbuild.recipe import Check, Recipe, Step, StepKind
from specbuild.tree import Work, check_key


@dataclass(frozen=True, slots=True)
class Site:
    """A failure, and the place of the work that fails so."""

    index: int
    failure: Failure


def place_of(recipe: Recipe, key: str) -> int | None:
    """The place of the work that leads to the node `key`; None if the Recipe has none such, or it is the Base."""
    if key in recipe.checkpoints[1:]:
        return recipe.checkpoints.index(key) - 1
    return len(recipe.steps) if key == check_key(recipe) else None


def node_at(recipe: Recipe, place: int) -> str:
    """The key of the node to which the work at a place leads."""
    return (*recipe.checkpoints[1:], check_key(recipe))[place]


def work_at(recipe: Recipe, place: int) -> Step | Check:
    """The work at a place."""
    return recipe.check if place == len(recipe.steps) else recipe.steps[place]


def place_alike(recipe: Recipe, work: Work) -> int | None:
    """The place of the work in a Recipe that is most like `work`: of the same kind, the Check for a Check."""
    if isinstance(work, Check):
        return len(recipe.steps)
    if not isinstance(work, Step) or work.kind not in (StepKind.DEPENDENCIES, StepKind.BUILD):
        return None
    return next((index for index, step in enumerate(recipe.steps) if step.kind is work.kind), None)


def site_of(recipe: Recipe, one: Foreseen) -> Site:
    """Where what is foreseen will show: at the first Step of its kind; at the Check, if there is none such."""
    found = (index for index, step in enumerate(recipe.steps) if step.kind is one.at)
    failure = one.failure.model_copy(update={"building": one.subject})
    return Site(next(found, len(recipe.steps)), failure)
