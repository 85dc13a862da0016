"""Which requirement brings a Python module: by the Repo's own words, by well-known names, by Debian's metadata."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime

from packaging.utils import canonicalize_name

from specbuild.repairs import python_odds as odds
from specbuild.repairs.contract import Case, Source
from specbuild.strategies import requirements
from specbuild.strategies.imported import DISTRIBUTIONS, distribution_of

PKG_RESOURCES = "setuptools<82"
"""The last releases with `pkg_resources`."""

_RENEWED = {
    "cython": ("cython<3", datetime(2023, 7, 17, tzinfo=UTC)),
    "numpy": ("numpy<2", datetime(2024, 6, 16, tzinfo=UTC)),
}
"""Build requirements that one release changed at its root, with the day of that release by the index: sources of before
then were written for the releases below."""


@dataclass(frozen=True, slots=True)
class Bringer:
    """A requirement that may bring a module."""

    requirement: str
    why: str
    probability: float
    source: Source = "rule"

    @property
    def name(self) -> str:
        """Of the distribution, normalised."""
        return requirements.name_of(self.requirement)


def bringers(case: Case, module: str) -> tuple[Bringer, ...]:
    """Rivals to have a module by, likeliest first, one a distribution."""
    found: dict[str, Bringer] = {}
    for bringer in _found(case, module):
        found.setdefault(bringer.name, bringer)
    return tuple(sorted(found.values(), key=lambda bringer: -bringer.probability))


def distribution(case: Case, module: str) -> str:
    """The normalised name of the distribution that brings a module, likeliest."""
    first = next(iter(bringers(case, module)), None)
    return first.name if first else str(canonicalize_name(module.partition(".")[0]))


def for_build(case: Case, bringer: Bringer) -> str:
    """The requirement as a build of the revision's time means it."""
    renewed = _RENEWED.get(bringer.requirement)
    revision = case.facts.revision_date
    return renewed[0] if renewed and revision and revision.value < renewed[1] else bringer.requirement


def is_own(case: Case, module: str) -> bool:
    """Whether a module belongs to the project."""
    top = module.partition(".")[0]
    return top in {fact.value for fact in case.facts.packages}


def _found(case: Case, module: str) -> Iterator[Bringer]:
    packaged = case.knowledge.distributions(module, release=case.release)
    top = module.partition(".")[0]
    by_name = distribution_of(module)
    known = module in DISTRIBUTIONS or top in DISTRIBUTIONS
    candidates = dict.fromkeys((requirements.name_of(by_name), *packaged, str(canonicalize_name(top))))
    declared = {requirements.name_of(one.requirement): one for one in case.facts.dependencies}
    for name in candidates:
        if name in declared and name != "setuptools":
            stands = declared[name].evidence.file
            text = requirements.as_declared(case.facts, name)
            yield Bringer(text, f"{stands} names {name}, which brings {module}", odds.DECLARED, "facts")
    if known:
        yield Bringer(by_name, f"{module} is part of {requirements.name_of(by_name)}", odds.KNOWN_NAME)
    for rank, name in enumerate(packaged[:3]):
        chance = odds.PACKAGED * odds.RIVAL**rank
        yield Bringer(name, f"{case.release}'s package of {module} holds {name}", chance, "index")
    yield Bringer(str(canonicalize_name(top)), f"a distribution is called as its module {top}", odds.SAME_NAME)
