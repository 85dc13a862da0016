"""What is missing on the system: files that packages of the distribution own, found in its indexes."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence

from specbuild.failures import (
    CompilerFailed,
    Failure,
    MissingBrowser,
    MissingCMakePackage,
    MissingCommand,
    MissingConfigTool,
    MissingData,
    MissingDevelopmentFiles,
    MissingHeader,
    MissingLibrary,
    MissingMacro,
    MissingPkgConfig,
    MissingTimezone,
)
from specbuild.knowledge.kinds import Ecosystem, PathKind
from specbuild.knowledge.paths import classify
from specbuild.recipe import StepKind
from specbuild.repairs import apt, browsers, needs, toolchains
from specbuild.repairs.contract import Case, Repair
from specbuild.repairs.owners import FOUND, Share, owned, share_out, shares

_AUTOTOOLS = ("autoconf", "automake", "libtool")
"""They call each other: whoever misses one will miss the others."""

_MACROS = {
    "AC_PROG_LIBTOOL": "libtool",
    "AM_PROG_LIBTOOL": "libtool",
    "LT_INIT": "libtool",
    "PKG_CHECK_MODULES": "pkg-config",
    "PKG_PROG_PKG_CONFIG": "pkg-config",
    "AM_GNU_GETTEXT": "gettext",
    "AM_PATH_PYTHON": "automake",
}
"""Macros whose file is called otherwise, by the package of the tool; all others are found by their names."""

_DATA = (
    ("/etc/ssl/certs", "ca-certificates"),
    ("/etc/mime.types", "media-types"),
    ("/etc/services", "netbase"),
    ("/etc/protocols", "netbase"),
    ("/usr/share/dict/words", "wamerican"),
    ("/usr/share/X11/xkb", "xkb-data"),
    ("/usr/share/mime", "shared-mime-info"),
    ("/usr/share/fonts", "fonts-dejavu-core"),
    ("/usr/share/zoneinfo", "tzdata"),
)
"""What programs take for granted, of which no index is kept."""

_ELSEWHERE = 0.3
"""Odds for a program that is an ecosystem's own, and whose package manager has it too."""

_BY_NAME = 0.7
"""Probability where only a name agrees, not a file."""

_MAKE = frozenset({"make", "gmake"})
"""Makefiles call compilers, and who misses the one in a bare system misses the other."""

_BUILDERS = frozenset({"devel", "interpreters", "libdevel"})
"""Sections of programs that builds run, so that compilers and the project's other needs come along."""

_ECOSYSTEMS = frozenset({"python", "javascript", "ruby", "rust", "php", "golang", "perl", "haskell"})


def repair(failure: Failure, case: Case) -> Iterable[Repair]:
    """Repairs of what a package of the distribution brings."""
    match failure:
        case MissingHeader():
            return _header(failure.header, case)
        case MissingLibrary():
            return _library(failure, case)
        case MissingPkgConfig():
            return _pkg_config(failure, case)
        case MissingConfigTool():
            return _config_tool(failure.tool, case)
        case MissingCommand():
            return _command(failure, case)
        case MissingCMakePackage():
            return _cmake(failure.package, case)
        case MissingMacro():
            return _macro(failure.macro, case)
        case MissingDevelopmentFiles():
            return _development(failure.name, case)
        case MissingData():
            return _data(failure.path, case)
        case MissingTimezone():
            return _timezone(failure.zone, case)
        case MissingBrowser():
            return browsers.browser(failure.browser, case)
        case CompilerFailed():
            return toolchains.compiler(failure.compiler, case)
        case _:
            return ()


def _header(header: str, case: Case) -> Iterator[Repair]:
    yield from owned(case, shares(case, PathKind.HEADER, header), what=f"the header {header}", builds=True)


def _library(failure: MissingLibrary, case: Case) -> Iterator[Repair]:
    stem = re.sub(r"\.so(\.\d+)*$", "", failure.library).removeprefix("lib")
    if failure.when == "link":
        what = f"the library {stem} to link with"
        yield from owned(case, shares(case, PathKind.LINK_LIBRARY, stem), what=what, builds=True)
        return
    built = case.step.kind in (StepKind.BUILD, StepKind.DEPENDENCIES) and not re.search(r"\.so\.\d", failure.library)
    if built:
        # Who loads a library for a build looks for its headers next.
        dev = shares(case, PathKind.LINK_LIBRARY, stem)
        yield from owned(case, dev, what=f"the library {stem}", builds=True)
        built = bool(dev)
    found = _loadable(failure.library, case)
    factor = FOUND * (0.5 if built else 1.0)
    yield from owned(case, found, what=f"the library {failure.library}", builds=False, probability=factor)
    yield from _loaded_together(found, case)


def _loadable(library: str, case: Case) -> tuple[Share, ...]:
    """Owners of a library by the names that loaders go through: `libgobject-2.0-0` is one of Windows."""
    for name in (library, library.removeprefix("lib"), re.sub(r"-\d+$", "", library), f"{library}.so"):
        if found := shares(case, PathKind.SHARED_LIBRARY, name):
            return found
    return ()


def _loaded_together(found: Sequence[Share], case: Case) -> Iterator[Repair]:
    """The library with all others that Debian's tests of the project load."""
    names = [share.package for share in found]
    whole = needs.agreeing(case, names) if names else None
    if whole is None:
        return
    known = case.knowledge.packages(whole.packages, release=case.release)
    loaded = [name for name in whole.packages if name in known and known[name].section == "libs"]
    if len(apt.missing(loaded, case)) > 1:
        why = f"{case.release} tests {whole.source} with {', '.join(loaded)}"
        yield from apt.install(loaded, case, why=why, probability=needs.TOGETHER, source="index")


