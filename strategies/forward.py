"""From the environment of another revision on: what was installed there is taken, and what is new is added.

A candidate of this revision, begun at the state in which an earlier environment was before its source tree came: that
state is in the store as long as the environment is kept. It is a Recipe like any other, from the base on, and a rival
of the candidates that begin at the base: those win where what is there stands in the way of what is new.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence

from specbuild.recipe import Recipe, Step, StepKind, source_step, with_source
from specbuild.strategies import odds
from specbuild.strategies.contract import Candidate, Earlier, Request
from specbuild.verify.checks import OWN

TAG = "+earlier"
"""Ends the names of such candidates."""

MOST_INHERITED = 3
"""Steps that a candidate may have more than the one that begins at the base: else environments grow with each revision
until nobody can tell what of them is still needed."""

_DATE = re.compile(r"@\d{4}-\d{2}-\d{2}")


def forward(request: Request, found: Sequence[Candidate]) -> Iterator[Candidate]:
    """For each earlier environment the candidate of `found` that goes the same way, begun at its state."""
    for earlier in request.earlier:
        kin = next((one for one in found if _kin(one, earlier)), None)
        if kin is None:
            continue
        if _is_of(earlier, request):
            why = f"environment {earlier.environment} is of this very tree"
            same = _candidate(earlier, kin, earlier.recipe)
            yield same.model_copy(update={"strategy": earlier.strategy, "reason": why})
            continue
        recipe = _from(earlier, kin.recipe, request.source_digest)
        if recipe.digest != kin.recipe.digest and len(recipe.steps) <= len(kin.recipe.steps) + MOST_INHERITED:
            yield _candidate(earlier, kin, recipe)


def _candidate(earlier: Earlier, kin: Candidate, recipe: Recipe) -> Candidate:
    kept = odds.EARLIER_ALIKE if earlier.alike else odds.EARLIER
    spared = sum(step.kind in (StepKind.SYSTEM, StepKind.TOOLCHAIN, StepKind.DEPENDENCIES) for step in recipe.steps)
    return kin.model_copy(
        update={
            "recipe": recipe,
            "strategy": kin.strategy + TAG,
            "prior": odds.clamp(1 - (1 - kin.prior) * (1 - kept)),
            "expected_seconds": max(kin.expected_seconds * odds.EARLIER_SECONDS**spared, 1.0),
            "reason": f"goes on from environment {earlier.environment} of {earlier.revision}; {kin.reason}",
        }
    )


def _is_of(earlier: Earlier, request: Request) -> bool:
    """Whether it is an environment of this very tree, verified as it is wanted now: then all of it is taken.

    A user's own command is no other's like, whatever reads its report: only the same command will do.
    """
    check = earlier.recipe.check
    asked = {(one.level, one.runner) for one in request.checks if one.reason != OWN}
    same = check in request.checks or (check.reason != OWN and (check.level, check.runner) in asked)
    return same and source_step(request.source_digest) in earlier.recipe.steps


def _kin(candidate: Candidate, earlier: Earlier) -> bool:
    """Whether it stands on the same base and goes the same way, whatever the date."""
    return candidate.recipe.base == earlier.recipe.base and _way(candidate.strategy) == _way(earlier.strategy)


def _way(strategy: str) -> str:
    return _DATE.sub("@", strategy.removesuffix(TAG))


def _from(earlier: Earlier, recipe: Recipe, source_digest: str) -> Recipe:
    """The Steps of `recipe` that are not among what `earlier` has done, after what it has done."""
    done = (*earlier.before_source, *earlier.packages)
    new = _without(recipe.steps, done)
    return recipe.model_copy(update={"steps": with_source((*done, *new), source_step(source_digest))})


def _without(steps: Iterable[Step], done: Iterable[Step]) -> tuple[Step, ...]:
    known = {step.digest for step in done}
    return tuple(step for step in steps if step.digest not in known and step.kind is not StepKind.SOURCE)
