"""What the project declares: with the newest releases, with those of the revision's date, with the lowest allowed."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from specbuild.recipe import UV, Level, Step, StepKind
from specbuild.strategies import odds, project, requirements, steps
from specbuild.strategies.completion import Mode, complete
from specbuild.strategies.compose import Route, candidates
from specbuild.strategies.contract import Candidate, Request
from specbuild.strategies.interpreters import Site, minor_of, sites
from specbuild.strategies.requirements import Wanted

EDITABLE_SETUPTOOLS = datetime(2022, 8, 12, tzinfo=UTC)
"""The day after setuptools 64 came, the first that uv can ask for an editable install (PEP 660)."""

OLDEST_SETUPTOOLS = datetime(2020, 3, 1, tzinfo=UTC)
"""setuptools 45.2, the newest on that day, still knows `Feature` and `use_2to3`, and runs on Python 3.5 to 3.11;
older ones break on 3.9."""

OLDEST_SETUPTOOLS_312 = datetime(2023, 6, 1, tzinfo=UTC)
"""setuptools 67, the newest on that day, runs on Python 3.12, where `pkgutil.ImpImporter` is gone."""

_BUILD_TOOLS = ("pip", "setuptools", "wheel")

_VARIABLES = "/opt/specbuild"
"""Where files lie that one Step makes for another."""


@dataclass(frozen=True, slots=True)
class Needs:
    """What is installed, chosen once for all variants."""

    runtime: Wanted
    tests: Wanted

    @classmethod
    def of(cls, request: Request) -> Needs:
        """From the facts, for the first way to verify."""
        runner = request.checks[0].runner
        level = request.checks[0].level
        nothing = Wanted((), "no tests are run", declared=True)
        return cls(
            runtime=requirements.runtime(request.facts),
            tests=requirements.tests(request.facts, runner) if level is not Level.IMPORTS else nothing,
        )

    @property
    def texts(self) -> tuple[str, ...]:
        """Every requirement, no two alike."""
        return tuple(dict.fromkeys((*self.runtime.requirements, *self.tests.requirements)))

    @property
    def modes(self) -> tuple[tuple[Mode, float], ...]:
        """How the tests' needs are completed, with the odds kept, likeliest first."""
        if self.tests.declared:
            return ("plugins", 1.0), ("imports", odds.MORE_THAN_DECLARED)
        return ("imports", odds.COMPLETED), ("plugins", odds.UNDECLARED)


class Declared:
    """What is declared, with the newest releases that the index has."""

    name = "declared"

    def propose(self, request: Request) -> Iterable[Candidate]:
        """One candidate a base, and rivals that differ in what the tests get."""
        needs = Needs.of(request)
        for site in sites(request)[0]:
            for mode, kept in needs.modes:
                yield from _newest(request, site, needs, mode, kept)


class Dated:
    """What is declared, resolved as of the revision's date."""

    name = "declared@"

    def propose(self, request: Request) -> Iterable[Candidate]:
        """Variants by the era of the build tools, for each base."""
        revision = request.facts.revision_date
        if revision is None:
            return
        needs = Needs.of(request)
        for site in sites(request)[0]:
            main, *others = _eras(site, revision.value)
            for mode, kept in needs.modes:
                yield from _dated(request, site, needs, main, mode, kept)
            for era in others:
                yield from _dated(request, site, needs, era, *needs.modes[0])


class LowestDirect:
    """The lowest versions that the declared ranges allow."""

    name = "lowest-direct"

    def propose(self, request: Request) -> Iterable[Candidate]:
        """One candidate, on the first base, where the project declares lower bounds."""
        needs = Needs.of(request)
        able = sites(request)[0]
        if not able or not any(">=" in text or "~=" in text for text in needs.runtime.requirements):
            return
        site, facts = able[0], request.facts
        lowest = (
            f"{UV} pip compile --quiet --resolution lowest-direct {_VARIABLES}/runtime.in -o {_VARIABLES}/limits.txt"
        )
        install = (
            f"{_listing('runtime', needs.runtime)}\n{lowest}\n{_install(needs.texts, f'-c {_VARIABLES}/limits.txt')}"
        )
        inside = (
            steps.uv(install, "install the lowest versions that are allowed"),
            _build(request, needs, f"-c {_VARIABLES}/limits.txt", in_place=project.editable(facts)),
            complete("plugins", options=f"-c {_VARIABLES}/limits.txt"),
        )
        reason = "the lowest versions that the declared ranges allow"
        yield from candidates(request, _route(request, needs, self.name, site, odds.LOWEST, reason, inside))


@dataclass(frozen=True, slots=True)
class Era:
    """The dates of one dated variant."""

    revision: datetime
    tests: datetime
    """When the test tools are from: later where the interpreter is younger than the revision."""
    build: datetime | None
    """When setuptools and its like are from; None for the newest."""
    kept: float
    """Odds kept for the choice of build tools."""

    @property
    def one_day(self) -> bool:
        """Whether everything but the build tools is of one day."""
        return self.revision == self.tests

    @property
    def in_place(self) -> bool:
        """Whether setuptools of that era can make editable installs."""
        return self.build is None or self.build >= EDITABLE_SETUPTOOLS


