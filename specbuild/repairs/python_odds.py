"""How likely the repairs inside the Python world are, in one place, until outcomes of earlier builds replace them.

Estimates from setting up pinned releases of 2016 to 2025 by hand; given that the diagnosis is right, they order rivals,
and no decision hangs on their second digit.
"""

from __future__ import annotations

DECLARED = 0.93
"""A distribution that the project itself names, within the bounds that it gives."""

KNOWN_NAME = 0.9
"""A distribution whose other name is well known (`yaml` of PyYAML)."""

PACKAGED = 0.8
"""What Debian's package of that import brings: right, unless several distributions share a module."""

SAME_NAME = 0.6
"""A distribution that is called as its module: mostly right, now and then an unrelated one of that name."""

SAME_NAME_UNSEEN = 0.15
"""The same where no test file is seen to import it from elsewhere: as often a file of the tree itself."""

IN_TREE = 0.5
"""The folder of the tree that has a module of that name, on the path: suites that are run in some way of their own."""

RIVAL = 0.5
"""Share kept by each further distribution that is said to bring the same."""

GROUP = 0.5
"""The project's whole test group: brings what is missing if a group was overlooked."""

PLUGIN = 0.9
"""A plugin of pytest that an option or a fixture gave away."""

WITHOUT_OPTIONS = 0.45
"""pytest without the project's own options: it starts, but options that tests rely on are gone with the others."""

ASYNC_PLUGIN = 0.6
"""One of several frameworks that run coroutines; without a declared one a guess."""

ASYNC_AUTO = 0.55
"""With the mode that takes every coroutine for a test, as its first releases did."""

BELOW = 0.85
"""A dependency below the release that removed what is used: others that moved with it may be next."""

BELOW_UNKNOWN = 0.55
"""A dependency as of the revision's date, where nobody knows which release made the break."""

DATED_ALONE = 0.4
"""A dependency as of the revision's date beside a bound that is known: what it works with has moved on without it."""

AS_OF_DATE = 0.6
"""All requirements as of the revision's date, on an interpreter that may be younger."""

TOOL_BELOW = 0.85
"""The test runner below the release that no longer bears the suite."""

TOOL_DATED = 0.65
"""The test runner of the revision's own time."""

WITHOUT_FILTERS = 0.5
"""Warnings that are no errors any more: cures what is only deprecated."""

BUILD_BELOW = 0.88
"""A build requirement below the release that dropped what the build uses."""

BUILD_UNKNOWN = 0.5
"""The same where the release is not known: of the revision's date."""

BUILD_EXTRA = 0.85
"""A build requirement that was not declared, added by name."""

NO_ISOLATION = 0.4
"""Build requirements beside the rest, without isolation: what else the build needs must be there by luck."""

NO_ISOLATION_ALONE = 0.65
"""The same for a tree whose name uv learns only by building it, so that nothing can be added to its builds by name."""

BACKPORT = 0.75
"""A distribution with the module that the standard library lost."""

SHIM = 0.7
"""setuptools in place of distutils: as good, unless Python's own was changed from outside."""

OLDER_BASE = 0.65
"""An older interpreter: has what was removed, may lack what else the project wants."""

RELAXED = 0.7
"""One pin lifted that no index can serve: some later release mostly does."""

WITHOUT_DATE = 0.5
"""The newest releases where those of a date do not fit together."""

OTHER_TOOL = 0.75
"""An installer that takes what another refuses."""

UNLOCKED = 0.55
"""What is declared instead of what is locked: newer releases than its developers had."""

FROZEN = 0.85
"""A stale lock, used as it stands: developers forgot a line of metadata more often than a requirement."""

FROM_TREE = 0.55
"""A tree that cannot be installed, used from where it lies."""

ENVIRONMENT = 0.85
"""A virtual environment in place of the distribution's interpreter."""

BREAK_SYSTEM = 0.7
"""The distribution's interpreter, told to take packages: files of Debian's may be in the way."""

BUILT_IN_PLACE = 0.6
"""Extensions compiled beside their sources."""

MAKE_TARGET = 0.4
"""A make target that is called after building."""

OUTSIDE = 0.7
"""Tests run from outside of the source tree, against what is installed."""

EDITABLE = 0.65
"""An editable install: the tree gets what was compiled, if its backend puts it there."""

COMPILED = 0.6
"""A compiler and another install: cures fallbacks that hide its absence."""

IMPORT_MODE = 0.8
"""Test modules imported without putting their folders on the path; helpers beside them are not found then."""

FRESH_CACHES = 0.3
"""Compiled leftovers of another place removed; archives seldom hold them."""

OTHER_WAY = 0.5
"""Another way to run the tests that the facts know."""

ALL_FILES = 0.35
"""Every file that could be a test taken for one."""

OTHER_FOLDER = 0.8
"""A file of the name that was looked for, in another folder."""

NOTED_SETTING = 0.85
"""A variable as the project's own CI, tox or settings set it."""

MADE_UP_SETTING = 0.35
"""A harmless value that was made up; checks of its form may refuse it."""

ENCODING = 0.8
"""A UTF-8 locale that every base has."""

ANY_LOCALE = 0.6
"""All locales there are, where nobody said which one is missing."""

GENERATED = 0.85
"""The locale that was named, generated."""

ZONES_BY_PIP = 0.4
"""Python's own copy of the data of time zones, which only Python reads."""

PRETENDED = 0.9
"""A version told to the tool that derives it from tags."""

REPOSITORY = 0.7
"""A fresh repository with one commit and a tag: enough unless history itself is tested."""

GIT_SETTING = 0.92
"""One line of git's configuration that the message itself asks for."""

ORDINARY_USER = 0.7
"""The command run by an ordinary user who owns the tree and the environment."""

EXECUTABLE = 0.85
"""A script made executable, as archives forget."""

OWN_PATH = 0.55
"""The folder of the project's own modules on the import path."""

INSTALLED = 0.5
"""The project installed once more, in place."""

TIME_LIMIT = 0.5
"""A limit a test, so that what hangs becomes one failure among passes."""

PATIENCE = 0.6
"""Limits of the suite's own lifted: machines differ."""

PLACEHOLDER = 0.6
"""An empty file in a home folder, where programs only look whether it is there."""

REINSTALLED = 0.4
"""Data that a distribution should have brought, by installing it anew."""
