"""What the project's own CI does on Linux, as far as it sets up an environment."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from specbuild.recipe import UV, Step, StepKind
from specbuild.repo.facts import CiJob
from specbuild.strategies import odds, project, steps
from specbuild.strategies.completion import complete
from specbuild.strategies.compose import Route, candidates
from specbuild.strategies.contract import Candidate, Request
from specbuild.strategies.declared import newest_steps
from specbuild.strategies.interpreters import Site, sites
from specbuild.strategies.needs import Needs
from specbuild.strategies.shell_lines import Translated, translate

_MOST_JOBS = 2
"""Jobs of one project differ little once linters are left out."""

_SECRET = re.compile(r"TOKEN|SECRET|PASSWORD|KEY|\$\{?\{?|^CI$|^GITHUB_")


class Ci:
    """One candidate for each of the likeliest jobs, on each base."""

    name = "ci"

    def propose(self, request: Request) -> Iterable[Candidate]:
        """Jobs that run tests; those that install nothing have nothing to say."""
        jobs = [job for job in request.facts.ci if job.tests][:_MOST_JOBS]
        for job in jobs:
            script = translate(job.run)
            if script.python or script.packages:
                for site in sites(request)[0]:
                    yield from candidates(request, _route(request, site, job, script))


def _route(request: Request, site: Site, job: CiJob, script: Translated) -> Route:
    facts = request.facts
    packages = tuple(sorted({*script.packages, *project.tools(facts)} - set(project.compilers(facts))))
    inside = tuple(_translated(request, script, _env(job))) if script.python else newest_steps(request)
    compilers = project.compilers(facts)
    return Route(
        name="ci",
        site=site,
        odds=odds.CI * (odds.COMPILER if compilers else 1.0),
        reason=f"what {job.provider} job {job.name} installs" + _left_out(script),
        inside=inside,
        packages=compilers,
        before=(steps.fresh_packages(packages),) if packages else (),
        requirements=15,
        evidence=(job.evidence, *script.evidence),
    )


def _translated(request: Request, script: Translated, env: tuple[tuple[str, str], ...]) -> Iterator[Step]:
    """The lines as they stand, with pip in the project's environment, then what the tests lack yet."""
    version = project.version_env(request.facts)
    run = "\n".join((f"{UV} pip install --quiet pip setuptools wheel", *script.lines))
    merged = tuple({**dict(env), **dict(version)}.items())
    # One Step, since `export` and `cd` of a script hold for its later lines; builds of the tree are among them.
    yield steps.uv(run, "install what CI installs", kind=StepKind.BUILD, env=merged)
    needs = Needs.of(request)
    rest = (
        f"{UV} pip install --no-cache {steps.words(needs.tests.requirements)}" if needs.tests.requirements else "true"
    )
    what = project.target((), in_place=project.editable(request.facts))
    yield steps.uv(rest, "install what the tests need", kind=StepKind.BUILD)
    yield steps.uv(f"{UV} pip install --no-cache {what}", "install the project", kind=StepKind.BUILD, env=version)
    yield complete("plugins")


def _env(job: CiJob) -> tuple[tuple[str, str], ...]:
    """Variables of the job that are plain values and no secrets."""
    return tuple((name, value) for name, value in job.env if not _SECRET.search(name) and "$" not in value)


def _left_out(script: Translated) -> str:
    return f" ({len(script.skipped)} other lines left out)" if script.skipped else ""
