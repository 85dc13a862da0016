"""Which requirement brings a Python module: by the Repo's own words, by well-known names, by Debian's metadata."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime

from packaging.utils import canonicalize_name

from specbuild.recipe import SOURCE_DIR
from specbuild.repairs import python_odds as odds
from specbuild.repairs.contract import Case, Source
from specbuild.repairs.python_steps import builds
from specbuild.strategies import requirements
from specbuild.strategies.imported import DISTRIBUTIONS, distribution_of
from specbuild.strategies.runners import RUNNERS

PKG_RESOURCES = "setuptools<82"
"""The last releases with `pkg_resources`."""

_RENEWED = {
    "cython": ("cython<3", datetime(2023, 7, 17, tzinfo=UTC)),
    "numpy": ("numpy<2", datetime(2024, 6, 16, tzinfo=UTC)),
}
"""Build requirements that one release changed at its root, with the day of that release by the index: sources of before
then were written for the releases below."""

_NAME = re.compile(r"[A-Za-z0-9_](?:[\w.-]*[A-Za-z0-9_])?", re.ASCII)
_TEST_MODULE = re.compile(r"(unit_?)?tests?(ing)?(_.*)?|.*_tests?|conftest|(test_?)?(helpers?|utils?|common|fixtures?)")


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
    for bringer in _found(case, module) if is_name(module) else ():
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


def is_name(text: str) -> bool:
    """Whether this can be the name of a module or a distribution: what output says is nobody's promise."""
    return bool(_NAME.fullmatch(text))


def is_own(case: Case, module: str) -> bool:
    """Whether a module belongs to the project."""
    top = module.partition(".")[0]
    return top in {fact.value for fact in case.facts.packages}


def looks_like_a_test(module: str) -> bool:
    """Whether a module is called as test modules and what lies beside them are."""
    return bool(_TEST_MODULE.fullmatch(module.partition(".")[0].lower()))


def source_folder(case: Case) -> str:
    """The folder in the sandbox that the project's own modules are imported from."""
    inner = any(fact.evidence.file.startswith("src/") for fact in case.facts.packages)
    return f"{SOURCE_DIR}/src" if inner else SOURCE_DIR


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
    if not looks_like_a_test(top):
        # What no test file imports from elsewhere may lie in the tree, and the index may have anything of that name.
        used = {need.name.partition(".")[0] for need in case.facts.test_needs}
        seen = builds(case) or top in used | RUNNERS.keys()
        chance = odds.SAME_NAME if seen else odds.SAME_NAME_UNSEEN
        yield Bringer(str(canonicalize_name(top)), f"a distribution is called as its module {top}", chance)
