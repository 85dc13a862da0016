"""What building the project itself will want: compilers, libraries, programs."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from specbuild.failures import (
    MissingBuildDependency,
    MissingDevelopmentFiles,
    MissingToolchain,
)
from specbuild.predictors.foresee import chances, compilers
from specbuild.predictors.foresee.compilers import Language
from specbuild.predictors.foresee.contract import Foreseen
from specbuild.predictors.foresee.view import View, linked
from specbuild.recipe import StepKind
from specbuild.repo.facts import Evidence

_BUILD_MODULES = (
    ("python3-numpy", "numpy", chances.UNDECLARED_NUMPY),
    ("cython3", "Cython", chances.UNDECLARED_CYTHON),
)
"""Debian package, module, and how likely a set-up script wants it where nothing is declared."""


def foresee(view: View) -> Iterable[Foreseen]:
    """Failures of the project's own build, or of its first import for what is loaded at run time."""
    if not view.bare or view.contents.project is None:
        return
    yield from _compilers(view)
    yield from _from_debian(view)


def _compilers(view: View) -> Iterator[Foreseen]:
    facts = view.facts
    required = [one for one in facts.extensions if not one.optional]
    languages = compilers.of_extensions(required) or _by_backend(view)
    evidence = tuple(one.evidence for one in required[:3])
    if not evidence and facts.build_backend:
        evidence = (facts.build_backend.evidence,)
    yield from _toolchains(view, languages, chances.OWN_COMPILER, evidence)
    optional = [one for one in facts.extensions if one.optional]
    left = sorted(set(compilers.of_extensions(optional)) - set(languages))
    yield from _toolchains(view, left, chances.OWN_OPTIONAL, tuple(one.evidence for one in optional[:3]))


def _by_backend(view: View) -> list[Language]:
    backend = view.facts.build_backend.value if view.facts.build_backend else ""
    names = (backend.partition(":")[0].partition(".")[0], *(fact.value for fact in view.facts.build_requires))
    bare = [re.split(r"[\s<>=!~;\[]", name)[0] for name in names]
    found: list[Language] = []
    for name in bare:
        found += compilers.OF_BACKENDS.get(name.lower(), ())
    return found


def _toolchains(
    view: View, languages: Iterable[Language], chance: float, evidence: tuple[Evidence, ...]
) -> Iterator[Foreseen]:
    for language in compilers.absent(view, languages):
        yield Foreseen(
            failure=MissingToolchain(language=language),
            probability=chance,
            at=view.first(StepKind.BUILD, StepKind.DEPENDENCIES),
            why=f"the project has code to compile, and the recipe installs no compiler for {language}",
            evidence=evidence,
            subject=view.own_name,
        )


def _from_debian(view: View) -> Iterator[Foreseen]:
    needs = view.needs(view.own_name) if view.own_name else None
    if needs is None:
        yield from _by_name(view)
        return
    extensions = view.facts.extensions
    by_debian = f"Debian builds {needs.source} {needs.version} with"
    missing = view.missing(needs.libraries)
    if missing and (extensions or compilers.by_debian(needs)):
        required = any(not one.optional for one in extensions) or not extensions
        chance = chances.OWN_LIBRARIES if required else chances.OWN_OPTIONAL_LIBRARIES
        if not required and view.own_name in compilers.SPEEDUPS:
            chance = chances.SPEEDUPS
        some = chances.NOT_ALL_LIBRARIES if len(missing) < len(linked(needs.libraries)) else 1.0
        yield Foreseen(
            failure=MissingDevelopmentFiles(name=view.own_name),
            probability=chance * some,
            at=view.first(StepKind.BUILD, StepKind.DEPENDENCIES),
            why=f"{by_debian} {', '.join(missing)}",
            evidence=tuple(one.evidence for one in extensions[:3]),
            subject=view.own_name,
        )
    yield from _undeclared(view, needs.packages, by_debian)


def _by_name(view: View) -> Iterator[Foreseen]:
    """Bindings that Debian does not have are mostly called after their library: `pysqlite3`, `python-foo`, `foo-py`."""
    required = [one for one in view.facts.extensions if not one.optional]
    stem = re.fullmatch(r"(?:python-?|py-?)?(.+?)(?:-?py|-python|-binding)?", view.own_name)
    if not required or stem is None or stem[1] == view.own_name:
        return
    packages = view.development(stem[1])
    if packages and not view.has(*packages):
        yield Foreseen(
            failure=MissingDevelopmentFiles(name=stem[1]),
            probability=chances.BY_NAME,
            at=view.first(StepKind.BUILD, StepKind.DEPENDENCIES),
            why=f"{view.own_name} has compiled code and is called after {stem[1]}, for which there is {packages[0]}",
            evidence=tuple(one.evidence for one in required[:3]),
            subject=view.own_name,
        )


def _undeclared(view: View, packages: Iterable[str], by_debian: str) -> Iterator[Foreseen]:
    """Modules that a set-up script imports without having a place to say so, as it was before PEP 518."""
    compiled = any(not one.optional for one in view.facts.extensions)
    if view.facts.build_requires or not compiled:
        return
    there = set[str]() if view.contents.isolated else {root.name for root in view.contents.roots}
    # uv's setting, by which builds get what they do not declare
    given = view.contents.text.partition(f"extra-build-dependencies.{view.own_name} ")[2].lower()
    for package, module, chance in _BUILD_MODULES:
        if package in packages and module.lower() not in given and module.lower() not in there:
            yield Foreseen(
                failure=MissingBuildDependency(module=module, of=view.own_name),
                probability=chance,
                at=view.first(StepKind.BUILD),
                why=f"{by_debian} {package}, and the project declares no build requirements",
            )
