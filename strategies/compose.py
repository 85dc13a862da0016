"""From the parts that a route chose to a Candidate: canonical order, odds, expected seconds."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from specbuild.recipe import UV, Check, Recipe, Step, StepKind, source_step, with_source
from specbuild.repo.facts import Evidence
from specbuild.strategies import odds, project, steps
from specbuild.strategies.contract import Candidate, Request
from specbuild.strategies.interpreters import Site


@dataclass(frozen=True, slots=True)
class Route:
    """One way to an environment on one base, before it is crossed with the Checks."""

    name: str
    site: Site
    odds: float
    reason: str
    inside: tuple[Step, ...]
    """What brings dependencies and the project. The source tree is placed before the first Step that works in it."""
    packages: tuple[str, ...] = ()
    """System packages beyond Python's."""
    before: tuple[Step, ...] = ()
    """Further Steps before those."""
    toolchain: bool = True
    """Whether uv is installed and makes the virtual environment."""
    requirements: int = 0
    """How many requirements are installed, for the expected seconds."""
    evidence: tuple[Evidence, ...] = field(default=())
    install: str = f"{UV} pip install"
    """What installs further distributions in keeping with the route."""


def candidates(request: Request, route: Route, *, checks: int = 1) -> Iterator[Candidate]:
    """The route under the first `checks` ways to verify."""
    for rank, check in enumerate(request.checks[:checks]):
        yield _candidate(request, route, check, odds.SECOND_CHECK**rank)


def _candidate(request: Request, route: Route, check: Check, factor: float) -> Candidate:
    before = [steps.system(route.site.base)]
    if route.toolchain:
        before.append(steps.toolchain())
    if route.packages:
        before.append(steps.packages(route.packages))
    path = with_source((*before, *route.before, *route.inside), source_step(request.source_digest))
    reason = f"{route.reason}; {route.site.why}"
    if factor < 1 and check.reason:
        reason += f"; {check.reason}"
    return Candidate(
        recipe=Recipe(base=route.site.base, steps=path, check=check, test_env=steps.ACTIVE),
        strategy=route.name,
        prior=odds.clamp(route.odds * route.site.fit * factor),
        expected_seconds=_seconds(request, route, path),
        reason=reason,
        evidence=tuple(dict.fromkeys((*route.evidence, *route.site.evidence)))[:8],
        install=route.install,
    )


def _seconds(request: Request, route: Route, path: tuple[Step, ...]) -> float:
    """A rough sum over kinds of Steps."""
    total = odds.SYSTEM_SECONDS + odds.TEST_SECONDS + odds.REQUIREMENT_SECONDS * route.requirements
    total += odds.TOOLCHAIN_SECONDS * route.toolchain + odds.PACKAGE_SECONDS * len(route.packages)
    compiles = any(name in ("gcc", "g++") for name in route.packages)
    total += odds.COMPILER_SECONDS * compiles
    total += odds.BUILD_SECONDS * sum(step.kind in (StepKind.BUILD, StepKind.DEPENDENCIES) for step in path)
    if project.required(request.facts):
        total += odds.COMPILE_SECONDS
    elif request.facts.extensions and compiles:
        total += odds.SPEEDUP_SECONDS
    return round(total, 1)
