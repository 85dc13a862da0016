"""What Debian has at hand when it builds a project and runs its tests: programs, servers, libraries that are loaded."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from specbuild.failures import MissingCommand, MissingLibrary, ServiceNeeded
from specbuild.knowledge.kinds import BuildNeeds
from specbuild.predictors.foresee import chances, compilers
from specbuild.predictors.foresee.contract import Foreseen
from specbuild.predictors.foresee.view import View, linked
from specbuild.recipe import Level, StepKind

PROGRAMS = {
    "bzr": "bzr",
    "curl": "curl",
    "dvipng": "dvipng",
    "ffmpeg": "ffmpeg",
    "gdal-bin": "gdalinfo",
    "ghostscript": "gs",
    "git": "git",
    "gnupg": "gpg",
    "graphviz": "dot",
    "imagemagick": "convert",
    "less": "less",
    "lsof": "lsof",
    "man-db": "man",
    "mercurial": "hg",
    "openssh-client": "ssh",
    "openssl": "openssl",
    "pandoc": "pandoc",
    "procps": "ps",
    "proj-bin": "proj",
    "rsync": "rsync",
    "subversion": "svn",
    "swig": "swig",
    "tmux": "tmux",
    "unzip": "unzip",
    "zsh": "zsh",
}
"""Package → the program that is called."""

_DOCUMENTATION = frozenset({"dvipng", "pandoc"})
"""More often for a manual than for tests."""

AT_BUILD = frozenset({"proj-bin", "swig", "gdal-bin"})
"""Called by builds of compiled code."""

SERVERS = {
    "apache2": "http",
    "default-mysql-server": "mysql",
    "krb5-kdc": "kdc",
    "mariadb-server": "mysql",
    "memcached": "memcached",
    "mosquitto": "mqtt",
    "postgresql": "postgresql",
    "rabbitmq-server": "rabbitmq",
    "redis": "redis",
    "redis-server": "redis",
    "slapd": "ldap",
    "xvfb": "display",
}
"""Package → the service, as readers of output call it."""

_LIBRARY = re.compile(r"lib(?P<stem>[a-z][a-z0-9+.-]*?)-?\d+(?:t64)?")
"""A package of a shared library, called after the library and its interface's version (Debian Policy 8.1)."""

_ORDINARY = frozenset({"glib2.0", "stdc++", "gcc-s"})
"""Libraries that come with those that are asked for."""


def foresee(view: View) -> Iterable[Foreseen]:
    """What the project, and what it loads, will look for."""
    if not view.bare:
        return
    needs = view.needs(view.own_name) if view.own_name else None
    if needs is not None:
        yield from _programs(view, needs)
        yield from _servers(view, needs)
        if not view.facts.extensions and not compilers.by_debian(needs):
            yield from _loaded(view, needs, chances.OWN_RUNTIME_LIBRARY, view.own_name)
    yield from _loaded_by_others(view)


def _programs(view: View, needs: BuildNeeds) -> Iterator[Foreseen]:
    required = {fact.value.lower() for fact in view.facts.build_requires}
    for package in needs.packages:
        program = PROGRAMS.get(package)
        if program is None or view.has(package, program) or any(name.startswith(package) for name in required):
            continue
        building = package in AT_BUILD and bool(view.facts.extensions) and view.contents.project is not None
        chance = chances.OWN_TOOLS if building else chances.TEST_PROGRAM
        if package.removesuffix("-bin") in view.own_name:
            chance = chances.OWN_PROGRAM
        yield Foreseen(
            failure=MissingCommand(command=program),
            probability=chance * (chances.UNPINNED / 2 if package in _DOCUMENTATION else 1.0),
            at=view.first(StepKind.BUILD, StepKind.DEPENDENCIES) if building else StepKind.TEST,
            why=f"{_by(needs)} {package}",
        )


def _servers(view: View, needs: BuildNeeds) -> Iterator[Foreseen]:
    check = view.outlook.candidate.recipe.check
    started = {name for name, _ in check.services}
    for package in needs.packages:
        service = SERVERS.get(package)
        # Some suites start the server by themselves: then its programs are enough.
        if service and service not in started and not view.has(package) and check.level in (Level.TESTS, Level.COMMAND):
            yield Foreseen(
                failure=ServiceNeeded(service=service),
                probability=chances.DISPLAY if service == "display" else chances.DEBIAN_SERVER,
                at=StepKind.TEST,
                why=f"{_by(needs)} {package}: its tests talk to a server",
            )


def _loaded_by_others(view: View) -> Iterator[Foreseen]:
    """Wheels without compiled code may load libraries of the system; those with compiled code bring theirs along."""
    for chosen in view.resolution:
        pure = chosen.wheel is not None and chosen.release is not None and chosen.release.native is False
        needs = view.needs(chosen.wanted.name) if pure else None
        if needs is not None and not compilers.by_debian(needs):
            chance = chances.OTHERS_RUNTIME_LIBRARY * (chances.UNPINNED if chosen.wanted.asked_by else 1.0)
            yield from _loaded(view, needs, chance, chosen.wanted.name)


def _loaded(view: View, needs: BuildNeeds, chance: float, of: str) -> Iterator[Foreseen]:
    """A shared library that code without anything to compile loads by ctypes or cffi.

    Of several one stands for all: they are missed together, and what Debian has brings them together.
    """
    stems = {
        package: stem for package in needs.packages if (stem := _stem(package, needs, development=of == view.own_name))
    }
    absent = [one for one in stems if stems[one] not in _ORDINARY and not view.has(one, f"lib{stems[one]}-dev")]
    if absent:
        package = next((one for one in absent if view.owned(stems[one])), absent[0])
        yield Foreseen(
            failure=MissingLibrary(library=stems[package], when="load"),
            probability=chance,
            at=StepKind.TEST,
            why=f"{_by(needs)} {', '.join(absent)}, though it has nothing to compile: it is loaded at run time",
            evidence=view.named(of),
        )


def _stem(package: str, needs: BuildNeeds, *, development: bool) -> str:
    """The name of the library; empty for other packages.

    `development` packages count for the project itself: of what it depends on, they are for parts that few use.
    """
    named = _LIBRARY.fullmatch(package)
    if named:
        return named["stem"]
    if development and package in linked(needs.libraries) and package.startswith("lib"):
        return package.removeprefix("lib").removesuffix("-dev")
    return ""


def _by(needs: BuildNeeds) -> str:
    return f"Debian builds {needs.source} {needs.version} with"
