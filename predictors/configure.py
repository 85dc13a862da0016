"""pkg-config, meson, CMake, autotools, and the checks of setup scripts."""

from __future__ import annotations

from specbuild.failures import (
    Failure,
    MissingCMakePackage,
    MissingCommand,
    MissingDevelopmentFiles,
    MissingHeader,
    MissingLibrary,
    MissingMacro,
    MissingPkgConfig,
    MissingProjectFile,
    NotBuilt,
    UnreachableSource,
    VersionOutOfRange,
    Weight,
)
from specbuild.predictors.signature import always, signature

_MESON = r"(?:\S{1,300}:\d{1,7}:\d{1,7}: )?ERROR: "


def _lower(name: str, evidence: str) -> Failure:
    return MissingDevelopmentFiles(name=name.lower(), evidence=evidence)


def _alternatives(modules: str, evidence: str) -> Failure:
    first, *others = modules.split(" or ")
    return MissingPkgConfig(module=first, alternatives=tuple(others), evidence=evidence)


def _several(names: str, evidence: str) -> tuple[Failure, ...]:
    return tuple(MissingDevelopmentFiles(name=name, evidence=evidence) for name in names.split(" and "))


def _meson_dependency(module: str, evidence: str, tried: str = "", requirement: str = "") -> Failure:
    if "pkg" in tried or not tried:
        return MissingPkgConfig(module=module, requirement=requirement, evidence=evidence)
    return MissingCMakePackage(package=module, evidence=evidence)


def _no_tool(module: str, evidence: str) -> tuple[Failure, ...]:
    return (
        MissingCommand(command="pkg-config", evidence=evidence),
        MissingPkgConfig(module=module, evidence=evidence),
    )


def _required(evidence: str, module: str = "", requirement: str = "") -> Failure:
    return MissingPkgConfig(module=module, requirement=requirement, evidence=evidence)


def _escaped(module: str, evidence: str, none: str = "") -> Failure:
    if none:
        return MissingCommand(command="pkg-config", evidence=evidence)
    return MissingPkgConfig(module=module, evidence=evidence)


def _considered(package: str, evidence: str) -> Failure:
    return MissingCMakePackage(package=package, evidence=evidence, weight=Weight.SYMPTOM)


def _by_variable(evidence: str, variable: str = "") -> Failure | None:
    return MissingPkgConfig(module=variable.lower(), evidence=evidence)


def _loaded_while_building(library: str, evidence: str) -> Failure | None:
    """A name without a version is a link of the development package."""
    return MissingLibrary(library=library, when="link", evidence=evidence)


