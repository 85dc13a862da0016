"""What the declared routes have in common: names, odds and system packages of their variants, and uv's commands."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from specbuild.recipe import UV, Step, StepKind
from specbuild.repo.facts import Evidence, Facts
from specbuild.strategies import odds, project, steps
from specbuild.strategies.compose import Route, candidates
from specbuild.strategies.contract import Candidate, Request
from specbuild.strategies.imported import some
from specbuild.strategies.interpreters import Site
from specbuild.strategies.needs import Mode, Needs
from specbuild.strategies.runners import CROSSED

NOTES = "/opt/specbuild"
"""Where files lie that one command makes for another."""


@dataclass(frozen=True, slots=True)
class Variant:
    """One variant of a declared route, before compilers are thought of."""

    name: str
    site: Site
    odds: float
    reason: str
    inside: tuple[Step, ...]
    mode: Mode = "plain"
    primary: bool = False
    """Whether it is the likeliest of its strategy on its base, which is worth rivals that differ in little else."""
    options: str = ""
    """Options of `uv pip install` that hold its policy: a date, a file of constraints."""
    sources: bool = False
    """Whether dependencies are likely to come as sources that must be compiled."""


def crossed(request: Request, needs: Needs, variant: Variant) -> Iterator[Candidate]:
    """The variant with and without compilers, whichever can pay, crossed with the Checks."""
    modules = needs.completed(variant.mode)
    reason = variant.reason
    reason += f", completed by what the test files import ({some(modules)})" if modules else ""
    reason += ", releases in place of what is fetched from elsewhere" if needs.tag else ""
    for rank, built in enumerate(_compilers(request.facts, variant)):
        route = Route(
            name=variant.name + needs.tag + ("+imports" if modules else "") + built.tag,
            site=variant.site,
            odds=variant.odds * built.kept * needs.kept,
            reason=f"{reason}{built.why}; for the tests: {needs.tests.why}",
            inside=variant.inside,
            packages=(*built.packages, *project.tools(request.facts)),
            requirements=len(needs.texts) + len(modules),
            evidence=_evidence(request.facts, needs, built.packages),
            install=f"{UV} pip install {variant.options}".rstrip(),
        )
        yield from candidates(request, route, checks=CROSSED if variant.primary and not rank else 1)


@dataclass(frozen=True, slots=True)
class _Built:
    """What is there to compile with, and what that does to the odds."""

    tag: str
    packages: tuple[str, ...]
    kept: float
    why: str = ""


def _compilers(facts: Facts, variant: Variant) -> Iterator[_Built]:
    """The likeliest first."""
    packages, what = project.compilers(facts), _code(facts)
    if project.required(facts):
        yield _Built("", packages, odds.COMPILER, f", with compilers for {what}")
    elif facts.extensions:
        yield _Built("+compiler", packages, odds.OPTIONAL_BUILT, f", with compilers for {what}, which may be left out")
        if variant.primary:
            yield _Built("", (), odds.OPTIONAL_LEFT_OUT, f", without compilers, {what} being left out")
    else:
        yield _Built("", (), 1.0)
        if variant.primary and variant.sources:
            yield _Built("+compiler", project.PLAIN_COMPILER, odds.SOURCES_COMPILED, ", with compilers")


def _code(facts: Facts) -> str:
    """The compiled code of the project, in words."""
    languages = " and ".join(dict.fromkeys(extension.language for extension in facts.extensions))
    return f"the {languages} code of {facts.extensions[0].evidence.file}" if facts.extensions else ""


def _evidence(facts: Facts, needs: Needs, packages: tuple[str, ...]) -> tuple[Evidence, ...]:
    compiled = tuple(extension.evidence for extension in facts.extensions[:2]) if packages else ()
    return (*compiled, *needs.runtime.evidence, *needs.tests.evidence)


def install(texts: tuple[str, ...], options: str = "") -> str:
    """The command that installs these requirements."""
    if not texts:
        return "true"
    return " ".join(part for part in (f"{UV} pip install", options, steps.words(texts)) if part)


def listing(name: str, texts: tuple[str, ...]) -> str:
    """The commands that write requirements to a file in `NOTES`."""
    return f"mkdir -p {NOTES}\nprintf '%s\\n' {steps.words(texts)} > {NOTES}/{name}.in"


def build(request: Request, needs: Needs, options: str = "", *, in_place: bool) -> tuple[Step, ...]:
    """The Step that installs the project itself, and what its metadata asks for beyond what was declared.

    None for an application that is run from its tree.
    """
    if not project.installable(request.facts):
        return ()
    what = project.target(needs.tests.extras, in_place=in_place)
    run = " ".join(part for part in (f"{UV} pip install --no-cache", options, what) if part)
    return (steps.uv(run, "install the project", kind=StepKind.BUILD, env=project.version_env(request.facts)),)
