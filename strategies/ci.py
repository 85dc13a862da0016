"""What the project's own CI does on Linux, as far as it sets up an environment."""

from __future__ import annotations

import re
from collections.abc import Iterable

from specbuild.repo.facts import CiJob
from specbuild.strategies import odds, project, steps
from specbuild.strategies.compose import Route, candidates
from specbuild.strategies.contract import Candidate, Request
from specbuild.strategies.interpreters import Site, sites
from specbuild.strategies.scripted import scripted_steps
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
    compilers = project.compilers(facts)
    return Route(
        name="ci",
        site=site,
        odds=odds.CI * (odds.COMPILER if compilers else 1.0),
        reason=f"what {job.provider} job {job.name} installs" + _left_out(script),
        inside=scripted_steps(request, script, "install what CI installs", env=_env(job)),
        packages=compilers,
        before=(steps.fresh_packages(packages),) if packages else (),
        requirements=15,
        evidence=(job.evidence, *script.evidence),
    )


def _env(job: CiJob) -> tuple[tuple[str, str], ...]:
    """Variables of the job that are plain values and no secrets."""
    return tuple((name, value) for name, value in job.env if not _SECRET.search(name) and "$" not in value)


def _left_out(script: Translated) -> str:
    return f" ({len(script.skipped)} other lines left out)" if script.skipped else ""
