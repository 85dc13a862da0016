"""Trouble that is nobody's failure: of our machinery, of the network, of registries. It is given a second chance."""

from __future__ import annotations

from collections.abc import Collection, Iterable

from specbuild.errors import BaseUnavailableError, SpecBuildError
from specbuild.execution import Execution
from specbuild.failures import NetworkTrouble, RegistryTrouble, Weight
from specbuild.recipe import Step
from specbuild.tree import Edge

TRIES = 2
"""How often a piece of work is started before trouble counts against the Recipes that need it."""


class Trouble:
    """The trouble of one race."""

    def __init__(self) -> None:
        self._tries: dict[str, int] = {}
        self._errors: dict[str, SpecBuildError] = {}
        """Recipe → the trouble of our machinery that ended it."""

    def outlasts(self, edge: Edge, error: SpecBuildError) -> bool:
        """Whether trouble of our machinery ends the Recipes that need an edge; else the edge is to be tried again."""
        return not self._again(edge) or isinstance(error, BaseUnavailableError)

    def is_passing(self, edge: Edge, done: Execution) -> bool:
        """Whether only network and registries failed a Step, which may not do so when it is tried again."""
        causes = [failure for failure in done.failures if failure.weight is Weight.CAUSE]
        if not causes or not all(isinstance(failure, NetworkTrouble | RegistryTrouble) for failure in causes):
            return False
        return self._again(edge) and isinstance(edge.work, Step)

    def ended(self, recipes: Iterable[str], error: SpecBuildError) -> None:
        """Trouble of our machinery ended Recipes."""
        for recipe in recipes:
            self._errors[recipe] = error

    def raise_if_alone(self, ended: Collection[str]) -> None:
        """Raise the first error of our machinery if that is what ended all Recipes that have ended."""
        if self._errors and set(self._errors) == set(ended):
            raise next(iter(self._errors.values()))

    def _again(self, edge: Edge) -> bool:
        self._tries[edge.key] = self._tries.get(edge.key, 0) + 1
        return self._tries[edge.key] < TRIES