def _pkg_config(failure: MissingPkgConfig, case: Case) -> Iterator[Repair]:
    modules = [module for module in (failure.module, *failure.alternatives) if module]
    factor = FOUND
    for module in modules:
        found = shares(case, PathKind.PKG_CONFIG, module)
        if found:
            what = f"the pkg-config module {module}"
            yield from owned(case, found, what=what, builds=True, along=("pkg-config",), probability=factor)
            factor *= 0.5
    if modules and factor == FOUND:
        yield from _development(modules[0], case)


def _config_tool(tool: str, case: Case) -> Iterator[Repair]:
    found = shares(case, PathKind.PROGRAM, tool)
    if found:
        yield from owned(case, found, what=f"the program {tool}", builds=True)
    else:
        yield from _development(tool.removesuffix("-config").removesuffix("_config"), case)


def _command(failure: MissingCommand, case: Case) -> Iterator[Repair]:
    command = failure.command.rpartition("/")[2]
    if "find Python" in failure.evidence:
        yield from toolchains.node_gyp(case)
    elif toolchains.of(command) or (command in _MAKE and apt.compilers(case)):
        yield from toolchains.language(toolchains.of(command) or "c++", case)
    elif package := toolchains.INTERPRETER.get(command):
        why = f"{package} has {command} for Python 3"
        yield from apt.install((package,), case, why=why, probability=FOUND, source="rule")
    else:
        yield from _program(command, case)


def _program(command: str, case: Case) -> Iterator[Repair]:
    what = f"the program {command}"
    owners = case.knowledge.owner(PathKind.PROGRAM, command, release=case.release)
    found = share_out(case, PathKind.PROGRAM, owners)
    if not found:
        return
    if found[0].package in _AUTOTOOLS:
        why = f"{case.release}'s {found[0].package} has {what}; the three tools call each other"
        yield from apt.install(_AUTOTOOLS, case, why=why, probability=FOUND, source="rule", along=apt.compilers(case))
        return
    section = owners[0].section.rpartition("/")[2]
    foreign = section in _ECOSYSTEMS
    if foreign and needs.is_own(case, owners[0].package):
        return
    built = section in _BUILDERS and case.step.kind in (StepKind.BUILD, StepKind.DEPENDENCIES)
    yield from owned(case, found, what=what, builds=built, probability=_ELSEWHERE if foreign else FOUND)


def _cmake(package: str, case: Case) -> Iterator[Repair]:
    if tools := toolchains.of_cmake(package):
        why = f"CMake looks for {package} in what {', '.join(tools)} bring"
        yield from apt.install(tools, case, why=why, probability=FOUND, source="rule", along=apt.compilers(case))
        return
    found = shares(case, PathKind.CMAKE, package)
    if found:
        yield from owned(case, found, what=f"the CMake configuration of {package}", builds=True)
    else:
        yield from _development(package, case)


def _macro(macro: str, case: Case) -> Iterator[Repair]:
    if package := _MACROS.get(macro):
        why = f"{package} brings the macro {macro}"
        yield from apt.install((package,), case, why=why, probability=FOUND, source="rule")
        return
    for name in _macro_files(macro):
        if found := shares(case, PathKind.ACLOCAL, name):
            what = f"{name}.m4, of which the macro {macro} seems to be"
            yield from owned(case, found, what=what, builds=False, probability=_BY_NAME)
            return


def _macro_files(macro: str) -> Iterator[str]:
    """What the file of a macro may be called: `GTK_DOC_CHECK` is of `gtk-doc`, `AX_BOOST_BASE` of `ax_boost_base`."""
    words = macro.lower().split("_")
    plain = words[2:] if words[:2] == ["am", "path"] else words[1:] if words[0] in {"ac", "am", "ax"} else words
    for parts in (words, plain):
        for count in range(len(parts), 0, -1):
            for glue in "_-":
                yield glue.join(parts[:count])


def _development(name: str, case: Case) -> Iterator[Repair]:
    names = case.knowledge.development(name, release=case.release)
    is_project = not names or needs.is_project(case, name)
    built = case.knowledge.build_needs(Ecosystem.PYTHON, name, release=case.release) if is_project else None
    if built and (
        built.libraries or not names
    ):  # foresight calls what a distribution is built with by the distribution's name
        yield from needs.together(case, built, (), why=f"{name} is built from source")
        return
    weights = [4.0**-place for place in range(len(names))]
    found = [Share(package, part / sum(weights)) for package, part in zip(names, weights, strict=True)]
    what = f"the development files of {name}"
    yield from owned(case, found, what=what, builds=True, along=("pkg-config",), probability=_BY_NAME)


def _data(path: str, case: Case) -> Iterator[Repair]:
    for start, package in _DATA:
        if path == start or path.startswith(f"{start}/"):
            why = f"{package} brings {path}"
            yield from apt.install((package,), case, why=why, probability=_BY_NAME, source="rule")
            return
    if not path.startswith(("/usr/", "/lib", "/bin/", "/sbin/")):
        return
    for kept in classify(path.lstrip("/")):
        owners = case.knowledge.owner(kept.kind, kept.name, release=case.release)
        exact = [owner for owner in owners if owner.folder == kept.folder]
        yield from owned(case, share_out(case, kept.kind, exact), what=path, builds=False)
        return


def _timezone(zone: str, case: Case) -> Iterator[Repair]:
    found = shares(case, PathKind.TIME_ZONE, zone)
    if found:
        yield from owned(case, found, what=f"the time zone {zone}", builds=False)
    else:
        names = tuple(case.knowledge.packages(("tzdata", "tzdata-legacy"), release=case.release)) or ("tzdata",)
        why = "the data of time zones, with the names of old"
        yield from apt.install(names, case, why=why, probability=0.4, source="rule")
