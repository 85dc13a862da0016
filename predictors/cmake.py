"""CMake: packages, versions, generators, fetched content."""

from __future__ import annotations

from specbuild.failures import (
    Failure,
    MissingCMakePackage,
    MissingCommand,
    MissingDevelopmentFiles,
    MissingPkgConfig,
    MissingProjectFile,
    MissingToolchain,
    UnreachableSource,
    VersionOutOfRange,
    Weight,
)
from specbuild.predictors.signature import always, signature


def _required(evidence: str, module: str = "", requirement: str = "") -> Failure:
    return MissingPkgConfig(module=module, requirement=requirement, evidence=evidence)


def _considered(package: str, evidence: str) -> Failure:
    return MissingCMakePackage(package=package, evidence=evidence, weight=Weight.SYMPTOM)


_TOOLS = {
    "PkgConfig": "pkg-config",
    "Git": "git",
    "Doxygen": "doxygen",
    "BISON": "bison",
    "FLEX": "flex",
    "Perl": "perl",
}
"""Modules of CMake that look for a program."""


def _not_found(package: str, evidence: str, went_on: str = "") -> Failure:
    """CMake says it of everything; with dashes before it, it went on, and a later line may still want the package."""
    weight = Weight.SYMPTOM if went_on else Weight.CAUSE
    if program := _TOOLS.get(package):
        return MissingCommand(command=program, evidence=evidence, weight=weight)
    return MissingCMakePackage(package=package, evidence=evidence, weight=weight)


def _wanted(evidence: str, name: str = "", second: str = "") -> Failure | None:
    found = name or second
    if found.lower() in {"the", "a", "any", "file", "required", "package", "library", "suitable"}:
        return None
    return MissingDevelopmentFiles(name=found.lower(), evidence=evidence, weight=Weight.SYMPTOM)


_SINCE = {
    "FetchContent_Declare": "3.11",
    "FetchContent_MakeAvailable": "3.14",
    "target_link_options": "3.13",
    "target_sources": "3.1",
    "target_compile_features": "3.1",
    "target_precompile_headers": "3.16",
    "add_link_options": "3.13",
    "cmake_path": "3.20",
    "block": "3.25",
}
"""Commands of CMake → the release that brought them (its documentation)."""

_LANGUAGES = {"C": "c", "CXX": "c++", "Fortran": "fortran"}


def _unknown_command(because: str, evidence: str) -> Failure | None:
    if because not in _SINCE:
        return None
    return VersionOutOfRange(tool="cmake", required=_SINCE[because], because=because, evidence=evidence)


def _compiler(language: str, evidence: str) -> Failure:
    return MissingToolchain.model_validate({"language": _LANGUAGES[language], "evidence": evidence})


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
        r"(?P<went_on>-- )?Could NOT find (?P<package>\w[\w.+-]{0,80})[ ,].{0,400}\(missing: ",
        _not_found,
        ("  Could NOT find ZLIB (missing: ZLIB_LIBRARY ZLIB_INCLUDE_DIR)", MissingCMakePackage(package="ZLIB")),
        (
            "-- Could NOT find ZLIB (missing: ZLIB_LIBRARY ZLIB_INCLUDE_DIR)",
            MissingCMakePackage(package="ZLIB", weight=Weight.SYMPTOM),
        ),
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
    signature(
        ("ould not find", "annot find", "not found", "s required", "nable to find"),
        r"(?:CMake Error: |CMake Error at \S{1,200} \(message\): )?(?:(?:Could not|Cannot|Can't|Unable to) find "
        r"(?:the )?"
        r"(?P<name>[A-Za-z][\w+-]{1,30})(?: library| headers?| development files| package)?[,.;!:] (?:[Pp]lease "
        r"|[Yy]ou |[Mm]ake |[Tt]ry |[Ii]nstall |[Ss]et )"
        r"|(?P<second>[A-Za-z][\w+-]{1,30})(?: library| headers?| package)? (?:was |is )?(?:not found"
        r"|required)[,.;!:] (?:[Pp]lease |[Yy]ou |[Mm]ake |[Ii]nstall ))",
        _wanted,
        (
            "CMake Error at CMakeLists.txt:30 (message):\n  Could not find libuv, please install libuv1-dev",
            MissingDevelopmentFiles(name="libuv", weight=Weight.SYMPTOM),
        ),
        ("  OpenSSL not found! Please install it.", MissingDevelopmentFiles(name="openssl", weight=Weight.SYMPTOM)),
        near=("Could not find the file, please check.",),
    ),
    signature(
        "No CMAKE_",
        r"(?:CMake Error: )?No CMAKE_(?:ASM(?:_NASM)?)_COMPILER could be found",
        always(MissingCommand, command="nasm"),
        ("  No CMAKE_ASM_NASM_COMPILER could be found.", MissingCommand(command="nasm")),
    ),
    signature(
        "does not appear to contain CMakeLists.txt",
        r"CMake Error: The source directory \"[^\"]{1,200}\" does not appear to contain CMakeLists\.txt",
        always(MissingProjectFile, path="CMakeLists.txt", tool="cmake"),
        (
            'CMake Error: The source directory "/w" does not appear to contain CMakeLists.txt.',
            MissingProjectFile(path="CMakeLists.txt", tool="cmake"),
        ),
    ),
    signature(
        "not find a configuration file for package",
        r"Could not find a configuration file for package \"(?P<package>[^\s\"]{1,100})\" that is$",
        MissingCMakePackage,
        (
            (
                '  Could not find a configuration file for package "Eigen3" that is\n  compatible with requested '
                'version "3.4".'
            ),
            MissingCMakePackage(package="Eigen3"),
        ),
    ),
    signature(
        "nknown CMake command ",
        r"(?:CMake Error[^\"]{0,120}: )?Unknown CMake command \"(?P<because>\w{1,60})\"",
        _unknown_command,
        (
            '  Unknown CMake command "FetchContent_MakeAvailable".',
            VersionOutOfRange(tool="cmake", required="3.14", because="FetchContent_MakeAvailable"),
        ),
        ('  Unknown CMake command "own_macro".', None),
    ),
    signature(
        " but the target was not",
        r"(?:Target \"[^\"]{1,80}\" |The link interface of target \"[^\"]{1,80}\" )?links to(?: target)?:? "
        r"\"?(?P<package>[\w+-]{1,60})::[\w+:-]{1,60}\"? but the target was not",
        MissingCMakePackage,
        (
            '  Target "app" links to target "Check::check" but the target was not\n  found.',
            MissingCMakePackage(package="Check"),
        ),
        near=('  Target "app" links to target "own" but the target was not found',),
    ),
    signature(
        "_COMPILER not set, after",
        r"CMake Error: CMAKE_(?P<language>C|CXX|Fortran)_COMPILER not set, after EnableLanguage",
        _compiler,
        ("CMake Error: CMAKE_CXX_COMPILER not set, after EnableLanguage", MissingToolchain(language="c++")),
    ),
    signature(
        "pkg-config tool not found",
        r"pkg-config tool not found$",
        always(MissingCommand, command="pkg-config"),
        ("  pkg-config tool not found", MissingCommand(command="pkg-config")),
    ),
)
"""What CMake says."""
