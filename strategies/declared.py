"""What the project declares, with the newest releases, or with the lowest that are allowed."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from specbuild.recipe import UV, Step
from specbuild.strategies import odds, project, steps
from specbuild.strategies.completion import complete
from specbuild.strategies.contract import Candidate, Request
from specbuild.strategies.interpreters import Site, sites
from specbuild.strategies.needs import Mode, Needs
from specbuild.strategies.variants import NOTES, Variant, build, crossed, install, listing


class Declared:
    """What is declared, with the newest releases that the index has."""

    name = "declared"

    def propose(self, request: Request) -> Iterable[Candidate]:
        """One candidate a base, and rivals that differ in what the tests get."""
        for needs in Needs.choices(request):
            for site in sites(request)[0]:
                for variant in _newest(request, site, needs):
                    yield from crossed(request, needs, variant)


class LowestDirect:
    """The lowest versions that the declared ranges allow."""

    name = "lowest-direct"

    def propose(self, request: Request) -> Iterable[Candidate]:
        """One candidate, on the first base, where the project declares lower bounds."""
        needs = Needs.of(request)
        able = sites(request)[0]
        if able and any(">=" in text or "~=" in text for text in needs.runtime.requirements):
            variant = Variant(
                name=self.name,
                site=able[0],
                odds=odds.LOWEST,
                reason="the lowest versions that the declared ranges allow",
                inside=_lowest_steps(request, needs),
            )
            yield from crossed(request, needs, variant)


def newest_steps(request: Request, mode: Mode | None = None, needs: Needs | None = None) -> tuple[Step, ...]:
    """The Steps inside the tree that install what is declared, newest, and complete it for the tests."""
    chosen = needs or Needs.of(request)
    return (
        steps.uv(install(chosen.texts), "install the newest requirements", outside=chosen.outside),
        *build(request, chosen, in_place=project.editable(request.facts)),
        *complete(chosen.completed(mode)),
    )


def _newest(request: Request, site: Site, needs: Needs) -> Iterator[Variant]:
    revision = request.facts.revision_date
    chance = odds.newest(revision.value if revision else None, request.now)
    for rank, (mode, kept) in enumerate(needs.modes):
        yield Variant(
            name=Declared.name,
            site=site,
            odds=chance * kept,
            reason="the declared requirements in their newest releases",
            inside=newest_steps(request, mode, needs),
            mode=mode,
            primary=not rank,
        )


def _lowest_steps(request: Request, needs: Needs) -> tuple[Step, ...]:
    limits = f"-c {NOTES}/limits.txt"
    # Of the run-time requirements alone: the lowest pytest that is allowed is nobody's claim.
    resolve = f"{UV} pip compile --quiet --resolution lowest-direct {NOTES}/runtime.in -o {NOTES}/limits.txt"
    run = "\n".join((listing("runtime", needs.runtime.requirements), resolve, install(needs.texts, limits)))
    return (
        steps.uv(run, "install the lowest versions that are allowed", outside=needs.outside),
        *build(request, needs, limits, in_place=project.editable(request.facts)),
    )
