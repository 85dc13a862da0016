"""CMake: packages, versions, generators, fetched content."""

from __future__ import annotations

from specbuild.failures import (
    Failure,
    MissingCMakePackage,
    MissingCommand,
    MissingPkgConfig,
    UnreachableSource,
    VersionOutOfRange,
    Weight,
)
from specbuild.predictors.signature import always, signature


def _required(evidence: str, module: str = "", requirement: str = "") -> Failure:
    return MissingPkgConfig(module=module, requirement=requirement, evidence=evidence)


def _considered(package: str, evidence: str) -> Failure:
    return MissingCMakePackage(package=package, evidence=evidence, weight=Weight.SYMPTOM)


SIGNATURES = (
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
)
"""What CMake says."""
