"""What environments of other revisions had to be repaired of: this revision fails so too, unless it was changed."""

from __future__ import annotations

from collections.abc import Iterable

from specbuild.predictors.foresee import chances
from specbuild.predictors.foresee.contract import Foreseen
from specbuild.predictors.foresee.view import View
from specbuild.strategies.contract import Earlier


def foresee(view: View) -> Iterable[Foreseen]:
    """The failures that were repaired on the same base, where the Recipe does not hold their repairs."""
    recipe = view.outlook.candidate.recipe
    for earlier in view.outlook.earlier:
        if earlier.recipe.base.digest != recipe.base.digest:
            continue
        whole = _has_packages(view, earlier)
        for one in earlier.needed:
            if not (whole and one.packages):
                yield Foreseen(
                    failure=one.failure,
                    probability=chances.AS_BEFORE,
                    at=one.at,
                    why=f"environment {earlier.environment} of {earlier.revision} needed it: {one.repair}",
                    subject=one.failure.building,
                )


def _has_packages(view: View, earlier: Earlier) -> bool:
    """Whether the Recipe installs all system packages that the earlier one does after the source tree came."""
    own = {step.digest for step in view.outlook.candidate.recipe.steps}
    return own.issuperset(step.digest for step in earlier.packages)
