"""How sure foresight is, in one place, with reasons. Estimates, until outcomes of builds replace them.

They are the odds that a Recipe shows the Failure, given what the rule that uses them looks at.
"""

from __future__ import annotations

LEAST = 0.08
"""What is less likely is not told."""

AS_BEFORE = 0.85
"""An environment of another revision had to be repaired of it. What was declared then may be declared otherwise now."""

SOURCE_WITHOUT_COMPILER = 0.9
"""A distribution with compiled code is built, and there is no compiler. Some go on without it (`Extension(optional)`),
as markupsafe and setproctitle do."""

SOURCE_LIKE_OTHERS = 0.75
"""The same, where only other releases show that it has compiled code: some gained or dropped it since."""

SOURCE_BY_DEBIAN = 0.8
"""The same, where only Debian's build dependencies (`python3-all-dev`) show it."""

SOURCE_LIBRARIES = 0.7
"""Debian builds it with libraries that are missing. It lists optional ones, too, and some sources carry a copy."""

NOT_ALL_LIBRARIES = 0.4
"""Kept of the former once some of these libraries are there: those that came first are what matters most."""

UNPINNED = 0.9
"""Kept for each level of requirements that are not pinned: a resolver may settle for another release."""

OWN_COMPILER = 0.92
"""The project's own code needs a compiler that the Recipe does not have. Nine of ten sdists of the corpus fail."""

OWN_OPTIONAL = 0.35
"""The same where the project says that the code can be left out; set-up scripts stumble over their own fallback."""

OWN_OPTIONAL_LIBRARIES = 0.5
"""Libraries of code that seems optional: set-up scripts that only choose among kinds of builds look the same."""

UNDECLARED_NUMPY = 0.6
"""A set-up script with compiled code, without declared build requirements, which Debian builds with numpy: its headers
are needed whatever was compiled beforehand."""

UNDECLARED_CYTHON = 0.2
"""The same with Cython: most sdists hold the C code that it made."""

OWN_LIBRARIES = 0.8
"""Debian builds the project with libraries that the Recipe does not have."""

OWN_TOOLS = 0.45
"""Debian builds the project with a program that the Recipe does not have; many are for documentation or checks."""

OWN_RUNTIME_LIBRARY = 0.55
"""A project without compiled code that Debian tests with a shared library, which is then loaded by ctypes or cffi."""

REFUSED_INTERPRETER = 0.97
"""No release that is asked for admits the interpreter: resolvers have no choice."""

NO_RELEASE = 0.9
"""No release is left by dates and bounds. Markers that are not understood, or another index, may be the reason."""

SCM_WITHOUT_TAGS = 0.85
"""The version is derived from version control, which is not there, and nobody tells it; an sdist may hold PKG-INFO."""

SCM_WITH_METADATA = 0.1
"""The same where the tree is an unpacked sdist: setuptools-scm and pbr read its PKG-INFO."""

GIT_ABSENT = 0.6
"""The tests use git, by their imports, and it is not installed."""

CI_SERVICE = 0.8
"""CI starts a server beside the tests: suites that can do without it seldom get one."""

CLIENT_LIBRARY = 0.45
"""The project is a client of a server, or its tests import a client: half of these suites have a server of their own
making, or a fake."""

DEBIAN_SERVER = 0.65
"""Debian has a server at hand when it builds and tests the project."""

OTHERS_RUNTIME_LIBRARY = 0.5
"""As `OWN_RUNTIME_LIBRARY`, of what the project depends on: not all tests come to use it."""

BY_NAME = 0.45
"""Debian does not have the project, but a library that it is called after. Some carry a copy of it."""

SPEEDUPS = 0.2
"""A distribution is built whose compiled code only makes it faster: what is left when there is no compiler."""

OWN_PROGRAM = 0.75
"""The project is called after a program that Debian has at hand for it: it wraps that program."""

DISPLAY = 0.25
"""Debian has a virtual display at hand: mostly for a few tests of many, which are often skipped without one."""

TEST_PROGRAM = 0.25
"""Debian has a program at hand when it builds and tests the project, and the Recipe has not: mostly for some tests."""

ONE_YEAR = 0.5
"""Share of breaks that show in sources of one year before the break: deprecations come a year or two earlier, so that
younger sources were adapted. Halves with each year less, up to `OLD` for older ones."""

OLD = 0.95
"""Share of breaks that show in sources of two years and more before the break."""
