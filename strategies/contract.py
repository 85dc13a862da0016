"""What a strategy is given and what it yields."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from typing import Protocol

from pydantic import Field

from specbuild.failures import Failure
from specbuild.model import Frozen
from specbuild.recipe import UV, BaseRef, Check, Recipe, Step, StepKind, works_in_tree
from specbuild.repo.facts import Evidence, Facts


class Candidate(Frozen):
    """A Recipe with the odds that a strategy gives it, and why."""

    recipe: Recipe
    strategy: str
    """The route in a few words that also name it: `locked`, `declared@2019-03-01`, `ci`, `debian-packages`, …"""
    prior: float = Field(gt=0, lt=1)
    """Probability of verification before anything has run."""
    expected_seconds: float = Field(default=60.0, gt=0)
    """Of all its Steps and the Check, run alone without any checkpoint."""
    reason: str
    """Why this could work, in one sentence."""
    evidence: tuple[Evidence, ...] = ()
    install: str = f"{UV} pip install"
    """The shell command that installs further Python distributions in keeping with the Recipe's dependency policy:
    requirements are to follow."""


class Needed(Frozen):
    """A failure that an environment was repaired of."""

    failure: Failure
    at: StepKind
    """Kind of the Step that failed so; `test` for the Check."""
    packages: bool
    """Whether system packages were all that it took."""
    repair: str
    """In words."""


class Earlier(Frozen):
    """A verified environment of another revision of the Repo."""

    environment: str
    """Its id."""
    revision: str
    """In words: a version, or the beginning of a commit id."""
    recipe: Recipe
    strategy: str
    """As it was named there."""
    alike: bool
    """Whether its manifests declared the same."""
    needed: tuple[Needed, ...] = ()

    @property
    def before_source(self) -> tuple[Step, ...]:
        """What was run before the source tree was placed: its checkpoints are those of every revision."""
        kinds = [step.kind for step in self.recipe.steps]
        return self.recipe.steps[: kinds.index(StepKind.SOURCE)] if StepKind.SOURCE in kinds else ()

    @property
    def packages(self) -> tuple[Step, ...]:
        """The system packages that were installed once the tree was there."""
        later = self.recipe.steps[len(self.before_source) :]
        return tuple(step for step in later if step.kind is StepKind.SYSTEM and not works_in_tree(step))


class Request(Frozen):
    """What the user asked for and what can be had: the input of every strategy."""

    facts: Facts
    bases: tuple[BaseRef, ...]
    """In order of preference."""
    checks: tuple[Check, ...]
    """Ways to verify at the wanted level, most telling first. At least one."""
    source_digest: str
    """Of the source tree, for `recipe.source_step`."""
    now: datetime
    earlier: tuple[Earlier, ...] = ()
    """Environments of other revisions, nearest first."""


class Strategy(Protocol):
    """One family of routes."""

    @property
    def name(self) -> str: ...

    def propose(self, request: Request) -> Iterable[Candidate]:
        """Candidates, best first; nothing when the strategy has nothing to say of such a Repo."""
        ...
