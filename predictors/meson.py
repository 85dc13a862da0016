"""meson and ninja."""

from __future__ import annotations

from specbuild.failures import (
    Failure,
    MissingCMakePackage,
    MissingCommand,
    MissingHeader,
    MissingLibrary,
    MissingPkgConfig,
    MissingProjectFile,
    NotBuilt,
    VersionOutOfRange,
    Weight,
)
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
)
"""What meson and ninja say."""
