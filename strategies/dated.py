"""What the project declares, resolved as of the revision's date.

Run-time requirements are of that day. Test tools are too, unless the interpreter is younger: then they are of the
time by which it was well supported, since older ones have no wheels for it; a rival has the oldest pytest that runs
on it all the same, since suites break on newer ones. Build requirements must not be cut by the
date, or an old project loses `setuptools>=40.8` and editable installs; but neither can today's setuptools build what
needs `use_2to3`. So they get an era of their own.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime

from specbuild.recipe import UV, Step
from specbuild.strategies import odds, project, requirements, steps
from specbuild.strategies.completion import complete
from specbuild.strategies.contract import Candidate, Request
from specbuild.strategies.interpreters import Site, sites
from specbuild.strategies.needs import Mode, Needs
from specbuild.strategies.variants import NOTES, Variant, build, crossed, install, listing

EDITABLE_SETUPTOOLS = datetime(2022, 8, 12, tzinfo=UTC)
"""The day after setuptools 64 came, the first that uv can ask for an editable install (PEP 660)."""

OLDEST_SETUPTOOLS = datetime(2020, 3, 1, tzinfo=UTC)
"""setuptools 45.2, the newest on that day, still knows `Feature` (dropped by 46) and `use_2to3` (dropped by 58), and
runs on Python 3.5 to 3.11; releases before 41.1 break on 3.9."""

OLDEST_SETUPTOOLS_312 = datetime(2023, 6, 1, tzinfo=UTC)
"""setuptools 67.8, the newest on that day, runs on Python 3.12, where `pkgutil.ImpImporter` is gone."""

OLDEST_PYTEST = {
    **dict.fromkeys(("3.10", "3.11", "3.12", "3.13"), datetime(2021, 5, 5, tzinfo=UTC)),
    "3.14": datetime(2025, 6, 3, tzinfo=UTC),
}
"""The day after the release of the oldest pytest that rewrites assertions and runs on an interpreter: 6.2.4, found by
trying 21 releases; for 3.14 the first that names it, 8.4. On 3.6 to 3.9 even those of 2017 run."""

SETTLED_YEARS = 0.25
"""By how many years the oldest pytest must be older than the settled one until it is worth a rival."""

SOURCES_YEARS = 0.5
"""By how many years the interpreter must be younger than the revision until many of its dependencies have no wheel."""

_BUILD_TOOLS = ("pip", "setuptools", "wheel")

_PYTEST = ("attrs", "pluggy", "pytest")
"""pytest and what its releases do not bound enough: before 4.1 they break on newer attrs. None needs a wheel. Not py,
which only since 1.11 runs on Python 3.11."""


@dataclass(frozen=True, slots=True)
class Era:
    """The dates of one variant, and its odds."""

    runtime: datetime
    """When the run-time requirements are from."""
    tests: datetime
    """When the test tools are from."""
    build: datetime | None
    """When setuptools and its like are from; None for the newest."""
    odds: float
    tag: str = ""
    """What it adds to the name."""
    pytest: datetime | None = None
    """When pytest is from, if it is older than the other test tools."""

    @property
    def editable(self) -> bool:
        """Whether setuptools of that era can make editable installs."""
        return self.build is None or self.build >= EDITABLE_SETUPTOOLS


class Dated:
    """What is declared, resolved as of the revision's date."""

    name = "declared@"

    def propose(self, request: Request) -> Iterable[Candidate]:
        """Variants by the era of the build tools and by what the tests get, for each base."""
        revision = request.facts.revision_date
        if revision is None or revision.value > request.now:
            return
        for needs in Needs.choices(request):
            for site in sites(request)[0]:
                for variant in _variants(request, site, needs, revision.value):
                    yield from crossed(request, needs, variant)


def _variants(request: Request, site: Site, needs: Needs, revision: datetime) -> Iterator[Variant]:
    main, *others = _eras(site, revision)
    for rank, (mode, kept) in enumerate(needs.modes):
        yield _variant(request, site, needs, main, mode, kept, primary=not rank)
    for era in others:
        yield _variant(request, site, needs, era, *needs.modes[0])


