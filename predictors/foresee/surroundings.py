"""What tests and builds find around them: servers, version control, programs, locales, displays."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from packaging.utils import canonicalize_name

from specbuild.failures import MissingCommand, MissingLocale, ServiceNeeded, VersionControlNeeded
from specbuild.predictors.foresee import chances
from specbuild.predictors.foresee.companions import SERVERS
from specbuild.predictors.foresee.contract import Foreseen
from specbuild.predictors.foresee.view import View
from specbuild.recipe import Level, StepKind
from specbuild.repairs.servers.expected import expected_services
from specbuild.repo.facts import CiJob, Evidence

CLIENTS = {
    "psycopg2": "postgresql",
    "psycopg2-binary": "postgresql",
    "psycopg": "postgresql",
    "asyncpg": "postgresql",
    "pg8000": "postgresql",
    "aiopg": "postgresql",
    "mysqlclient": "mysql",
    "pymysql": "mysql",
    "aiomysql": "mysql",
    "redis": "redis",
    "aioredis": "redis",
    "pylibmc": "memcached",
    "pymemcache": "memcached",
    "python-memcached": "memcached",
    "pika": "rabbitmq",
    "pymongo": "mongodb",
    "motor": "mongodb",
    "python-ldap": "ldap",
    "gssapi": "kdc",
    "kafka-python": "kafka",
    "confluent-kafka": "kafka",
}
"""Distributions that talk to a server and do little else → the service that their own tests want."""

_DISPLAY = re.compile(r"\bxvfb(-run)?\b")
_GIT_USERS = frozenset({"git", "dulwich", "gitpython", "pygit2", "setuptools-scm", "setuptools_scm", "dunamai"})
_LOCALE = re.compile(r"\b(?:LANG|LC_ALL)=[\"']?(?P<locale>[a-z]{2}_[A-Z]{2}\.[Uu][Tt][Ff]-?8)")
_LOCALE_GEN = re.compile(r"locale-gen\s+(?P<locale>[a-z]{2}_[A-Z]{2}(?:\.[\w-]+)?)")


def foresee(view: View) -> Iterable[Foreseen]:
    """What the surroundings will lack."""
    yield from _services(view)
    yield from _tags(view)
    if view.bare and view.outlook.candidate.recipe.check.level is not Level.IMPORTS:
        yield from _git(view)
        yield from _locales(view)
        yield from _display(view)


def _services(view: View) -> Iterator[Foreseen]:
    check = view.outlook.candidate.recipe.check
    if check.level not in (Level.TESTS, Level.COMMAND):
        return
    started = {name for name, _ in check.services}
    for expected in expected_services(view.facts):
        if expected.service not in started:
            why = f"CI starts {expected.service} for the tests"
            yield _service(expected.service, chances.CI_SERVICE, why, expected.evidence)
    own = CLIENTS.get(view.own_name)
    if own and own not in started and not view.has(*(p for p, name in SERVERS.items() if name == own)):
        why = f"{view.own_name} is a client of {own}, and nothing starts a server for its tests"
        yield _service(own, chances.CLIENT_LIBRARY, why, (view.facts.name.evidence,) if view.facts.name else ())


def _service(name: str, chance: float, why: str, evidence: tuple[Evidence, ...]) -> Foreseen:
    failure = ServiceNeeded(service=name)
    return Foreseen(failure=failure, probability=chance, at=StepKind.TEST, why=why, evidence=evidence)


def _tags(view: View) -> Iterator[Foreseen]:
    tool = view.facts.scm_version
    if tool is None or view.facts.has_tags or view.contents.project is None:
        return
    if any(re.search(r"PRETEND_VERSION|PBR_VERSION|SCM_VERSION|VERSIONING_BYPASS", v) for v in view.contents.variables):
        return
    sdist = view.facts.version is not None and view.facts.version.evidence.file.endswith("PKG-INFO")
    yield Foreseen(
        failure=VersionControlNeeded(need="tags", by=tool.value),
        probability=chances.SCM_WITH_METADATA if sdist or tool.value == "versioneer" else chances.SCM_WITHOUT_TAGS,
        at=view.first(StepKind.BUILD, StepKind.DEPENDENCIES),
        why=f"{tool.value} takes the version from tags, of which there are none, and no variable tells it",
        evidence=(tool.evidence,),
    )


def _git(view: View) -> Iterator[Foreseen]:
    """Programs of version control that the tests call, by what they import or by the project's own trade."""
    users = [need for need in view.facts.test_needs if canonicalize_name(need.name.split(".")[0]) in _GIT_USERS]
    if (users or view.own_name in _GIT_USERS) and not view.has("git"):
        yield Foreseen(
            failure=MissingCommand(command="git"),
            probability=chances.GIT_ABSENT,
            at=StepKind.TEST,
            why="the tests work with git, and the recipe does not install it",
            evidence=tuple(need.evidence for need in users[:3]),
        )


def _locales(view: View) -> Iterator[Foreseen]:
    if view.has("locales", "locales-all"):
        return
    for job, text, evidence in _lines(view):
        found = _LOCALE_GEN.search(text) or _LOCALE.search(text)
        if found and job.tests:
            yield Foreseen(
                failure=MissingLocale(locale=found["locale"]),
                probability=chances.CLIENT_LIBRARY,
                at=StepKind.TEST,
                why=f"CI makes or sets the locale {found['locale']}",
                evidence=(evidence,),
            )


def _display(view: View) -> Iterator[Foreseen]:
    if view.has("xvfb") or any(name == "display" for name, _ in view.outlook.candidate.recipe.check.services):
        return
    for job, text, evidence in _lines(view):
        if job.tests and _DISPLAY.search(text):
            why = "CI runs something under a virtual display"
            yield _service("display", chances.CI_SERVICE, why, (evidence,))
            return


def _lines(view: View) -> Iterator[tuple[CiJob, str, Evidence]]:
    for job in view.facts.ci:
        for fact in job.run:
            yield job, fact.value, fact.evidence
        for name, value in job.env:
            yield job, f"{name}={value}", job.evidence
