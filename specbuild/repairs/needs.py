"""Which project is being built, and what Debian builds it with: what one missing file tells of the rest."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice

from packaging.utils import canonicalize_name

from specbuild.knowledge.kinds import BuildNeeds, Ecosystem
from specbuild.recipe import StepKind
from specbuild.repairs import apt, rust
from specbuild.repairs.contract import Case, Repair
from specbuild.strategies.project import PLAIN_COMPILER
from specbuild.strategies.requirements import name_of

_MOST = 200
"""Projects that are looked up for one Failure: half a millisecond each."""

TOGETHER = 0.86
"""Probability that all that Debian builds a project with is enough, where the missing file is of it."""

_PYTHON_HEADERS = re.compile(r"(?:lib)?python3(?:\.\d+)?(?:-all)?-dev")
_RUST = frozenset({"cargo", "rustc"})


def agreeing(case: Case, owners: Sequence[str]) -> BuildNeeds | None:
    """What Debian builds the project with that is being built, as far as one of `owners` is of it.

    Where nobody said which one is built, it is the one that needs such a package: first the Repo itself, then what it
    depends on. Packages that were renamed agree by their source.
    """
    sources = _sources(case, owners)
    for project in islice(_projects(case), _MOST):
        needs = case.knowledge.build_needs(Ecosystem.PYTHON, project, release=case.release)
        if needs and (set(owners) & set(needs.packages) or sources & _sources(case, needs.libraries)):
            return needs
    return None


def own(case: Case) -> BuildNeeds | None:
    """What Debian builds the project with that is known to be built; None if that is not known."""
    project = case.subject or (case.facts.name.value if case.facts.name and case.step.kind is StepKind.BUILD else "")
    return case.knowledge.build_needs(Ecosystem.PYTHON, project, release=case.release) if project else None


def packages(case: Case, needs: BuildNeeds) -> tuple[str, ...]:
    """Libraries, tools and compilers of a build, as they are asked for in this environment."""
    wanted = {*needs.libraries, *needs.tools, *apt.compilers(case)}
    wanted = {name for name in wanted if not _PYTHON_HEADERS.fullmatch(name)}
    if wanted & _RUST:
        wanted = (wanted - _RUST) | {"gcc", "libc6-dev", *rust.packages(case)}
    return tuple(sorted({*wanted, "python3-dev"}))


def together(
    case: Case, needs: BuildNeeds, owners: Sequence[str], *, why: str, probability: float = TOGETHER
) -> Iterator[Repair]:
    """The Repair that installs all of it, and the likeliest of `owners` unless one of them is of it.

    The same packages whichever of them is found missing first, and whether it is foreseen or seen.
    """
    wanted = packages(case, needs)
    if owners and not set(owners) & {*wanted, *_brought(case, wanted, owners[0])}:
        wanted = (*wanted, owners[0])
    yield from apt.install(
        wanted,
        case,
        name=f"build-needs:{needs.source}",
        why=f"{why}; {case.release} builds {needs.source} with {', '.join(needs.libraries + needs.tools) or 'it'}",
        probability=probability,
        source="index",
    )


def is_own(case: Case, package: str) -> bool:
    """Whether a package is Debian's build of the Repo itself, beside which nothing of the Repo would be tested."""
    name = case.facts.name
    built = case.knowledge.build_needs(Ecosystem.PYTHON, name.value, release=case.release) if name else None
    return built is not None and built.source in _sources(case, (package,))


def is_project(case: Case, name: str) -> bool:
    """Whether a name is that of the Repo, of what is built, or of a declared dependency."""
    return canonicalize_name(name) in {canonicalize_name(project) for project in _projects(case)}


def _brought(case: Case, names: Iterable[str], owner: str) -> tuple[str, ...]:
    """The owner itself, if one of the names was its own before and depends on it now."""
    same = _sources(case, (owner,))
    known = case.knowledge.packages(names, release=case.release).values()
    former = [package.name for package in known if package.source in same]
    return (owner,) if former and case.knowledge.empty(former, release=case.release) else ()


def is_more(case: Case, needs: BuildNeeds, alone: Iterable[str]) -> bool:
    """Whether the needs are more than what a Repair of one file brings anyhow."""
    return bool(set(apt.missing(packages(case, needs), case)) - {*alone, *PLAIN_COMPILER})


def _projects(case: Case) -> Iterator[str]:
    if case.subject:
        yield case.subject
    if case.facts.name:
        yield case.facts.name.value
    seen: set[str] = set()
    for dependency in case.facts.dependencies:
        name = name_of(dependency.requirement)
        if name and name not in seen:
            seen.add(name)
            yield name


def _sources(case: Case, names: Iterable[str]) -> set[str]:
    found = case.knowledge.packages(names, release=case.release)
    return {package.source for package in found.values()} - {""}
