"""Which bases can serve a Repo: their interpreters held against `requires-python`, classifiers and CI."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta

from packaging.specifiers import InvalidSpecifier, SpecifierSet
from packaging.version import Version

from specbuild.recipe import BaseRef
from specbuild.repo.facts import Evidence, Facts
from specbuild.strategies.contract import Request

RELEASED = {
    "3.6": date(2016, 12, 23),
    "3.7": date(2018, 6, 27),
    "3.8": date(2019, 10, 14),
    "3.9": date(2020, 10, 5),
    "3.10": date(2021, 10, 4),
    "3.11": date(2022, 10, 24),
    "3.12": date(2023, 10, 2),
    "3.13": date(2024, 10, 7),
    "3.14": date(2025, 10, 7),
}
"""First releases of CPython's minor versions, as its release schedules (PEP 494 to PEP 745) record them."""

ADOPTION = timedelta(days=270)
"""How long after its release an interpreter has wheels and working test tools on the index: about nine months,
the time that numpy, lxml, psutil and pytest took at most for 3.9 to 3.13."""

UNTESTED_MINOR = 0.85
"""Odds kept for each minor version by which an interpreter is newer than all that the project names."""

OLDER_THAN_NAMED = 0.6
"""Odds kept when the interpreter is older than all that the project names, yet allowed."""


@dataclass(frozen=True, slots=True)
class Site:
    """A base whose interpreter may run the project."""

    base: BaseRef
    python: str
    """Minor version (`3.11`); empty when the base does not tell."""
    fit: float
    """Factor in (0, 1] on the odds of every route on this base."""
    why: str
    """How the interpreter was judged, in words."""
    evidence: tuple[Evidence, ...] = ()

    def settled(self, revision: datetime) -> datetime:
        """The later of `revision` and the day by which the interpreter was well supported."""
        released = RELEASED.get(self.python)
        if released is None:
            return revision
        supported = datetime(released.year, released.month, released.day, tzinfo=UTC) + ADOPTION
        return max(revision, supported)


@dataclass(frozen=True, slots=True)
class LeftOut:
    """A base that cannot serve the project, and why."""

    base: BaseRef
    why: str


def sites(request: Request) -> tuple[tuple[Site, ...], tuple[LeftOut, ...]]:
    """The bases that can serve, in the order of the request, and those that cannot; none for a Repo without Python."""
    if not _is_python(request.facts):
        return (), ()
    able: list[Site] = []
    unable: list[LeftOut] = []
    for base in request.bases:
        refusal = _refusal(base, request.facts)
        if refusal:
            unable.append(LeftOut(base, refusal))
        else:
            able.append(_site(base, request.facts))
    return tuple(able), tuple(unable)


def minor_of(text: str | None) -> str:
    """The minor version in `text` (`3.9.2` and `py39` give `3.9`); empty when there is none."""
    found = re.search(r"(?<![\w.])(?:py|python)?-?([23])\.?(\d{1,2})", text or "")
    return f"{found[1]}.{found[2]}" if found else ""


def _is_python(facts: Facts) -> bool:
    declared = facts.build_backend or facts.dependencies or facts.locks
    return bool(declared) or any(fact.value == "python" for fact in facts.languages)


def _refusal(base: BaseRef, facts: Facts) -> str:
    """Why `requires-python` excludes the base's interpreter; empty when it does not."""
    wanted = facts.requires_python
    if wanted is None or not base.python:
        return ""
    try:
        allowed = SpecifierSet(wanted.value)
    except InvalidSpecifier:
        return ""
    version = base.python if base.python.count(".") > 1 else _latest_patch(base.python)
    if Version(version) in allowed:
        return ""
    return f"Python {base.python} of {base.name} is excluded by requires-python {wanted.value} ({wanted.evidence.file})"


def _latest_patch(minor: str) -> str:
    # A bare minor stands for some late patch release: `>=3.9.1` must not exclude "3.9".
    return f"{minor}.99"


def _site(base: BaseRef, facts: Facts) -> Site:
    python = minor_of(base.python)
    named = {minor_of(fact.value): fact.evidence for fact in facts.classifier_pythons if minor_of(fact.value)}
    for job in facts.ci:
        for version in job.pythons:
            if version[:1].isdigit() and minor_of(version):
                named.setdefault(minor_of(version), job.evidence)
    if not python:
        return Site(base, python, 1.0, f"which Python {base.name} has or gets is not known before it runs")
    if not named:
        return Site(base, python, 1.0, f"the project names no versions, {base.name} has Python {python}")
    if python in named:
        return Site(base, python, 1.0, f"Python {python} is named by the project", (named[python],))
    return _unnamed(base, python, sorted(named, key=_order))


def _unnamed(base: BaseRef, python: str, named: list[str]) -> Site:
    newest, oldest = named[-1], named[0]
    if _order(python) < _order(oldest):
        return Site(base, python, OLDER_THAN_NAMED, f"Python {python} is older than all named ({oldest} to {newest})")
    if _order(python) > _order(newest):
        steps = max(1, _order(python)[1] - _order(newest)[1]) if python[0] == newest[0] else 3
        why = f"Python {python} is newer than all named (up to {newest})"
        return Site(base, python, UNTESTED_MINOR**steps, why)
    return Site(base, python, UNTESTED_MINOR, f"Python {python} lies between named versions")


def _order(minor: str) -> tuple[int, int]:
    major, _, rest = minor.partition(".")
    return int(major), int(rest)
