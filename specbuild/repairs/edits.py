"""Edits of a Recipe: data, so that they can be composed, compared, told and written down.

All are made at a place: the index of the failing Step, or the number of Steps for the Check. None touches a tracked
file of the Repo: what a Recipe does to the tree is the business of its Steps, and a tainted tree cannot win.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Annotated, Literal, assert_never

from pydantic import Field

from specbuild.model import Frozen
from specbuild.recipe import Check, Recipe, Step, StepKind, outside


class InsertSteps(Frozen):
    """Run Steps before the failing one, from the checkpoint that is there."""

    kind: Literal["insert-steps"] = "insert-steps"
    steps: tuple[Step, ...]
    before: StepKind | None = None
    """Before the first Step of this kind instead, if there is one: what failed late was spoilt early."""


class SetVariables(Frozen):
    """Set variables for the failing Step and all later ones, the Check included."""

    kind: Literal["set-variables"] = "set-variables"
    env: tuple[tuple[str, str], ...]
    since: StepKind | None = None
    """From the first Step of this kind on instead, if there is one."""
    kept: bool = False
    """Whether they belong to the finished environment as well."""


class ReplaceWork(Frozen):
    """Run something else in place of what failed. Of a Check the report and its runner stay as `check` says.

    Variables that are set there stay, so that an edit made without knowledge of another does not undo it.
    """

    kind: Literal["replace-work"] = "replace-work"
    step: Step | None = None
    check: Check | None = None


class StartService(Frozen):
    """Start a server in the process space of the Check, before its command."""

    kind: Literal["start-service"] = "start-service"
    name: str
    script: str
    """Shell lines (`sh -eu`), run as root in the sandbox; they return once the server answers."""
    alone: bool = True
    """Whether the Check runs without the network from then on: with it, the ports are those of the machine, where
    rivals start servers of the same kind and the user may have one."""


class MoveToBase(Frozen):
    """Try the same route on another base."""

    kind: Literal["move-to-base"] = "move-to-base"
    base: str
    """As users write it: `debian:trixie`."""


Edit = Annotated[
    InsertSteps | SetVariables | ReplaceWork | StartService | MoveToBase,
    Field(discriminator="kind"),
]


@dataclass(frozen=True, slots=True)
class Placed:
    """A Recipe and a place in it."""

    recipe: Recipe
    index: int


def apply(edits: Iterable[Edit], recipe: Recipe, index: int) -> Placed:
    """The edited Recipe, and where the work that stood at `index` stands now.

    `MoveToBase` changes nothing here: other bases need other Steps, which only strategies can write. Raises ValueError
    for an index outside of the Recipe.
    """
    if not 0 <= index <= len(recipe.steps):
        raise ValueError(f"the recipe has no place {index}")
    placed = Placed(recipe, index)
    for edit in edits:
        placed = _apply(edit, placed)
    return placed


def _apply(edit: Edit, placed: Placed) -> Placed:
    match edit:
        case InsertSteps():
            return _insert(edit, placed)
        case SetVariables():
            return Placed(_set(edit, placed), placed.index)
        case ReplaceWork():
            return Placed(_replace(edit, placed), placed.index)
        case StartService():
            return Placed(_start(edit, placed.recipe), placed.index)
        case MoveToBase():
            return placed
        case _:
            assert_never(edit)


def _insert(edit: InsertSteps, placed: Placed) -> Placed:
    at = _first(placed, edit.before)
    steps = placed.recipe.steps
    new = tuple(_fitting(step, placed.recipe, at) for step in edit.steps)
    return Placed(_with(placed.recipe, steps=(*steps[:at], *new, *steps[at:])), placed.index + len(new))


def _fitting(step: Step, recipe: Recipe, at: int) -> Step:
    """The Step for a place in the Recipe: before the source tree is there, nothing can start in it."""
    return outside(step) if any(later.kind is StepKind.SOURCE for later in recipe.steps[at:]) else step


def _set(edit: SetVariables, placed: Placed) -> Recipe:
    recipe, since = placed.recipe, _first(placed, edit.since)
    steps = (*recipe.steps[:since], *(_in(step, edit.env) for step in recipe.steps[since:]))
    check = recipe.check.model_copy(update={"step": _in(recipe.check.step, edit.env)})
    test_env = _merged(recipe.test_env, edit.env) if edit.kept else recipe.test_env
    return _with(recipe, steps=steps, check=check, test_env=test_env)


def _replace(edit: ReplaceWork, placed: Placed) -> Recipe:
    recipe, steps = placed.recipe, placed.recipe.steps
    if placed.index == len(steps):
        return _with(recipe, check=_check_in(edit.check, recipe.check)) if edit.check else recipe
    if edit.step is None:
        return recipe
    step = _in(_fitting(edit.step, recipe, placed.index), steps[placed.index].env)
    return _with(recipe, steps=(*steps[: placed.index], step, *steps[placed.index + 1 :]))


def _check_in(check: Check, place: Check) -> Check:
    """The Check in the place of another, with the variables and services that other edits gave to that one."""
    services = dict(check.services) | dict(place.services)
    step = _in(check.step, place.step.env)
    return check.model_copy(update={"step": step, "services": tuple(sorted(services.items()))})


def _start(edit: StartService, recipe: Recipe) -> Recipe:
    scripts = dict(recipe.check.services) | {edit.name: edit.script}
    step = recipe.check.step.model_copy(update={"network": recipe.check.step.network and not edit.alone})
    check = recipe.check.model_copy(update={"services": tuple(sorted(scripts.items())), "step": step})
    return _with(recipe, check=check)


def _first(placed: Placed, kind: StepKind | None) -> int:
    found = (at for at, step in enumerate(placed.recipe.steps[: placed.index]) if step.kind is kind)
    return next(found, placed.index) if kind else placed.index


def _in(step: Step, env: tuple[tuple[str, str], ...]) -> Step:
    if step.kind is StepKind.SOURCE:
        return step
    return step.model_copy(update={"env": _merged(step.env, env)})


def _merged(env: tuple[tuple[str, str], ...], new: tuple[tuple[str, str], ...]) -> tuple[tuple[str, str], ...]:
    return tuple(sorted((dict(env) | dict(new)).items()))


def _with(recipe: Recipe, **changes: object) -> Recipe:
    return recipe.model_copy(update=changes)
