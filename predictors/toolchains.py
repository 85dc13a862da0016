"""Rust, Go and Java: versions of toolchains, locks, layouts."""

from __future__ import annotations

from specbuild.failures import (
    Failure,
    MissingLibrary,
    MissingProjectFile,
    MissingToolchain,
    NotInstallable,
    StageFailed,
    UnfitLock,
    VersionOutOfRange,
    Weight,
)
from specbuild.predictors.phrases import LED
from specbuild.predictors.signature import always, signature

_EDITIONS = {"2018": "1.31", "2021": "1.56", "2024": "1.85"}
"""The first stable Rust with an edition."""

_LOCKS = {"3": "1.53", "4": "1.78"}
"""The first cargo that reads a version of its lock file."""


def _edition(evidence: str, edition: str) -> Failure:
    return VersionOutOfRange(
        tool="rust", required=_EDITIONS.get(edition, ""), because=f"edition {edition}", evidence=evidence
    )


def _lock(evidence: str, version: str) -> Failure:
    return VersionOutOfRange(
        tool="rust", required=_LOCKS.get(version, ""), because=f"Cargo.lock version {version}", evidence=evidence
    )


def _class_file(version: str, evidence: str) -> Failure:
    """Class files count from 45, which was Java 1.1."""
    return VersionOutOfRange(tool="java", required=str(int(version) - 44), because="class file", evidence=evidence)


def _unsupported(found: str, evidence: str) -> Failure:
    return VersionOutOfRange(tool="java", found=str(int(found) - 44), because="class file", evidence=evidence)


def _enforced(tool: str, found: str, required: str, evidence: str) -> Failure:
    name = {"Maven": "maven", "JDK": "java"}[tool]
    return VersionOutOfRange(tool=name, required=required, found=found, evidence=evidence)