SIGNATURES = (
    signature(
        "was not found in the pkg-config search path",
        r"Package ['\"]?(?P<module>[^\s'\"]{1,100})['\"]? was not found in the pkg-config search path",
        MissingPkgConfig,
        ("Package libusb-1.0 was not found in the pkg-config search path.", MissingPkgConfig(module="libusb-1.0")),
    ),
    signature(
        ("', required by '", "No package '"),
        r"(?:Package|No package) '(?P<module>[^\s']{1,100})'(?:, required by '[^']{1,100}', not)? found$",
        MissingPkgConfig,
        ("Package 'zlib', required by 'virtual:world', not found", MissingPkgConfig(module="zlib")),
        ("--   No package 'gtk+-3.0' found", MissingPkgConfig(module="gtk+-3.0")),
    ),
    signature(
        "CalledProcessError: Command",
        r"subprocess\.CalledProcessError: Command '[\[(]'pkg-config', (?:'--?[\w-]{1,40}(?:=[^']{0,40})?', ){0,4}"
        r"'(?P<module>[^\s'-][^\s']{0,100})'[\])]' returned non-zero",
        MissingPkgConfig,
        (
            (
                "subprocess.CalledProcessError: Command '['pkg-config', '--libs-only-L', 'libvirt']' returned non-zero"
                " exit status 1."
            ),
            MissingPkgConfig(module="libvirt"),
        ),
    ),
    signature(
        "ERROR: Dependency ",
        _MESON + r"Dependency \"(?P<module>[^\s\"]{1,100})\" (?:\((?P<requirement>[^)]{1,60})\) )?"
        r"(?:was )?not found(?: ?,? ?\(?tried (?P<tried>[^)]{1,80}))?",
        _meson_dependency,
        (
            '../m/meson.build:9:1: ERROR: Dependency "pixman-1" not found (tried pkg-config)',
            MissingPkgConfig(module="pixman-1"),
        ),
        (
            'meson.build:9:1: ERROR: Dependency "OpenMP" not found, tried system',
            MissingCMakePackage(package="OpenMP"),
        ),
        near=("Run-time dependency pixman-1 found: NO (tried pkgconfig and cmake)",),
    ),
    signature(
        "failed: Pkg-config",
        _MESON + r"Dependency lookup for (?P<module>\S{1,100}) with method 'pkg-?config' failed: "
        r"Pkg-config for machine .{1,40} not found",
        _no_tool,
        (
            (
                "ERROR: Dependency lookup for zlib with method 'pkg-config' failed: Pkg-config for machine host "
                "machine not found. Giving up."
            ),
            (MissingCommand(command="pkg-config"), MissingPkgConfig(module="zlib")),
        ),
    ),
    signature(
        "ould not detect Ninja",
        _MESON + r"Could not detect Ninja v[\d.]{1,12} or newer",
        always(MissingCommand, command="ninja"),
        ("ERROR: Could not detect Ninja v1.8.2 or newer", MissingCommand(command="ninja")),
    ),
    signature(
        "not found or not executable",
        _MESON + r"Program(?:s|\(s\))? '?(?:\[')?(?P<command>[\w.+-]{1,60})'?\]? not found or not executable",
        MissingCommand,
        (
            "../meson.build:20:7: ERROR: Program 'msgfmt' not found or not executable",
            MissingCommand(command="msgfmt"),
        ),
    ),
    signature(
        "error: Package requirements",
        r"configure: error: Package requirements \((?P<module>[^\s)]{1,100})"
        r"(?: (?P<requirement>[<>=]{1,2} [^\s),]{1,40}))?",
        MissingPkgConfig,
        (
            "configure: error: Package requirements (gio-2.0 >= 2.50 gtk4) were not met:",
            MissingPkgConfig(module="gio-2.0", requirement=">= 2.50"),
        ),
    ),
    signature(
        "Cannot find ",
        r"Cannot find (?P<modules>lib[\w.+-]{1,60}(?: or lib[\w.+-]{1,60}){0,4}):$",
        _alternatives,
        (
            "Cannot find libusb or libusb-1.0:",
            MissingPkgConfig(module="libusb", alternatives=("libusb-1.0",)),
        ),
    ),
    signature(
        "find valid pkg-config name",
        r"(?:Exception: )?Can ?not find valid pkg-config name",
        _by_variable,
        (
            "Exception: Can not find valid pkg-config name.\nSpecify FOO_CFLAGS and FOO_LDFLAGS env vars manually",
            MissingPkgConfig(module="foo"),
        ),
        follow=r"Specify (?P<variable>[A-Z0-9_]{1,40})_CFLAGS and ",
    ),
    signature(
        "A required package was not found",
        r"A required package was not found$",
        always(MissingPkgConfig, module="", weight=Weight.SYMPTOM),
        ("  A required package was not found", MissingPkgConfig(module="", weight=Weight.SYMPTOM)),
    ),
    signature(
        ("Could not find a package", "Could not find a configuration"),
        r"(?:CMake Error: )?Could not find a (?:package )?(?:configuration )?"
        r"(?:configuration file|file) provided by \"(?P<package>[^\s\"]{1,100})\"",
        MissingCMakePackage,
        (
            '  Could not find a package configuration file provided by "Catch2" with any of',
            MissingCMakePackage(package="Catch2"),
        ),
    ),
    signature(
        "Could NOT find ",
        r"Could NOT find (?P<package>\w[\w.+-]{0,80})[ ,].{0,400}\(missing: ",
        MissingCMakePackage,
        ("  Could NOT find ZLIB (missing: ZLIB_LIBRARY ZLIB_INCLUDE_DIR)", MissingCMakePackage(package="ZLIB")),
        near=("-- Could NOT find Doxygen, documentation will not be built",),
    ),
    signature(
        "is required.  You are running version",
        r"CMake (?P<required>[\d.]{1,16}) or higher is required\.  You are running version (?P<found>[\d.]{1,16}\d)",
        always(VersionOutOfRange, tool="cmake"),
        (
            "  CMake 3.30 or higher is required.  You are running version 3.25.1",
            VersionOutOfRange(tool="cmake", required="3.30", found="3.25.1"),
        ),
    ),
    signature(
        "Compatibility with CMake < ",
        r"Compatibility with CMake < (?P<because>[\d.]{1,8}\d) has been removed",
        always(VersionOutOfRange, tool="cmake", required="<4"),
        (
            "  Compatibility with CMake < 3.5 has been removed from CMake.",
            VersionOutOfRange(tool="cmake", required="<4", because="3.5"),
        ),
    ),
    signature(
        "unable to find a build program",
        r"CMake Error: CMake was unable to find a build program corresponding to \"Ninja\"",
        always(MissingCommand, command="ninja"),
        (
            'CMake Error: CMake was unable to find a build program corresponding to "Ninja".  CMAKE_MAKE_PROGRAM is',
            MissingCommand(command="ninja"),
        ),
    ),
    signature(
        "unable to find a build program",
        r"CMake Error: CMake was unable to find a build program corresponding to \"Unix Makefiles\"",
        always(MissingCommand, command="make"),
        (
            'CMake Error: CMake was unable to find a build program corresponding to "Unix Makefiles".  CMAKE_MAKE',
            MissingCommand(command="make"),
        ),
    ),
    signature(
        " failed: ",
        r"(?:Build|CMake|Update|Configure) step for (?P<url>[\w.-]{1,80}) failed: ",
        always(UnreachableSource, role="fetched-content"),
        (
            "  CMake step for googletest failed: 1",
            UnreachableSource(url="googletest", role="fetched-content"),
        ),
    ),
    signature(
        "undefined macro",
        r"(?:\S{1,200}:\d{1,6}: )?(?:error|warning): possibly undefined macro: (?P<macro>\w{1,80})",
        MissingMacro,
        ("configure.ac:7: error: possibly undefined macro: AX_PTHREAD", MissingMacro(macro="AX_PTHREAD")),
    ),
    signature(
        "Please make sure the ",
        r"(?:Error: )?Please make sure the (?P<names>[\w.+-]{1,40}(?: and [\w.+-]{1,40}){0,3}) development packages? "
        r"(?:is|are) installed",
        _several,
        (
            "Error: Please make sure the libfoo development package is installed.",
            MissingDevelopmentFiles(name="libfoo"),
        ),
    ),
    signature(
        "could not be found for ",
        r"(?:The )?headers or library files could not be found for (?P<name>[\w.+-]{1,40})",
        MissingDevelopmentFiles,
        (
            "The headers or library files could not be found for zlib,",
            MissingDevelopmentFiles(name="zlib"),
        ),
    ),
    signature(
        ("make sure ", "ould not find "),
        r"(?:\.\. )?(?:[A-Za-z]{1,20}:{1,2} )?(?:Unable to load dependency|Could not find a local|did not find|"
        r"[Cc]ould not find(?: the)?) (?P<name>[A-Z][\w+-]{1,30})(?: headers|, make sure| installation| library)",
        _lower,
        (
            "error: Unable to load dependency NETCDF, make sure NETCDF is installed properly",
            MissingDevelopmentFiles(name="netcdf"),
        ),
        (
            ".. ERROR:: Could not find a local BLOSC installation headers (hdrdir=None) and/or libdir (libdir=False).",
            MissingDevelopmentFiles(name="blosc"),
        ),
    ),
    signature(
        "did not find ",
        r"(?:ValueError|RuntimeError|Exception|error): did not find (?P<name>\w[\w+-]{1,30}) headers$",
        _lower,
        ("ValueError: did not find NETCDF headers", MissingDevelopmentFiles(name="netcdf")),
    ),
    signature(
        "and this `-sys` crate cannot",
        r"Could not find directory of (?P<name>[\w.+-]{1,40}) installation, and this `-sys` crate cannot",
        _lower,
        (
            "Could not find directory of LibreSSL installation, and this `-sys` crate cannot",
            MissingDevelopmentFiles(name="libressl"),
        ),
    ),
    signature(
        "not in path",
        r"error: (?P<name>[\w.+-]{1,40}) is not installed or not in path",
        MissingDevelopmentFiles,
        ("error: xmlsec1 is not installed or not in path.", MissingDevelopmentFiles(name="xmlsec1")),
    ),
    signature(
        "annot open shared object file",
        r"error: (?P<library>lib[\w.+-]{1,80}\.so): cannot open shared object file",
        _loaded_while_building,
        (
            "error: libnetcdf.so: cannot open shared object file: No such file or directory",
            MissingLibrary(library="libnetcdf.so", when="link"),
        ),
    ),
    signature(
        "By not providing ",
        r"By not providing \"Find(?P<package>[^\s\"]{1,80})\.cmake\" in CMAKE_MODULE_PATH",
        MissingCMakePackage,
        (
            '  By not providing "FindQt6.cmake" in CMAKE_MODULE_PATH this project has',
            MissingCMakePackage(package="Qt6"),
        ),
    ),
    signature(
        "FOUND to FALSE so",
        r"but it set \S{1,80}_FOUND to FALSE so package \"(?P<package>[^\s\"]{1,80})\"",
        _considered,
        (
            '  but it set Qt6_FOUND to FALSE so package "Qt6" is considered to be NOT',
            MissingCMakePackage(package="Qt6", weight=Weight.SYMPTOM),
        ),
    ),
    signature(
        "required packages were not found",
        r"The following required packages were not found:$",
        _required,
        (
            "  The following required packages were not found:\n\n   - gtk4>=4.2",
            MissingPkgConfig(module="gtk4", requirement=">=4.2"),
        ),
        follow=r"- (?P<module>[\w.+-]{1,80})(?P<requirement>[<>=]{1,2}[\w.]{1,20})?$",
    ),
    signature(
        "was not found",
        r"The system library `(?P<module>[^`\s]{1,80})` required by crate `[^`]{1,80}` was not found",
        MissingPkgConfig,
        (
            "  The system library `alsa` required by crate `alsa-sys` was not found.",
            MissingPkgConfig(module="alsa"),
        ),
    ),
    signature(
        "pkg_config fail",
        r"run pkg_config fail: \"`?(?:Failed to run `)?\\\"pkg-config\\\" .{0,120}?\\\"(?P<module>\w[\w.+-]{0,60})"
        r"(?: [^\"]{0,40})?\\\"`(?P<none>: No such file)?",
        _escaped,
        (
            'run pkg_config fail: "`\\"pkg-config\\" \\"--libs\\" \\"alsa\\"` did not exit successfully',
            MissingPkgConfig(module="alsa"),
        ),
        (
            'run pkg_config fail: "Failed to run `\\"pkg-config\\" \\"--libs\\" \\"alsa\\"`: No such file or',
            MissingCommand(command="pkg-config"),
        ),
    ),
    signature(
        "configure: error: ",
        r"configure: error: (?:\*{1,4} ?)?(?:(?:[Cc]an(?:not|'t|not)|[Cc]ould not|[Uu]nable to) find (?:the )?)?"
        r"(?P<name>lib[\w.+-]{1,40}|[A-Z]?[A-Za-z0-9]{2,20})(?: (?:library|libraries|headers?|development files))?"
        r"(?: (?:was |were )?not found| (?:is|are) (?:required|missing|needed)|$)",
        _lower,
        ("configure: error: libevent not found", MissingDevelopmentFiles(name="libevent")),
        ("configure: error: cannot find OpenSSL headers", MissingDevelopmentFiles(name="openssl")),
        near=("configure: error: in `/w/build':", "configure: error: see `config.log' for details"),
    ),
    signature(
        "is missing. ",
        r"(?P<name>[a-z][\w.+-]{1,30}) is missing\. (?:[Pp]lease (?:locate|install)|[Tt]ry )",
        MissingDevelopmentFiles,
        (
            "libiconv is missing. Please locate mkmf.log to investigate how it is failing.",
            MissingDevelopmentFiles(name="libiconv"),
        ),
    ),
    signature(
        "configure: line ",
        r"(?:\S{0,60}/)?configure: line \d{1,6}: ` {0,12}(?P<macro>[A-Z]{1,6}_[A-Z0-9_]{2,60})\(",
        MissingMacro,
        ("./configure: line 52: `  PKG_CHECK_MODULES(A, a)'", MissingMacro(macro="PKG_CHECK_MODULES")),
    ),
    signature(
        "error: required file '",
        r"\S{1,80}:\d{1,6}: error: required file '[./]{0,12}ltmain\.sh' not found",
        always(MissingCommand, command="libtoolize"),
        (
            "configure.ac:3: error: required file './ltmain.sh' not found",
            MissingCommand(command="libtoolize"),
        ),
    ),
    signature(
        "but project requires",
        _MESON
        + r"Meson version is (?P<found>[\d.]{1,16}) but project requires (?P<required>[<>=!]{0,2} ?[\d.]{1,16}\d)",
        always(VersionOutOfRange, tool="meson"),
        (
            "meson.build:1:0: ERROR: Meson version is 0.49.2 but project requires >=0.60",
            VersionOutOfRange(tool="meson", required=">=0.60", found="0.49.2"),
        ),
    ),
    signature(
        "ERROR: C",
        _MESON + r"(?:C|C\+\+) header '(?P<header>[^\s']{1,120})' not found",
        MissingHeader,
        ("../meson.build:7:5: ERROR: C header 'pcap.h' not found", MissingHeader(header="pcap.h")),
    ),
    signature(
        "ERROR: ",
        _MESON + r"(?:C|C\+\+|Fortran) (?:shared or static|static or shared|shared|static) library '"
        r"(?P<library>[^\s']{1,80})' not found",
        always(MissingLibrary, when="link"),
        (
            "../meson.build:7:5: ERROR: C shared or static library 'blas' not found",
            MissingLibrary(library="blas", when="link"),
        ),
    ),
    signature(
        "Neither ",
        r"(?:ERROR: )?Neither (?:source )?directory .{0,200}contains? a build file meson\.build",
        always(MissingProjectFile, path="meson.build", tool="meson"),
        (
            "ERROR: Neither source directory '/w' nor build directory None contain a build file meson.build.",
            MissingProjectFile(path="meson.build", tool="meson"),
        ),
    ),
    signature(
        "error: loading 'build.ninja'",
        r"ninja: error: loading '(?P<path>build\.ninja)': No such file",
        always(NotBuilt, weight=Weight.SYMPTOM),
        (
            "ninja: error: loading 'build.ninja': No such file or directory",
            NotBuilt(path="build.ninja", weight=Weight.SYMPTOM),
        ),
    ),
)
"""What is looked for before anything is compiled."""
