"""What all rules of foresight look at: the facts, the Recipe's contents, and what it is going to install."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property

import anyio
from packaging.requirements import InvalidRequirement, Requirement
from packaging.utils import canonicalize_name
from packaging.version import Version

from specbuild.errors import StoreError
from specbuild.knowledge.kinds import BuildNeeds, Ecosystem, PathKind
from specbuild.predictors.foresee.contents import Contents, Root, contents_of
from specbuild.predictors.foresee.contract import Outlook
from specbuild.predictors.foresee.resolution import MOST_FOR_BUILDS, Resolution, resolve
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
    """Of what is installed."""
    builds: Resolution
    """Of what the project itself is built with."""

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

    def packaged(self, name: str) -> Version | None:
        """The version of a distribution that the Recipe asks for and Debian's own packages bring. Blocking."""
        asked = any(root.name == name for root in self.contents.roots)
        needs = self.needs(name) if asked and self.has(*_debian_names(name)) else None
        upstream = re.match(r"(?:\d+:)?(\d+(?:\.\d+)*)", needs.version) if needs else None
        return Version(upstream[1]) if upstream else None

    def development(self, library: str) -> tuple[str, ...]:
        """Packages to build against a library. Blocking."""
        try:
            return self.outlook.knowledge.development(library, release=self.outlook.release)
        except StoreError:
            return ()

    def owned(self, library: str) -> bool:
        """Whether a package is known to have a shared library. Blocking."""
        try:
            return bool(self.outlook.knowledge.owner(PathKind.SHARED_LIBRARY, library, release=self.outlook.release))
        except StoreError:
            return False

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
    view = View(outlook, contents, target, Resolution(), Resolution())
    if target is not None:
        with anyio.move_on_after(DEADLINE):
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(resolve, _installed_roots(view), contents, target, outlook.index, view.resolution)
                tasks.start_soon(
                    resolve, _build_roots(view), contents, target, outlook.index, view.builds, MOST_FOR_BUILDS
                )
    return view


def _installed_roots(view: View) -> tuple[Root, ...]:
    """What is asked of the index; what the distribution's own packages bring is there already."""
    return tuple(root for root in view.contents.roots if not view.has(*_debian_names(root.name)))


def _debian_names(name: str) -> tuple[str, ...]:
    """Names of the Debian package of a distribution, by Debian's Python policy and by its habit."""
    short = name.removeprefix("python-").removeprefix("py")
    return f"python3-{name}", f"python3-{name.removeprefix('python-')}", f"python3-{short}"


def _build_roots(view: View) -> tuple[Root, ...]:
    """What the project is built with; of a project that does not say, what installers take for it (PEP 517)."""
    policy, facts = view.contents.project, view.facts
    if policy is None or facts.build_backend is None:
        return ()
    declared = [fact.value for fact in facts.build_requires]
    if not declared and facts.build_backend.value.startswith("setuptools"):
        declared = ["setuptools"]
    return tuple(Root(Requirement(text), policy, view.first(StepKind.BUILD)) for text in declared if _name(text))


def linked(packages: Iterable[str]) -> tuple[str, ...]:
    """The development packages that a build links with."""
    return tuple(package for package in packages if not _NOT_LINKED.fullmatch(package))


def _name(requirement: str) -> str:
    try:
        return canonicalize_name(Requirement(requirement).name)
    except InvalidRequirement:
        return ""
