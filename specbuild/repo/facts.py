"""Facts: what was read from a Repo without running any of it, each with its evidence."""

from __future__ import annotations

from datetime import datetime
from typing import Generic, Literal, TypeAlias, TypeVar

from specbuild.model import Frozen

T = TypeVar("T")


class Evidence(Frozen):
    """Where a fact stands."""

    file: str
    """Path relative to the root of the Repo."""
    line: int | None = None
    """Counted from 1; None when the whole file is the evidence."""
    text: str = ""
    """The line itself, shortened to 200 characters."""


class Fact(Frozen, Generic[T]):
    """A value and where it was read."""

    value: T
    evidence: Evidence


class Dependency(Frozen):
    """One declared requirement of a Python project, in PEP 508 form where it has one."""

    requirement: str
    group: str = ""
    """`""` for run time, `extra:NAME`, `group:NAME` (PEP 735 and tool tables), `build`, `tests` (setup.py's
    tests_require), `file:PATH` (a requirements file with those that it includes, or the pip section of a conda one),
    `conda` (a match specification, not PEP 508), `tox:ENV`, `nox:SESSION`, `hatch:ENV`, `uv:sources` (where uv takes
    a dependency from instead)."""
    pinned: bool = False
    """Whether it admits exactly one version."""
    evidence: Evidence


class Lock(Frozen):
    """A lock file."""

    kind: str
    """`uv`, `poetry`, `pdm`, `pipenv`, `pylock`, `requirements` (every line pinned), `conda-lock`."""
    evidence: Evidence


class Service(Frozen):
    """A server that the tests talk to, as CI or compose files declare it."""

    name: str
    image: str
    env: tuple[tuple[str, str], ...] = ()
    """What the server itself is told: `POSTGRES_DB` and the like."""
    evidence: Evidence


class CiJob(Frozen):
    """One job of a CI workflow that seems to test the project on Linux."""

    provider: str
    """`github`, `gitlab`, `travis`, `circleci`, `azure`, `appveyor`."""
    name: str
    image: str | None = None
    """Runner label or container image (`ubuntu-20.04`, `python:3.9`)."""
    pythons: tuple[str, ...] = ()
    """Versions of its matrix or set-up step, as written (`3.9`, `pypy3.10`)."""
    env: tuple[tuple[str, str], ...] = ()
    services: tuple[Service, ...] = ()
    run: tuple[Fact[str], ...] = ()
    """Shell commands in order, matrix expressions expanded for the preferred interpreter (the newest final CPython of
    the matrix) where that was possible. One line each, unless lines of a script depend on each other; a working
    directory and the environment of a step stand before its command as `cd` and `export` lines."""
    tests: bool = False
    """Whether one of the commands looks like a test run."""
    evidence: Evidence


class TestEnv(Frozen):
    """A tox, nox or hatch environment."""

    __test__ = False

    tool: str
    name: str
    deps: tuple[str, ...] = ()
    """As written, `-r file` and `-c file` included."""
    extras: tuple[str, ...] = ()
    groups: tuple[str, ...] = ()
    commands: tuple[str, ...] = ()
    env: tuple[tuple[str, str], ...] = ()
    evidence: Evidence


class DockerImage(Frozen):
    """A Dockerfile, or what a devcontainer names."""

    image: str
    run: tuple[Fact[str], ...] = ()
    """Its RUN lines (or postCreateCommand) in order; ENV as `export` lines, WORKDIR as a `cd` line before a command."""
    evidence: Evidence


class Extension(Frozen):
    """Compiled code that the build will produce."""

    language: str
    """`c`, `c++`, `cython`, `rust`, `fortran`, `cffi`, `go`."""
    name: str = ""
    optional: bool = False
    evidence: Evidence


class TestLayout(Frozen):
    """Where the tests are and what runs them."""

    __test__ = False

    runner: str
    """`pytest`, `unittest`, `django`, `nose`, `trial`, `doctest` (there are only doctests), or `none`."""
    paths: tuple[str, ...] = ()
    """Folders or files with tests, relative to the root of the Repo."""
    files: int = 0
    """Test files seen."""
    settings_module: str | None = None
    """Django's, if one was found."""
    evidence: tuple[Evidence, ...] = ()


TestNeedKind: TypeAlias = Literal["option", "plugin", "marker", "fixture", "import"]


class TestNeed(Frozen):
    """Something beyond the standard library and the project itself that its tests use, whether declared or not."""

    __test__ = False

    kind: TestNeedKind
    """What uses it: an option or key of pytest's configuration, a plugin that is named, a mark on a test, a fixture
    that the tests do not define, an import at the top of a test file that nothing guards."""
    name: str
    """A requirement (PEP 508) for a distribution; of an import the module, as far as it names a distribution
    (`yaml`, `zope.interface`)."""
    evidence: Evidence


class Facts(Frozen):
    """All that was read. Empty fields mean that nothing was found, never that reading failed; see `warnings`."""

    languages: tuple[Fact[str], ...] = ()
    """Most code first: `python`, `c`, `rust`, `javascript`, …"""
    name: Fact[str] | None = None
    version: Fact[str] | None = None
    build_backend: Fact[str] | None = None
    """`setuptools.build_meta`, …; for a bare setup.py `setuptools.build_meta:__legacy__`."""
    build_requires: tuple[Fact[str], ...] = ()
    requires_python: Fact[str] | None = None
    classifier_pythons: tuple[Fact[str], ...] = ()
    """Minor versions named by classifiers (`3.9`)."""
    dependencies: tuple[Dependency, ...] = ()
    locks: tuple[Lock, ...] = ()
    ci: tuple[CiJob, ...] = ()
    test_envs: tuple[TestEnv, ...] = ()
    make_targets: tuple[Fact[str], ...] = ()
    docker: tuple[DockerImage, ...] = ()
    readme_commands: tuple[Fact[str], ...] = ()
    """Install and test commands in the README's code blocks."""
    extensions: tuple[Extension, ...] = ()
    tests: tuple[TestLayout, ...] = ()
    """Likeliest first."""
    test_needs: tuple[TestNeed, ...] = ()
    """What the tests need by what they use, one of a kind and name."""
    packages: tuple[Fact[str], ...] = ()
    """Import names of the project's own top-level packages and modules."""
    revision_date: Fact[datetime] | None = None
    """When this revision was made: the commit's date, or the newest date inside an archive."""
    scm_version: Fact[str] | None = None
    """The tool that derives the version from git (`setuptools-scm`, `hatch-vcs`, `pbr`, `versioneer`, …)."""
    has_tags: bool = False
    """Whether version control with at least one tag is there for it."""
    warnings: tuple[Fact[str], ...] = ()
    """Manifests that could not be read, and why."""
