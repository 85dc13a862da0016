"""meson and ninja."""

from __future__ import annotations

from specbuild.failures import (
    Failure,
    MissingCMakePackage,
    MissingCommand,
    MissingDevelopmentFiles,
    MissingHeader,
    MissingLibrary,
    MissingModule,
    MissingPkgConfig,
    MissingProjectFile,
    NotBuilt,
    UnreachableSource,
    VersionOutOfRange,
    Weight,
)
from specbuild.predictors.commands import missing_command
from specbuild.predictors.signature import always, signature

_MESON = r"(?:\S{1,300}:\d{1,7}:\d{1,7}: )?ERROR: "


def _meson_dependency(module: str, evidence: str, tried: str = "", requirement: str = "") -> Failure:
    if "pkg" in tried or not tried:
        return MissingPkgConfig(module=module, requirement=requirement, evidence=evidence)
    return MissingCMakePackage(package=module, evidence=evidence)


def _no_tool(module: str, evidence: str) -> tuple[Failure, ...]:
    return (
        MissingCommand(command="pkg-config", evidence=evidence),
        MissingPkgConfig(module=module, evidence=evidence),
    )


_NO_PROGRAMS = frozenset(
    {"library", "dependency", "header", "headers", "it", "file", "package", "module", "support", "files"}
)


def _wrapped(evidence: str, url: str = "") -> Failure:
    return UnreachableSource(url=url, role="fetched-content", evidence=evidence)


def _lowered(name: str, evidence: str) -> Failure:
    return MissingDevelopmentFiles(name=name.lower(), evidence=evidence)


def _problem(command: str, evidence: str) -> Failure | None:
    if command in _NO_PROGRAMS:
        return None
    return (
        MissingDevelopmentFiles(name=command, evidence=evidence)
        if command.startswith("lib")
        else missing_command(command, evidence)
    )


SIGNATURES = (
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
    signature(
        "ERROR: ",
        _MESON + r"(?:Program '?)?(?!file |it |module |dependency |library |header )(?P<command>[a-z][\w.+-]{1,40})'? "
        r"not found$",
        missing_command,
        ("meson.build:5:15: ERROR: python3 not found", MissingCommand(command="python3")),
        near=("ERROR: file not found",),
    ),
    signature(
        "nvalid version, need '",
        _MESON + r"Invalid version, need '(?P<module>[^'\s]{1,80})' \['(?P<requirement>[^']{1,40})'",
        MissingPkgConfig,
        (
            "ERROR: Invalid version, need 'glib-2.0' ['>= 2.66.0'] found '2.56.4'.",
            MissingPkgConfig(module="glib-2.0", requirement=">= 2.66.0"),
        ),
    ),
    signature(
        "found: NO found ",
        _MESON
        + r"Dependency \"(?P<module>[^\s\"]{1,80})\" found: NO found \S{1,20} but need: '(?P<requirement>[^']{1,40})'",
        MissingPkgConfig,
        (
            "meson.build:4:1: ERROR: Dependency \"glib-2.0\" found: NO found 2.56.4 but need: '>= 2.66.0'",
            MissingPkgConfig(module="glib-2.0", requirement=">= 2.66.0"),
        ),
    ),
    signature(
        "ERROR: Problem encountered: ",
        _MESON + r"Problem encountered: .{0,120}?\b(?P<command>[a-z][\w+]{0,20}-[\w.+-]{1,30}|[a-z]{2,20}) (?:was |is "
        r"|could )?not (?:be )?(?:found|installed|available)",
        _problem,
        (
            "../meson.build:9:4: ERROR: Problem encountered: introspection requested but g-ir-scanner not found",
            MissingCommand(command="g-ir-scanner"),
        ),
        near=("../meson.build:9:4: ERROR: Problem encountered: the library was not found",),
    ),
    signature(
        "is missing modules: ",
        _MESON + r"\S{0,100}python[\d.]{0,5} is missing modules: (?P<module>[\w.]{1,60})",
        always(MissingModule, language="python"),
        (
            "meson.build:4:0: ERROR: python3 is missing modules: jinja2",
            MissingModule(language="python", module="jinja2"),
        ),
    ),
    signature(
        ("ERROR: Automatic wrap-based", "ERROR: Git command failed"),
        _MESON + r"(?:Automatic wrap-based subproject downloading is disabled|Git command failed: "
        r".{0,80}?'clone'.{0,80}?'(?P<url>(?:https?|git|ssh)://[^'\s]{1,160})')",
        _wrapped,
        (
            "meson.build:9:0: ERROR: Git command failed: ['/usr/bin/git', 'clone', 'https://h.example/a.git']",
            UnreachableSource(url="https://h.example/a.git", role="fetched-content"),
        ),
        (
            "meson.build:9:0: ERROR: Automatic wrap-based subproject downloading is disabled",
            UnreachableSource(url="", role="fetched-content"),
        ),
    ),
    signature(
        "library detected",
        _MESON + r"Problem encountered: No (?P<name>[A-Za-z][\w+-]{1,20}) library detected",
        _lowered,
        (
            "../meson.build:53:4: ERROR: Problem encountered: No BLAS library detected! Install one",
            MissingDevelopmentFiles(name="blas"),
        ),
    ),
)
"""What meson and ninja say."""
