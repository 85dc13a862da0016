"""The steps of the project's own Dockerfile or devcontainer, where its image is of a kind that a base can stand for."""

from __future__ import annotations

import re
from collections.abc import Iterable

from specbuild.repo.facts import DockerImage
from specbuild.strategies import odds, project, steps
from specbuild.strategies.compose import Route, candidates
from specbuild.strategies.contract import Candidate, Request
from specbuild.strategies.interpreters import Site, minor_of, sites
from specbuild.strategies.scripted import scripted_steps
from specbuild.strategies.shell_lines import Translated, translate

_ALIKE = re.compile(r"(^|/)(debian|ubuntu|python|buildpack-deps|devcontainers/(python|base))\b")


class Docker:
    """One candidate for each file whose image is Debian, Ubuntu or Python's own."""

    name = "docker"

    def propose(self, request: Request) -> Iterable[Candidate]:
        """Nothing for images of other families (Alpine, CUDA, private ones): their steps mean nothing here."""
        for image in request.facts.docker:
            script = translate(image.run)
            if _ALIKE.search(image.image) and (script.packages or script.python):
                for site in _nearest(sites(request)[0], image):
                    yield from candidates(request, _route(request, site, image, script))


def _nearest(able: tuple[Site, ...], image: DockerImage) -> tuple[Site, ...]:
    """The base whose release or interpreter the image names, else the first."""
    tag = image.image.partition(":")[2]
    for site in able:
        if (site.base.release and site.base.release in tag) or (site.python and minor_of(tag) == site.python):
            return (site,)
    return able[:1]


def _route(request: Request, site: Site, image: DockerImage, script: Translated) -> Route:
    compilers = project.compilers(request.facts)
    packages = tuple(sorted({*script.packages, *project.tools(request.facts)} - set(compilers)))
    return Route(
        name="docker",
        site=site,
        odds=odds.DOCKER,
        reason=f"what {image.evidence.file} installs on {image.image}",
        inside=scripted_steps(request, script, "install what the Dockerfile installs", mode="imports"),
        packages=compilers,
        before=(steps.fresh_packages(packages),) if packages else (),
        requirements=15,
        evidence=(image.evidence, *script.evidence),
    )
