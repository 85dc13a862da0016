"""Steps that need not wait for their turn: system packages, which want nothing of what lies between.

In the order of a Recipe `apt-get install` comes after the Steps before it: uv's installation, the source tree, what is
installed in the virtual environment. It reads nothing of those, and they read nothing of it as long as they succeed
without. So it can run beside them, on the last state that only system packages have led to, and what it has changed is
grafted onto theirs (`Backend.graft`), if no path was changed on both ways. The state that comes of it has the key of
the Recipe's own order, and a replay, which has no shortcuts, proves it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from specbuild.recipe import Recipe, Step, StepKind, checkpoint_key


@dataclass(frozen=True, slots=True)
class Side:
    """The work of a Step on an earlier state."""

    key: str
    """Of the state that it leads to."""
    parent: str
    """Of the state that it starts from."""
    step: Step


def sides(recipe: Recipe) -> Mapping[str, Side]:
    """The key of a state of the Recipe → how the Step that leads to it can run on an earlier one.

    Package managers have one database, so such Steps follow each other in the Recipe's order.
    """
    steps = recipe.steps
    first = next((index for index, step in enumerate(steps) if step.kind is not StepKind.SYSTEM), len(steps))
    found: dict[str, Side] = {}
    if first == 0:  # nothing has brought the package lists
        return found
    state = recipe.checkpoints[first]
    for index, step in enumerate(steps[first:], first + 1):
        if _installs_packages(step):
            side = found[recipe.checkpoints[index]] = Side(checkpoint_key(state, step), state, step)
            state = side.key
        elif _may_touch_packages(step):
            break
    return found


def _installs_packages(step: Step) -> bool:
    """Whether the Step is one of `strategies.steps.packages`."""
    return step.kind is StepKind.SYSTEM and step.caches == ("apt",) and step.cwd == "/"


def _may_touch_packages(step: Step) -> bool:
    return step.kind is StepKind.SYSTEM or any(word in step.run for word in ("apt", "dpkg", "/etc/"))
