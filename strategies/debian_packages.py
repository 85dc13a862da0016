"""The distribution's own Python packages: versions that were tested with each other on that release."""

from __future__ import annotations

from collections.abc import Iterable

from specbuild.recipe import VENV_DIR, Step, StepKind
from specbuild.strategies import odds, project, steps
from specbuild.strategies.completion import complete
from specbuild.strategies.compose import Route, candidates
from specbuild.strategies.contract import Candidate, Request
from specbuild.strategies.interpreters import Site, sites
from specbuild.strategies.needs import Needs
from specbuild.strategies.requirements import name_of

_PIP = f"{VENV_DIR}/bin/pip install --quiet --disable-pip-version-check"
"""pip, since uv does not see the system's packages."""


class DebianPackages:
    """One candidate for each Debian base: apt's packages, and pip for what Debian lacks."""

    name = "debian-packages"

    def propose(self, request: Request) -> Iterable[Candidate]:
        """Nothing for bases of other families, or when nothing is required."""
        needs = Needs.of(request)
        if not needs.texts:
            return
        for site in sites(request)[0]:
            if site.base.name.startswith("debian:"):
                yield from candidates(request, _route(request, site, needs))


def package_of(distribution: str) -> str:
    """Debian's package of a Python distribution, by the naming of its Python policy (section 4.3)."""
    name = distribution.removeprefix("python-")
    return f"python3-{name}"


def _route(request: Request, site: Site, needs: Needs) -> Route:
    facts = request.facts
    names = {name_of(text) for text in needs.texts} - {""}
    compilers = project.compilers(facts)
    return Route(
        name="debian-packages",
        site=site,
        odds=odds.DEBIAN * (odds.COMPILER if compilers else 1.0),
        reason=f"packages of {site.base.name} for {len(names)} requirements, pip for those that it lacks",
        inside=(*_install(request, needs), *complete(needs.completed(), installer="pip")),
        packages=(*compilers, *project.tools(facts)),
        before=(steps.fresh_packages([package_of(name) for name in names]), _environment()),
        toolchain=False,
        requirements=len(names),
        evidence=(*needs.runtime.evidence, *needs.tests.evidence),
        install=_PIP,
    )


def _environment() -> Step:
    # The system's packages must be seen inside, which only pip honours when it resolves.
    run = f"python3 -m venv --clear --system-site-packages {VENV_DIR}"
    return Step(kind=StepKind.TOOLCHAIN, run=run, title="make an environment over the system's packages", cwd="/")


def _install(request: Request, needs: Needs) -> tuple[Step, ...]:
    # Not in place: pip of older releases cannot make editable installs by every backend.
    what = project.target(needs.tests.extras, in_place=False)
    env = project.version_env(request.facts)
    build = Step(
        kind=StepKind.BUILD,
        run=f"{_PIP} {what}" if project.installable(request.facts) else "true",
        title="install the project",
        env=(*steps.ACTIVE, *env),
        caches=("pip",),
    )
    if not needs.texts:
        return (build,)
    rest = f"{_PIP} {steps.words(needs.texts)}"
    return build, Step(
        kind=StepKind.DEPENDENCIES, run=rest, title="install what Debian lacks", env=steps.ACTIVE, caches=("pip",)
    )