def _eras(site: Site, revision: datetime) -> Iterator[Era]:
    """The day itself, with the likelier build tools first; and the day by which the interpreter was supported."""
    settled = site.settled(revision)
    lag = odds.years(revision, settled)
    chance = odds.DATED * odds.DATED_TOO_OLD**lag
    own = max(revision, _oldest_setuptools(site))
    oldest = max(revision, OLDEST_PYTEST.get(site.python, revision))
    # Until editable installs came, setuptools dropped more than it gained; since then today's is as good as any.
    old = own < EDITABLE_SETUPTOOLS
    yield Era(revision, settled, own if old else None, chance)
    if odds.years(oldest, settled) > SETTLED_YEARS:
        yield Era(revision, settled, own if old else None, chance * odds.OLD_PYTEST, "+old-pytest", oldest)
    rival = chance * odds.OTHER_BUILD_TOOLS
    yield Era(revision, settled, None if old else own, rival, "+new-build" if old else "+old-build")
    if lag > SOURCES_YEARS:
        # Releases of the revision's own time may not run on a younger interpreter; these do, if the project bears them.
        build = max(settled, _oldest_setuptools(site))
        yield Era(settled, settled, build if build < EDITABLE_SETUPTOOLS else None, odds.newest(revision, settled))


def _oldest_setuptools(site: Site) -> datetime:
    return OLDEST_SETUPTOOLS_312 if site.python in ("3.12", "3.13", "3.14") else OLDEST_SETUPTOOLS


def _variant(
    request: Request, site: Site, needs: Needs, era: Era, mode: Mode, kept: float, *, primary: bool = False
) -> Variant:
    day = era.runtime.date().isoformat()
    return Variant(
        name=f"declared@{day}{era.tag}",
        site=site,
        odds=era.odds * kept,
        reason=_reason(era, day),
        inside=_inside(request, needs, era, mode),
        options=" ".join((_cut(era.tests, era, request), *_older_pytest(era))),
        mode=mode,
        primary=primary,
        sources=odds.years(era.runtime, era.tests) > SOURCES_YEARS,
    )


def _reason(era: Era, day: str) -> str:
    parts = [f"the declared requirements as they were on {day}"]
    if era.tests > era.runtime:
        parts.append(f"test tools as of {era.tests.date().isoformat()} for this Python")
    if era.pytest:
        parts.append(f"pytest as of {era.pytest.date().isoformat()}")
    if era.build:
        parts.append(f"build tools as of {era.build.date().isoformat()}")
    return ", ".join(parts)


def _inside(request: Request, needs: Needs, era: Era, mode: Mode) -> tuple[Step, ...]:
    facts, day = request.facts, era.runtime.date().isoformat()
    options = " ".join((_cut(era.tests, era, request), *_older_pytest(era)))
    lines = list[str]()
    if era.tests > era.runtime and needs.runtime.requirements:
        resolve = f"{UV} pip compile --quiet {_cut(era.runtime, era, request)}"
        lines += [listing("runtime", needs.runtime.requirements)]
        lines += [f"{resolve} {NOTES}/runtime.in -o {NOTES}/limits.txt"]
        options += f" -c {NOTES}/limits.txt"
    in_place = project.editable(facts) and (era.editable or not project.uses_setuptools(facts))
    lines.append(install(needs.texts, options))
    return (
        steps.uv("\n".join(lines), f"install the requirements as of {day}", outside=needs.outside),
        *build(request, needs, options, in_place=in_place),
        *complete(needs.completed(mode), options=options),
    )


def _cut(day: datetime, era: Era, request: Request) -> str:
    """uv's options for a date, from which what builds need is exempt, or has the era of the build tools."""
    return " ".join((f"--exclude-newer {steps.end_of(day)}", *_exempt(era, request)))


def _exempt(era: Era, request: Request) -> Iterator[str]:
    declared = {requirements.name_of(fact.value) for fact in request.facts.build_requires} - {""}
    names = _BUILD_TOOLS if era.build else sorted({*_BUILD_TOOLS, *declared})
    until = steps.end_of(era.build) if era.build else "false"
    for name in names:
        yield f"--exclude-newer-package {name}={until}"


def _older_pytest(era: Era) -> Iterator[str]:
    if era.pytest:
        until = steps.end_of(era.pytest)
        yield from (f"--exclude-newer-package {name}={until}" for name in _PYTEST)
