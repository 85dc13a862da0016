"""The odds and durations that strategies start from, in one place, until outcomes of earlier builds replace them.

The figures are estimates from setting up pinned releases of 2016 to 2025 by hand in fresh Debian bases; they order
the routes, and no decision hangs on their second digit.
"""

from __future__ import annotations

from datetime import datetime

LOCKED = 0.9
"""A lock file that the project's developers use every day."""

NEWEST = 0.88
"""What is declared, with the newest releases, on the day of the revision itself."""

HALF_LIFE_YEARS = 4.0
"""Years after which half of the suites no longer pass with the newest releases: of sdists of 2018 to 2020 with open
upper bounds nearly none does, of those of 2024 most do."""

DATED = 0.8
"""What is declared, with the releases of the revision's own time, on an interpreter of that time."""

DATED_TOO_OLD = 0.9
"""Odds kept for each year by which the interpreter is younger than the revision: releases of that time have no wheels
for it, and some do not build."""

UNDECLARED = 0.6
"""Odds kept when nothing tells what the tests need."""

COMPLETED = 0.85
"""Odds kept when the imports of the tests are what tells it: names of modules are mostly, not always, names of
distributions."""

MORE_THAN_DECLARED = 0.6
"""Odds kept when imports complete what is declared already: most often it changes nothing, and a rival that differs
more is worth more."""

OLD_PYTEST = 0.9
"""Odds kept for the oldest pytest that runs on the interpreter, against the one of the time by which it was well
supported: suites of before pytest 5 often break on later ones, plugins seldom bear earlier ones."""

OTHER_BUILD_TOOLS = 0.5
"""Odds kept for build tools of the era that is the less likely one for that date."""

RELEASED = 0.8
"""Odds kept when a requirement is taken from the index that the project fetches from elsewhere."""

COMPILER = 0.9
"""Odds kept when compiled code must be built: the libraries that it needs are rarely declared."""

OPTIONAL_LEFT_OUT = 0.4
"""Odds kept when compiled code is optional and no compiler is there: set-up scripts stumble over their own fallback
(markupsafe 3.0.2), or leave out what the tests are about (pyyaml, setproctitle)."""

OPTIONAL_BUILT = 0.95
"""Odds kept when it is optional and compilers are there."""

SOURCES_COMPILED = 0.6
"""Odds kept for compilers where none of the project's own code needs one, but old dependencies may have no wheel."""

CI = 0.6
"""The project's own CI, translated line by line."""

DEBIAN = 0.35
"""The distribution's own packages: tested with each other, but of another time than the project."""

DOCKER = 0.4
"""A Dockerfile is made to run the project, seldom to test it."""

LOWEST = 0.15
"""The lowest versions that are allowed: only few projects keep them true."""

SECOND_CHECK = 0.4
"""Odds kept when the suite is run in the second likeliest way."""

EARLIER = 0.5
"""Part of the doubts that an environment of another revision takes from the way it went: most revisions change nothing
that the environment is made of."""

EARLIER_ALIKE = 0.8
"""The same, where the manifests declare what they declared then."""

EARLIER_SECONDS = 0.7
"""What is left of the expected seconds for each Step that an earlier environment has done."""

SYSTEM_SECONDS = 10.0
TOOLCHAIN_SECONDS = 5.0
PACKAGE_SECONDS = 1.5
"""For each further system package."""
COMPILER_SECONDS = 15.0
"""For a compiler, which is many packages."""
REQUIREMENT_SECONDS = 0.4
"""For each declared requirement, its own dependencies included."""
BUILD_SECONDS = 3.0
COMPILE_SECONDS = 40.0
"""For the project's compiled code."""
SPEEDUP_SECONDS = 8.0
"""For compiled code that can be left out: mostly a file or two that make things faster."""
TEST_SECONDS = 20.0

_YEAR_SECONDS = 365.25 * 86400


def years(earlier: datetime, later: datetime) -> float:
    """Years from `earlier` to `later`; 0 when they are the other way round."""
    return max(0.0, (later - earlier).total_seconds() / _YEAR_SECONDS)


def newest(revision: datetime | None, now: datetime) -> float:
    """The odds of the newest releases for a revision of that date."""
    age = years(revision, now) if revision else 2.0
    return NEWEST * float(0.5 ** (age / HALF_LIFE_YEARS))


def clamp(odds: float) -> float:
    """Odds kept away from certainty."""
    return min(0.97, max(0.01, round(odds, 4)))