SIGNATURES = (
    signature(
        "because it requires rustc",
        r"error: package `(?P<because>[^`]{1,100})` cannot be built because it requires rustc (?P<required>[\d.]{1,12})"
        r" or newer, while the currently active rustc version is (?P<found>[\d.]{1,12}\d)",
        always(VersionOutOfRange, tool="rust"),
        (
            (
                "error: package `a v2.1.0` cannot be built because it requires rustc 1.74 or newer, while the currently"
                " active rustc version is 1.63.0"
            ),
            VersionOutOfRange(tool="rust", required="1.74", found="1.63.0", because="a v2.1.0"),
        ),
    ),
    signature(
        "is not supported by the following",
        r"error: rustc (?P<found>[\d.]{1,12}) is not supported by the following packages?:",
        always(VersionOutOfRange, tool="rust"),
        (
            "error: rustc 1.63.0 is not supported by the following packages:\n  a@0.2.0 requires rustc 1.80",
            VersionOutOfRange(tool="rust", required="1.80", found="1.63.0", because="a@0.2.0"),
        ),
        follow=r"(?P<because>\S{1,100}) requires rustc (?P<required>[\d.]{1,12})",
    ),
    signature(
        "failed to fetch `",
        r"failed to fetch `\S{1,200}/crates\.io-index`",
        # Cargo of before 1.70 asks git for the list of all crates; later ones read it by HTTP, as everything else.
        always(VersionOutOfRange, tool="rust", required="1.70", because="crates.io-index"),
        (
            "  failed to fetch `https://git.example/rust-lang/crates.io-index`",
            VersionOutOfRange(tool="rust", required="1.70", because="crates.io-index"),
        ),
        near=("  failed to fetch `https://git.example/someone/a-crate`",),
    ),
    signature(
        "only supports",
        r"this version of Cargo is older than the `(?P<edition>\d{4})` edition",
        _edition,
        (
            "  this version of Cargo is older than the `2021` edition, and only supports `2015` and `2018` editions.",
            VersionOutOfRange(tool="rust", required="1.56", because="edition 2021"),
        ),
    ),
    signature(
        "` is required",
        r"(?:Caused by: )?feature `edition(?P<edition>\d{4})` is required",
        _edition,
        (
            "  feature `edition2024` is required",
            VersionOutOfRange(tool="rust", required="1.85", because="edition 2024"),
        ),
    ),
    signature(
        ("does not understand this lock file", "lock file version "),
        r"(?:error: )?lock file version `?(?P<version>\d{1,2})`? (?:was found|requires)",
        _lock,
        (
            "  lock file version 3 was found, but this version of Cargo does not understand this lock file, perhaps",
            VersionOutOfRange(tool="rust", required="1.53", because="Cargo.lock version 3"),
        ),
    ),
    signature(
        "needs to be updated but --locked",
        r"error: (?:the|cannot update the) lock file \S{1,200} (?:needs to be updated|because)",
        always(UnfitLock, tool="cargo", problem="stale"),
        (
            "error: the lock file /w/Cargo.lock needs to be updated but --locked was passed to prevent this",
            UnfitLock(tool="cargo", problem="stale"),
        ),
    ),
    signature(
        "nable to find libclang",
        r"(?:thread '[^']{1,60}' (?:\(\d{1,9}\) )?panicked at .{0,200}?)?Unable to find libclang: ",
        always(MissingLibrary, library="libclang", when="load"),
        (
            "thread 'main' panicked at 'Unable to find libclang: \"couldn't find any valid shared libraries",
            MissingLibrary(library="libclang", when="load"),
        ),
    ),
    signature(
        "supported by tidy is",
        r"go: go\.mod file indicates go (?P<required>[\d.]{1,10}), but maximum (?:supported )?version "
        r"(?:supported by tidy )?is (?P<found>[\d.]{1,10})",
        always(VersionOutOfRange, tool="go"),
        (
            "go: go.mod file indicates go 1.24, but maximum version supported by tidy is 1.19",
            VersionOutOfRange(tool="go", required="1.24", found="1.19"),
        ),
    ),
    signature(
        ("module requires Go ", "requires go >= "),
        r"(?:note: module requires Go |go: (?:errors parsing go\.mod: )?(?P<because>\S{1,120}) requires go >= )"
        r"(?P<required>\d[\d.]{0,9}\d)(?: \(running go (?P<found>[\d.]{1,12})\b)?",
        always(VersionOutOfRange, tool="go"),
        ("note: module requires Go 1.24", VersionOutOfRange(tool="go", required="1.24")),
        (
            "go: go.mod requires go >= 1.24.0 (running go 1.22.1; GOTOOLCHAIN=local)",
            VersionOutOfRange(tool="go", required="1.24.0", found="1.22.1", because="go.mod"),
        ),
    ),
    signature(
        "invalid go version '",
        r"(?:go: )?(?:\S{1,200}: )?(?:\S{1,200}:\d{1,6}: )?invalid go version '(?P<required>[\d.]{1,12})': must match",
        always(VersionOutOfRange, tool="go"),
        (
            "/w/go.mod:3: invalid go version '1.22.0': must match format 1.23",
            VersionOutOfRange(tool="go", required="1.22.0"),
        ),
    ),
    signature(
        "issing go.sum entry",
        LED + r"missing go\.sum entry ",
        always(UnfitLock, tool="go", problem="incomplete"),
        (
            "a.go:4:2: missing go.sum entry for module providing package a.example/b (imported by c); to add:",
            UnfitLock(tool="go", problem="incomplete"),
        ),
    ),
    signature(
        ("does not contain main module", "cannot find main module", "go.mod file not found in"),
        r"(?:go: )?(?:pattern \S{1,80}: )?(?:directory prefix \S{1,80} does not contain main module|cannot find main "
        r"module|go\.mod file not found in)",
        always(NotInstallable, tool="go", problem="no-main-module"),
        (
            "go: go.mod file not found in current directory or any parent directory; see 'go help modules'",
            NotInstallable(tool="go", problem="no-main-module"),
        ),
    ),
    signature(
        "Could not determine java",
        r"(?:> )?Could not determine java version from '(?P<found>[\d._]{1,20})'",
        always(VersionOutOfRange, tool="java", because="gradle"),
        (
            "Could not determine java version from '11.0.2'.",
            VersionOutOfRange(tool="java", found="11.0.2", because="gradle"),
        ),
    ),
    signature(
        "nsupported class file major version",
        LED + r"Unsupported class file major version (?P<found>\d{1,3})",
        _unsupported,
        (
            "> General error: Unsupported class file major version 61",
            VersionOutOfRange(tool="java", found="17", because="class file"),
        ),
    ),
    signature(
        ("invalid target release: ", "invalid source release: ", "not supported"),
        r"(?:Failed to execute goal .{1,300}?: )?(?:Fatal error compiling: )?(?:error: ){0,2}(?:invalid target "
        r"release: |release version )(?P<required>[\d.]{1,6})(?: not supported|$| -> )",
        always(VersionOutOfRange, tool="java", because="target release"),
        (
            "[ERROR] Fatal error compiling: error: invalid target release: 21",
            VersionOutOfRange(tool="java", required="21", because="target release"),
        ),
    ),
    signature(
        "find or load main class",
        r"Error: Could not find or load main class org\.gradle\.wrapper\.GradleWrapperMain",
        always(MissingProjectFile, path="gradle/wrapper/gradle-wrapper.jar", tool="gradle"),
        (
            "Error: Could not find or load main class org.gradle.wrapper.GradleWrapperMain",
            MissingProjectFile(path="gradle/wrapper/gradle-wrapper.jar", tool="gradle"),
        ),
    ),
    signature(
        "error[E0554]",
        r"error\[E0554\]: ",
        always(VersionOutOfRange, tool="rust", required="nightly"),
        (
            "error[E0554]: `#![feature]` may not be used on the stable release channel",
            VersionOutOfRange(tool="rust", required="nightly"),
        ),
    ),
    signature(
        "error[E0658]",
        r"error\[E0658\]: (?P<because>.{1,100})",
        always(VersionOutOfRange, tool="rust"),
        (
            "error[E0658]: use of unstable library feature 'let_chains'",
            VersionOutOfRange(tool="rust", because="use of unstable library feature 'let_chains'"),
        ),
    ),
    signature(
        "nknown directive: ",
        r"(?:\S{1,200}:\d{1,6}: )?unknown directive: (?P<because>toolchain|godebug|tool|ignore)\b",
        always(VersionOutOfRange, tool="go"),
        ("/w/go.mod:5: unknown directive: toolchain", VersionOutOfRange(tool="go", because="toolchain")),
    ),
    signature(
        (
            "JAVA_HOME is not set",
            "JAVA_HOME is not defined",
            "JAVA_HOME environment variable is not",
            "set to an invalid directory",
        ),
        r"(?:ERROR: |Error: )?(?:The )?JAVA_HOME (?:environment variable )?is (?:not (?:set|defined)(?: "
        r"correctly)?|set to an "
        r"invalid directory)",
        always(MissingToolchain, language="java"),
        (
            "ERROR: JAVA_HOME is not set and no 'java' command could be found in your PATH.",
            MissingToolchain(language="java"),
        ),
    ),
    signature(
        "UnsupportedClassVersionError",
        r"(?:[\w. \"]{0,60}Exception: |Exception in thread \"[^\"]{1,60}\" |Caused by: "
        r")?(?:java\.lang\.)?UnsupportedClassVersionError: "
        r"\S{1,160} has been compiled by a more recent version of the Java "
        r"Runtime \(class file version (?P<version>\d{1,3})",
        _class_file,
        (
            (
                "java.lang.UnsupportedClassVersionError: a/B has been compiled by a more recent version of the Java "
                "Runtime (class file version 61.0), this version"
            ),
            VersionOutOfRange(tool="java", required="17", because="class file"),
        ),
    ),
    signature(
        "failed to run custom build command",
        r"error: failed to run custom build command for `(?P<stage>[^`]{1,100})`",
        always(StageFailed, weight=Weight.SYMPTOM),
        (
            "error: failed to run custom build command for `ring v0.16.20`",
            StageFailed(stage="ring v0.16.20", weight=Weight.SYMPTOM),
        ),
    ),
    signature(
        "requires Maven version",
        r"Failed to execute goal .{1,200}: The plugin "
        r"(?P<because>\S{1,120}) requires Maven version (?P<required>[\d.]{1,10})",
        always(VersionOutOfRange, tool="maven"),
        (
            "[ERROR] Failed to execute goal a:b:c (default) on project d: The plugin a:b requires Maven version 3.9",
            VersionOutOfRange(tool="maven", required="3.9", because="a:b"),
        ),
    ),
    signature(
        "is not in the allowed range",
        r"(?:.{1,160}: )?Detected (?P<tool>Maven|JDK) Version: (?P<found>\S{1,20}) is not in the allowed range "
        r"(?P<required>\S{1,29}[\d\])])",
        _enforced,
        (
            "Detected JDK Version: 17.0.9 is not in the allowed range [1.8,11).",
            VersionOutOfRange(tool="java", required="[1.8,11)", found="17.0.9"),
        ),
    ),
    signature(
        "annot find matching toolchain definitions",
        r"(?:.{1,200}: )?Cannot find matching toolchain definitions",
        always(VersionOutOfRange, tool="java", because="toolchain"),
        (
            "[ERROR] Cannot find matching toolchain definitions for the following:\njdk [ version='11' ]",
            VersionOutOfRange(tool="java", required="11", because="toolchain"),
        ),
        follow=r"jdk ?\[ ?version='(?P<required>[^']{1,30})'",
    ),
)
"""What compiled languages' own tools say."""
