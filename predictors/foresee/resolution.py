"""Which release of each distribution a Recipe is going to install: by the rules of resolvers, without their search.

Exact for what is pinned. Else the newest release that the requirements known so far, the interpreter and the Recipe's
dates admit; requirements of requirements are followed as far as the index has their metadata by themselves (PEP 658).
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from email.parser import HeaderParser
from functools import partial
from typing import TypeVar

import anyio
from packaging.requirements import InvalidRequirement, Requirement
from packaging.specifiers import SpecifierSet
from packaging.utils import canonicalize_name

from specbuild.knowledge.releases import Release
from specbuild.predictors.foresee.contents import Contents, Policy, Root
from specbuild.predictors.foresee.contract import Releases
from specbuild.predictors.foresee.target import Target
from specbuild.recipe import StepKind
from specbuild.repo.index_page import IndexFile

T = TypeVar("T")

MOST_REQUESTS = 45
"""Questions to the index for what one Candidate installs."""

MOST_FOR_BUILDS = 15
"""The same for what it is built with."""

AT_ONCE = 8
"""Questions that are under way together."""

DEPTH = 2
"""How far requirements of requirements are followed."""


@dataclass(frozen=True, slots=True)
class Wanted:
    """What is asked of one distribution, by all that are known to ask."""

    name: str
    """Normalised."""
    specifier: SpecifierSet
    policy: Policy
    at: StepKind
    extras: frozenset[str] = frozenset()
    asked_by: str = ""
    """The distribution that asks; empty if it is the Recipe itself."""
    url: bool = False
    """Whether it is fetched from elsewhere."""

    def and_also(self, other: Wanted) -> Wanted:
        """Both together, under the policy of the first."""
        return replace(self, specifier=self.specifier & other.specifier, extras=self.extras | other.extras)


@dataclass(frozen=True, slots=True)
class Chosen:
    """The release that will be installed, or that there is none."""

    wanted: Wanted
    releases: tuple[Release, ...]
    """All that the index has."""
    release: Release | None
    """None if no release will do."""
    wheel: IndexFile | None = None
    """One that the interpreter takes; None for what is built from source."""

    @property
    def built(self) -> bool:
        """Whether it is built from source."""
        return self.release is not None and self.wheel is None

    @property
    def pinned(self) -> bool:
        """Whether the release is certain."""
        return any(spec.operator in ("==", "===") and "*" not in spec.version for spec in self.wanted.specifier)


@dataclass(slots=True)
class Resolution:
    """What is known of all that will be installed; grows while the index answers."""

    chosen: dict[str, Chosen] = field(default_factory=dict[str, Chosen])
    """By normalised name; only what the index knows."""

    def __iter__(self) -> Iterator[Chosen]:
        return iter(tuple(self.chosen.values()))


async def resolve(
    roots: Iterable[Root],
    contents: Contents,
    target: Target,
    index: Releases,
    into: Resolution,
    most: int = MOST_REQUESTS,
) -> None:
    """Fill `into` with what is installed for the roots, level by level: stopped early, it has what was known.

    At most `most` questions are asked.
    """
    budget = _Budget(index, most)
    level = _merged(
        Wanted(
            root.name,
            root.requirement.specifier,
            root.policy,
            root.at,
            frozenset(root.requirement.extras),
            url=root.requirement.url is not None,
        )
        for root in roots
        if target.applies(root.requirement)
    )
    for depth in range(DEPTH + 1):
        level = [wanted for wanted in level if wanted.name not in into.chosen and not wanted.url]
        await _each(partial(_choose_one, contents, target, budget, into), level)
        if depth == DEPTH:
            return
        found: list[Wanted] = []
        parents = [into.chosen[wanted.name] for wanted in level if wanted.name in into.chosen]
        await _each(partial(_requirements_of, target, budget, found), parents)
        level = _merged(found)


def choose(wanted: Wanted, releases: Sequence[Release], contents: Contents, target: Target) -> Chosen:
    """What resolvers would take of these releases."""
    fitting = [one for one in releases if _admitted(one, wanted, contents, target)]
    final = [one for one in fitting if not one.version.is_prerelease] or fitting
    if wanted.policy.lowest and not wanted.asked_by:
        final = final[::-1]
    for release in final:
        usable = [file for file in release.files if _usable(file, wanted, target)]
        wheels = [file for file in usable if file.name.endswith(".whl") and target.runs(file)]
        if wheels and not wanted.policy.from_source(wanted.name):
            return Chosen(wanted, tuple(releases), release, wheels[0])
        if release.sdist in usable:
            return Chosen(wanted, tuple(releases), release)
    return Chosen(wanted, tuple(releases), None)


def _admitted(release: Release, wanted: Wanted, contents: Contents, target: Target) -> bool:
    # Bounds first: of hundreds of releases few pass them.
    return (
        wanted.specifier.contains(release.version, prereleases=True)
        and contents.allows(wanted.name, release.version)
        and any(_usable(file, wanted, target) for file in release.files)
    )


def _usable(file: IndexFile, wanted: Wanted, target: Target) -> bool:
    until = wanted.policy.until(wanted.name)
    # uv takes nothing without a date when dates count.
    in_time = until is None or (file.uploaded is not None and file.uploaded < until)
    exact = any(spec.operator in ("==", "===") for spec in wanted.specifier)
    return in_time and (file.yanked is None or exact) and target.allowed_by(file.requires_python)


class _Budget:
    def __init__(self, index: Releases, most: int) -> None:
        self.index = index
        self.left = most

    def spend(self) -> bool:
        self.left -= 1
        return self.left >= 0


async def _choose_one(contents: Contents, target: Target, budget: _Budget, into: Resolution, wanted: Wanted) -> None:
    if budget.spend() and (releases := await budget.index.releases(wanted.name)):
        into.chosen[wanted.name] = choose(wanted, tuple(releases), contents, target)


async def _requirements_of(target: Target, budget: _Budget, found: list[Wanted], chosen: Chosen) -> None:
    if chosen.wheel is None or not budget.spend():
        return
    text = await budget.index.metadata(chosen.wheel)
    for value in HeaderParser().parsestr(text or "").get_all("Requires-Dist", []):
        try:
            requirement = Requirement(value)
        except InvalidRequirement:
            continue
        if target.applies(requirement, chosen.wanted.extras):
            name = canonicalize_name(requirement.name)
            asks = Wanted(name, requirement.specifier, chosen.wanted.policy, chosen.wanted.at)
            found.append(
                replace(
                    asks, extras=frozenset(requirement.extras), asked_by=chosen.wanted.name, url=bool(requirement.url)
                )
            )


def _merged(asked: Iterable[Wanted]) -> list[Wanted]:
    merged: dict[str, Wanted] = {}
    for wanted in asked:
        known = merged.get(wanted.name)
        merged[wanted.name] = known.and_also(wanted) if known else wanted
    return list(merged.values())


async def _each(act: Callable[[T], Awaitable[None]], items: Iterable[T]) -> None:
    limit = anyio.CapacityLimiter(AT_ONCE)

    async def limited(item: T) -> None:
        async with limit:
            await act(item)

    async with anyio.create_task_group() as tasks:
        for item in items:
            tasks.start_soon(limited, item)
