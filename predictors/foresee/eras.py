"""Breaks between releases, as data: who broke, since when, what is gone, and how many sources used it.

Dates are those of the first upload of a release to the package index; a bench holds them against it
(`python -m bench foresight --eras`). Shares are estimates of how many sources from well before a break that use the
distribution directly show it: for single names few, for rewrites most. The last field is where the break is documented,
below the distribution's own change log.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date
from typing import Literal

from specbuild.failures import (
    DriftedBackend,
    DriftedDependency,
    DriftedTestTool,
    Failure,
    VersionOutOfRange,
)

Role = Literal["build", "run", "tests"]
"""Whether a distribution breaks the build, the code, or the suite."""


@dataclass(frozen=True, slots=True)
class Break:
    """One release that took something away."""

    distribution: str
    """Normalised name."""
    version: str
    """The first release without it."""
    day: date
    """When that came."""
    failure: Failure
    role: Role
    share: float
    """Of sources from well before the break that use the distribution."""
    source: str
    """Where it is documented."""


@dataclass(frozen=True, slots=True)
class InterpreterBreak:
    """A minor version of Python that took something away."""

    python: tuple[int, int]
    day: date
    """Of its release: PEP 619, 664, 693, 719, 745."""
    gone: str
    share: float
    """Of sources from well before."""
    source: str

    @property
    def failure(self) -> Failure:
        """As a reader of the output would call it."""
        return VersionOutOfRange(tool="python", required=f"<{self.python[0]}.{self.python[1]}", because=self.gone)


def _run(distribution: str, module: str, name: str, version: str, day: date, share: float, source: str) -> Break:
    failure = DriftedDependency(module=module, name=name, below=version)
    return Break(distribution, version, day, failure, "run", share, source)


def _build(distribution: str, name: str, version: str, day: date, share: float, source: str) -> Break:
    return Break(
        distribution,
        version,
        day,
        DriftedBackend(backend=distribution, name=name, below=version),
        "build",
        share,
        source,
    )


def _tests(distribution: str, name: str, version: str, day: date, share: float, source: str) -> Break:
    failure = DriftedTestTool(tool=distribution, name=name, below=version)
    return Break(distribution, version, day, failure, "tests", share, source)


BREAKS: tuple[Break, ...] = (
    # Builds
    _build("setuptools", "Feature", "46", date(2020, 3, 8), 0.03, "v46.0.0: Feature removed"),
    _build("setuptools", "use_2to3", "58", date(2021, 9, 4), 0.1, "v58.0.0: lib2to3 support removed"),
    _build("setuptools", "dash-separated keys", "78", date(2025, 3, 24), 0.03, "v78.0.0, given back by v78.0.2"),
    _build("setuptools", "pkg_resources", "82", date(2026, 2, 8), 0.12, "v82.0.0: pkg_resources removed"),
    _build("cython", "cython_sources", "3", date(2023, 7, 17), 0.35, "3.0.0: language level 3str, stricter C code"),
    _build("scikit-build-core", "cmake.targets", "0.11", date(2025, 2, 27), 0.2, "0.11: settings of before 0.10"),
    # What suites run on
    _tests("pytest", "yield tests", "4", date(2018, 11, 13), 0.06, "4.0.0: RemovedInPytest4Warning"),
    _tests("pytest", "pytest.config", "5", date(2019, 6, 28), 0.06, "5.0.0: pytest.config removed"),
    _tests("pytest", "from_parent", "7", date(2022, 2, 3), 0.08, "7.0.0: nodes and hooks"),
    _tests("pytest", "PytestRemovedIn8Warning", "8", date(2024, 1, 27), 0.15, "8.0.0: nose-style setup, py.path hooks"),
    _tests(
        "pytest", "PytestRemovedIn9Warning", "9", date(2025, 11, 8), 0.2, "9.0.0: PytestRemovedIn9Warning is an error"
    ),
    _tests("pytest-asyncio", "mode", "0.19", date(2022, 7, 15), 0.35, "0.19.0: strict mode is the default"),
    _tests("pytest-asyncio", "event_loop", "1", date(2025, 5, 26), 0.3, "1.0.0: the event_loop fixture removed"),
    # What code runs on
    _run("attrs", "attr", "convert", "19.2", date(2019, 10, 1), 0.05, "19.2.0: convert removed"),
    _run("click", "click", "get_terminal_size", "8.1", date(2022, 3, 28), 0.1, "8.1.0: deprecated code removed"),
    _run("click", "click", "CliRunner(mix_stderr)", "8.2", date(2025, 5, 10), 0.2, "8.2.0: mix_stderr removed"),
    _run("django", "django", "django.utils.six", "3", date(2019, 12, 2), 0.35, "3.0: Python 2 helpers removed"),
    _run("django", "django.utils.translation", "ugettext", "4", date(2021, 12, 7), 0.4, "4.0: features removed"),
    _run("elasticsearch", "elasticsearch", "positional arguments", "8", date(2022, 2, 10), 0.5, "8.0 migration guide"),
    _run("flask", "flask", "_request_ctx_stack", "2.3", date(2023, 4, 25), 0.25, "2.3.0: deprecated code removed"),
    _run("flask", "flask", "Markup", "3", date(2023, 9, 30), 0.15, "3.0.0: deprecated code removed"),
    _run("httpx", "httpx", "Client(proxies)", "0.28", date(2024, 11, 28), 0.35, "0.28.0: proxies, app removed"),
    _run(
        "importlib-metadata",
        "importlib_metadata",
        "EntryPoints.get",
        "5",
        date(2022, 10, 1),
        0.3,
        "v5.0.0: deprecated interfaces to entry points removed",
    ),
    _run("itsdangerous", "itsdangerous", "json", "2.1", date(2022, 2, 18), 0.3, "2.1.0: JWS, json removed"),
    _run("jinja2", "jinja2", "escape", "3.1", date(2022, 3, 24), 0.45, "3.1.0: escape, Markup, contextfilter removed"),
    _run(
        "lxml", "lxml", "lxml.html.clean", "5.2", date(2024, 3, 30), 0.12, "5.2.0: lxml.html.clean is its own project"
    ),
    _run("markupsafe", "markupsafe", "soft_unicode", "2.1", date(2022, 2, 18), 0.6, "2.1.0: soft_unicode removed"),
    _run("marshmallow", "marshmallow", "strict schemas", "3", date(2019, 8, 18), 0.6, "Upgrading to 3.0"),
    _run("networkx", "networkx", "info", "3", date(2023, 1, 8), 0.2, "3.0: deprecations expired"),
    _run("numpy", "numpy", "float", "1.24", date(2022, 12, 18), 0.35, "1.24.0: aliases of builtins expired"),
    _run("numpy", "numpy", "float_", "2", date(2024, 6, 16), 0.3, "2.0.0: NEP 52"),
    _run(
        "packaging", "packaging.version", "LegacyVersion", "22", date(2022, 12, 8), 0.12, "22.0: LegacyVersion removed"
    ),
    _run("pandas", "pandas", "DataFrame.ix", "1", date(2020, 1, 29), 0.25, "1.0.0: removal of prior deprecations"),
    _run("pandas", "pandas", "DataFrame.append", "2", date(2023, 4, 3), 0.35, "2.0.0: removal of prior deprecations"),
    _run("pillow", "PIL", "FreeTypeFont.getsize", "10", date(2023, 7, 1), 0.25, "10.0.0: constants, getsize removed"),
    _run("protobuf", "google.protobuf", "descriptors of protoc < 3.19", "4", date(2022, 5, 26), 0.4, "4.21.0"),
    _run("pydantic", "pydantic", "BaseSettings", "2", date(2023, 6, 30), 0.7, "Migration guide of V2"),
    _run("pyyaml", "yaml", "load() without Loader", "6", date(2021, 10, 13), 0.25, "6.0: load requires Loader"),
    _run("sqlalchemy", "sqlalchemy", "Engine.execute", "2", date(2023, 1, 26), 0.5, "2.0: migration guide"),
    _run("urllib3", "urllib3", "Retry(method_whitelist)", "2", date(2023, 4, 26), 0.15, "v2 migration guide"),
    _run(
        "werkzeug",
        "werkzeug",
        "werkzeug.contrib",
        "1",
        date(2020, 2, 6),
        0.3,
        "1.0.0: contrib, top-level names removed",
    ),
    _run("werkzeug", "werkzeug", "BaseResponse", "2.1", date(2022, 3, 28), 0.25, "2.1.0: deprecated code removed"),
    _run("werkzeug", "werkzeug.urls", "url_quote", "3", date(2023, 9, 30), 0.4, "3.0.0: werkzeug.urls removed"),
)

INTERPRETERS: tuple[InterpreterBreak, ...] = (
    InterpreterBreak((3, 10), date(2021, 10, 4), "collections.Mapping", 0.15, "What's New in 3.10: Removed"),
    InterpreterBreak((3, 11), date(2022, 10, 24), "inspect.getargspec", 0.06, "What's New in 3.11: Removed"),
    InterpreterBreak((3, 12), date(2023, 10, 2), "assertEquals", 0.12, "What's New in 3.12: Removed"),
    InterpreterBreak((3, 12), date(2023, 10, 2), "distutils", 0.12, "What's New in 3.12: PEP 632"),
    InterpreterBreak((3, 12), date(2023, 10, 2), "imp", 0.08, "What's New in 3.12: Removed"),
    InterpreterBreak((3, 13), date(2024, 10, 7), "cgi", 0.06, "What's New in 3.13: PEP 594"),
)

NOSE = InterpreterBreak((3, 10), date(2021, 10, 4), "collections.Callable", 0.95, "nose 1.3.7, its last release")
"""nose itself uses what Python 3.10 took away, on every run."""