def _eras(site: Site, revision: datetime) -> Iterator[Era]:
    tests = site.settled(revision)
    oldest = OLDEST_SETUPTOOLS_312 if minor_of(site.python) in ("3.12", "3.13", "3.14") else OLDEST_SETUPTOOLS
    of_its_time = max(revision, oldest)
    # Before setuptools 58 dropped `use_2to3` (2021-09) and 46 dropped `Feature`, old build tools are the safer ones.
    old = of_its_time < EDITABLE_SETUPTOOLS
    yield Era(revision, tests, of_its_time if old else None, 1.0)
    yield Era(revision, tests, None if old else of_its_time, odds.OTHER_BUILD_TOOLS)


def _dated(request: Request, site: Site, needs: Needs, era: Era, mode: Mode, kept: float) -> Iterator[Candidate]:
    facts = request.facts
    day, options = era.revision.date().isoformat(), _cut(era.tests, era, request)
    if era.one_day or not needs.runtime.requirements:
        install = _install(needs.texts, options)
    else:
        limits = f"{UV} pip compile --quiet {_cut(era.revision, era, request)}"
        options += f" -c {_VARIABLES}/limits.txt"
        install = (
            f"{_listing('runtime', needs.runtime)}\n"
            f"{limits} {_VARIABLES}/runtime.in -o {_VARIABLES}/limits.txt\n"
            f"{_install(needs.texts, options)}"
        )
    in_place = project.editable(facts) and (era.in_place or not project.uses_setuptools(facts))
    inside = (
        steps.uv(install, f"install the requirements as of {day}"),
        _build(request, needs, options, in_place=in_place),
        complete(mode, options=options),
    )
    lag = odds.years(era.revision, era.tests)
    name = f"declared@{day}" + ("" if era.kept == 1.0 else "+new-build" if era.build is None else "+old-build")
    reason = f"the declared requirements as they were on {day}"
    if lag:
        reason += f", test tools as of {era.tests.date().isoformat()} for this Python"
    if era.build:
        reason += f", build tools as of {era.build.date().isoformat()}"
    chance = odds.DATED * odds.DATED_TOO_OLD**lag * era.kept * kept
    if mode == "imports":
        name, reason = f"{name}+imports", f"{reason}, completed by what the test files import"
    checks = 2 if kept == max(value for _, value in needs.modes) and era.kept == 1.0 else 1
    yield from candidates(request, _route(request, needs, name, site, chance, reason, inside), checks=checks)


def newest_steps(request: Request, mode: Mode | None = None) -> tuple[Step, ...]:
    """The Steps inside the tree that install what is declared, newest, and complete it for the tests."""
    needs = Needs.of(request)
    return (
        steps.uv(_install(needs.texts, ""), "install the newest requirements"),
        _build(request, needs, "", in_place=project.editable(request.facts)),
        complete(mode or needs.modes[0][0]),
    )


def _newest(request: Request, site: Site, needs: Needs, mode: Mode, kept: float) -> Iterator[Candidate]:
    inside = newest_steps(request, mode)
    revision = request.facts.revision_date
    chance = odds.newest(revision.value if revision else None, request.now) * kept
    name, reason = "declared", "the declared requirements in their newest releases"
    if mode == "imports":
        name, reason = "declared+imports", f"{reason}, completed by what the test files import"
    checks = 2 if kept == max(value for _, value in needs.modes) else 1
    yield from candidates(request, _route(request, needs, name, site, chance, reason, inside), checks=checks)


def _route(
    request: Request, needs: Needs, name: str, site: Site, chance: float, reason: str, inside: tuple[Step, ...]
) -> Route:
    facts = request.facts
    compilers = project.compilers(facts)
    revision = (facts.revision_date.evidence,) if facts.revision_date and "@" in name else ()
    return Route(
        name=name,
        site=site,
        odds=chance * (odds.COMPILER if compilers else 1.0),
        reason=f"{reason}; for the tests: {needs.tests.why}",
        inside=inside,
        packages=(*compilers, *project.tools(facts)),
        requirements=len(needs.texts),
        evidence=(*revision, *needs.runtime.evidence, *needs.tests.evidence),
    )


def _cut(day: datetime, era: Era, request: Request) -> str:
    """uv's options for a date that does not cut what builds need, which is cut by the era of the build tools."""
    names = {requirements.name_of(fact.value) for fact in request.facts.build_requires} | set(_BUILD_TOOLS)
    build = "false" if era.build is None else _end_of(era.build)
    chosen = sorted(name for name in names if name) if era.build is None else list(_BUILD_TOOLS)
    options = [f"--exclude-newer {_end_of(day)}"]
    options += [f"--exclude-newer-package {name}={build}" for name in chosen]
    return " ".join(options)


def _end_of(moment: datetime) -> str:
    """The end of that day in UTC; a bare date would be read in the local time zone of the sandbox."""
    following = moment.astimezone(UTC) + timedelta(days=1)
    return following.strftime("%Y-%m-%dT00:00:00Z")


def _listing(name: str, wanted: Wanted) -> str:
    return f"mkdir -p {_VARIABLES}\nprintf '%s\\n' {steps.words(wanted.requirements)} > {_VARIABLES}/{name}.in"


def _install(texts: tuple[str, ...], options: str) -> str:
    if not texts:
        return "true"
    return " ".join(part for part in (f"{UV} pip install", options, steps.words(texts)) if part)


def _build(request: Request, needs: Needs, options: str, *, in_place: bool) -> Step:
    what = project.target(needs.tests.extras, in_place=in_place)
    run = " ".join(part for part in (f"{UV} pip install --no-cache", options, what) if part)
    env = project.version_env(request.facts)
    return steps.uv(run, "install the project", kind=StepKind.BUILD, env=env)
