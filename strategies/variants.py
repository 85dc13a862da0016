"""What the declared routes have in common: names, odds and system packages of their variants, and uv's commands."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from specbuild.recipe import UV, Step, StepKind
from specbuild.repo.facts import Evidence, Facts
from specbuild.strategies import odds, project, steps
from specbuild.strategies.completion import Mode
from specbuild.strategies.compose import Route, candidates
from specbuild.strategies.contract import Candidate, Request
from specbuild.strategies.interpreters import Site
from specbuild.strategies.needs import Needs

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
    mode: Mode = "plugins"
    primary: bool = False
    """Whether it is the likeliest of its strategy on its base, which is worth rivals that differ in little else."""
    sources: bool = False
    """Whether dependencies are likely to come as sources that must be compiled."""


def crossed(request: Request, needs: Needs, variant: Variant) -> Iterator[Candidate]:
    """The variant without and with compilers, whichever can pay, crossed with the Checks."""
    suffix = "+imports" if variant.mode == "imports" else ""
    reason = f"{variant.reason}, completed by what the test files import" if suffix else variant.reason
    reason += ", releases in place of what is fetched from elsewhere" if needs.tag else ""
    for tag, packages, kept in _compilers(request.facts, variant):
        route = Route(
            name=variant.name + needs.tag + suffix + tag,
            site=variant.site,
            odds=variant.odds * kept * needs.kept,
            reason=f"{reason}{', with compilers' if tag else ''}; for the tests: {needs.tests.why}",
            inside=variant.inside,
            packages=(*packages, *project.tools(request.facts)),
            requirements=len(needs.texts),
            evidence=_evidence(request.facts, needs, packages),
        )
        yield from candidates(request, route, checks=2 if variant.primary and not tag else 1)


def _compilers(facts: Facts, variant: Variant) -> Iterator[tuple[str, tuple[str, ...], float]]:
    """Suffix of the name, system packages, odds kept."""
    if project.required(facts):
        yield "", project.compilers(facts), odds.COMPILER
    elif facts.extensions:
        yield "", (), odds.OPTIONAL_LEFT_OUT
        if variant.primary:
            yield "+compiler", project.all_compilers(facts), odds.OPTIONAL_BUILT
    else:
        yield "", (), 1.0
        if variant.primary and variant.sources:
            yield "+compiler", project.PLAIN_COMPILER, odds.SOURCES_COMPILED


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
