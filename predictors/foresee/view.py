"""What all rules of foresight look at: the facts, the Recipe's contents, and what it is going to install."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property

import anyio
from packaging.requirements import InvalidRequirement, Requirement
from packaging.utils import canonicalize_name

from specbuild.errors import StoreError
from specbuild.knowledge.kinds import BuildNeeds, Ecosystem
from specbuild.predictors.foresee.contents import Contents, contents_of
from specbuild.predictors.foresee.contract import Outlook
from specbuild.predictors.foresee.resolution import Resolution, resolve
from specbuild.predictors.foresee.target import Target
from specbuild.recipe import StepKind
from specbuild.repo.facts import Evidence, Facts

DEADLINE = 6.0
"""Seconds for all questions to the index; what is known by then has to do."""

_BARE = ("debian:", "ubuntu:")
"""Bases that hold nothing but what the Recipe installs."""

_NOT_LINKED = re.compile(r"(lib)?python3?[\d.]*(-all)?-dev|dpkg-dev|.*-dbg|mpi-default-dev|libjs-.*|linux-libc-dev")
"""Development packages that the interpreter itself, packaging or one flavour of a build is in want of."""


@dataclass(frozen=True)
class View:
    """One Candidate, looked at."""

    outlook: Outlook
    contents: Contents
    target: Target | None
    resolution: Resolution

    @property
    def facts(self) -> Facts:
        """Of the Repo."""
        return self.outlook.facts

    @property
    def bare(self) -> bool:
        """Whether what the Recipe installs is all that there is: only then can anything be missing for sure."""
        return self.outlook.candidate.recipe.base.name.startswith(_BARE)

    @cached_property
    def own_name(self) -> str:
        """Of the project, normalised; empty if it is not known."""
        return canonicalize_name(self.facts.name.value) if self.facts.name else ""

    def needs(self, project: str) -> BuildNeeds | None:
        """What Debian builds a Python project with; None if nobody knows. Blocking."""
        try:
            return self.outlook.knowledge.build_needs(Ecosystem.PYTHON, project, release=self.outlook.release)
        except StoreError:  # a damaged index is told of where it is made anew
            return None

    def has(self, *packages: str) -> bool:
        """Whether the Recipe installs one of these system packages."""
        return not self.contents.packages.isdisjoint(packages)

    def missing(self, packages: Iterable[str]) -> tuple[str, ...]:
        """Those that the Recipe does not install, without what nothing links with."""
        return tuple(p for p in linked(packages) if p not in self.contents.packages)

    def named(self, name: str) -> tuple[Evidence, ...]:
        """Where the project asks for a distribution."""
        return tuple(dict.fromkeys(d.evidence for d in self.facts.dependencies if _name(d.requirement) == name))[:3]

    def first(self, *kinds: StepKind) -> StepKind:
        """The first of these kinds that the Recipe has; `test` if it has none of them."""
        present = {step.kind for step in self.outlook.candidate.recipe.steps}
        return next((kind for kind in kinds if kind in present), StepKind.TEST)


async def look(outlook: Outlook) -> View:
    """Ask the index, for `DEADLINE` at most, about all that the Recipe installs."""
    contents = contents_of(outlook.candidate.recipe, outlook.facts)
    target = Target.of(outlook.candidate.recipe.base)
    resolution = Resolution()
    if target is not None:
        with anyio.move_on_after(DEADLINE):
            await resolve(contents, target, outlook.index, resolution)
    return View(outlook, contents, target, resolution)


def linked(packages: Iterable[str]) -> tuple[str, ...]:
    """The development packages that a build links with."""
    return tuple(package for package in packages if not _NOT_LINKED.fullmatch(package))


def _name(requirement: str) -> str:
    try:
        return canonicalize_name(Requirement(requirement).name)
    except InvalidRequirement:
        return ""
