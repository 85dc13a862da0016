"""Cargo, rustup and build scripts of crates: system libraries, targets, locks."""

from __future__ import annotations

from specbuild.failures import (
    Failure,
    MissingCommand,
    MissingPkgConfig,
    MissingToolchain,
    NetworkTrouble,
    NotInstallable,
    UnfitLock,
    UnreachableSource,
    UnsatisfiableResolution,
    VersionOutOfRange,
)
from specbuild.predictors.commands import missing_command
from specbuild.predictors.signature import always, signature

_SYSROOT = frozenset({"core", "std", "alloc", "proc_macro", "test"})


def _crate(name: str, evidence: str) -> Failure | None:
    """The crates that come with a target; another one that is not found is declared nowhere."""
    return MissingToolchain(language="rust", program="rustup", evidence=evidence) if name in _SYSROOT else None


def _toolchain(required: str, evidence: str) -> Failure:
    short = required.partition("-x86_64")[0].partition("-aarch64")[0]
    return VersionOutOfRange(tool="rust", required=short, evidence=evidence)


def _spawned(command: str, evidence: str) -> Failure:
    return missing_command(command, evidence)


def _subcommand(command: str, evidence: str) -> Failure:
    return MissingCommand(command=f"cargo-{command}", evidence=evidence)


def _unsolved(evidence: str, requirement: str = "", name: str = "") -> Failure:
    return UnsatisfiableResolution(tool="cargo", requirement=requirement or name, evidence=evidence)


SIGNATURES = (
    signature(
        "ould not find system library '",
        r"error: could not find system library '(?P<module>[\w.+-]{1,80})' required by the",
        MissingPkgConfig,
        (
            "error: could not find system library 'libsodium' required by the 'libsodium-sys' crate",
            MissingPkgConfig(module="libsodium"),
        ),
        near=("docs: error: could not find system library `x`",),
    ),
    signature(
        "required by crate `",
        r"(?:called `Result::unwrap\(\)` on an `Err` value: \".{0,600}\\n)?The system library "
        r"`(?P<module>[\w.+-]{1,80})` required by crate `[^`]{1,80}` was not found",
        MissingPkgConfig,
        (
            "The system library `alsa` required by crate `alsa-sys` was not found.",
            MissingPkgConfig(module="alsa"),
        ),
        (
            (
                r'called `Result::unwrap()` on an `Err` value: "\npkg-config exited with status code 1\n> '
                r"pkg-config alsa"
                r"\n\nThe system library `alsa` required by crate `alsa-sys` was not found.\n"
            ),
            MissingPkgConfig(module="alsa"),
        ),
    ),
    signature(
        "error[E0463]",
        r"error\[E0463\]: can't find crate for `(?P<name>\w{1,60})`",
        _crate,
        ("error[E0463]: can't find crate for `core`", MissingToolchain(language="rust", program="rustup")),
        near=("error[E0463]: can't find crate for `own_crate`",),
    ),
    signature(
        ("' is not installed", "not have the binary"),
        r"error: (?:toolchain '(?P<required>[^'\s]{1,80})' is not installed"
        r"|the '\S{1,40}' binary, normally provided by the '\S{1,40}' component, is not applicable)",
        _toolchain,
        (
            "error: toolchain 'nightly-2023-05-01-x86_64-unknown-linux-gnu' is not installed",
            VersionOutOfRange(tool="rust", required="nightly-2023-05-01"),
        ),
    ),
    signature(
        "could not choose a version of cargo",
        r"error: rustup could not choose a version of (?:cargo|rustc) to run",
        always(MissingToolchain, language="rust", program="cargo"),
        (
            "error: rustup could not choose a version of cargo to run, because one wasn't specified explicitly",
            MissingToolchain(language="rust", program="cargo"),
        ),
    ),
    signature(
        ("no such command: `", "no such subcommand: `"),
        r"error: no such (?:sub)?command: `(?P<command>[\w-]{1,40})`",
        _subcommand,
        ("error: no such command: `nextest`", MissingCommand(command="cargo-nextest")),
        ("error: no such subcommand: `fuzz`", MissingCommand(command="cargo-fuzz")),
    ),
    signature(
        ("ould not find `Cargo.toml`", "ould not find Cargo.toml"),
        r"error: could not find `?Cargo\.toml`? in ",
        always(NotInstallable, tool="cargo", problem="no-manifest"),
        (
            "error: could not find `Cargo.toml` in `/w` or any parent directory",
            NotInstallable(tool="cargo", problem="no-manifest"),
        ),
    ),
    signature(
        ("failed to select a version for", "no matching package named"),
        r"error: (?:failed to select a version for (?:the requirement )?`(?P<requirement>[^`]{1,100})`"
        r"|no matching package named `(?P<name>[^`]{1,80})` found)",
        _unsolved,
        (
            'error: failed to select a version for the requirement `serde = "^9"`',
            UnsatisfiableResolution(tool="cargo", requirement='serde = "^9"'),
        ),
        (
            "error: no matching package named `nosuch` found",
            UnsatisfiableResolution(tool="cargo", requirement="nosuch"),
        ),
    ),
    signature(
        ("failed to download from `", "failed to get `", "failed to query replaced source", "failed to download `"),
        r"(?:error: )?(?:failed to download from `https?://(?P<host>[\w.-]{1,120})"
        r"|failed to query replaced source registry `(?P<subject>[^`]{1,60})`|failed to download `[^`]{1,80}`$)",
        NetworkTrouble,
        ("  failed to download from `https://s.example/api/v1/a`", NetworkTrouble(host="s.example")),
    ),
    signature(
        "but --offline was specified",
        r"(?:error: )?attempting to make an HTTP request, but --offline was specified",
        always(UnfitLock, tool="cargo", problem="incomplete"),
        (
            "  attempting to make an HTTP request, but --offline was specified",
            UnfitLock(tool="cargo", problem="incomplete"),
        ),
    ),
    signature(
        "ould not find `",
        r"(?:Error: )?\"?Could not find `(?P<command>[\w+-]{1,40})`\. (?:If|Is|Please|Make)",
        _spawned,
        (
            "Could not find `protoc`. If `protoc` is installed, try setting the `PROTOC` environment variable to",
            MissingCommand(command="protoc"),
        ),
    ),
    signature(
        ("ailed to find tool", "ailed to spawn", "ailed to execute command"),
        r"(?:error occurred(?: in cc-rs)?: )?[Ff]ailed to find tool\. Is `(?P<command>[\w.+-]{1,60})` installed",
        _spawned,
        (
            "error occurred: Failed to find tool. Is `c++` installed? (see https://d.example)",
            MissingToolchain(language="c++", program="c++"),
        ),
    ),
    signature(
        "rror: the ",
        r"error: the (?:`-Z`|option `Z`|`[^`]{1,60}`) (?:flag |option )?is only accepted on the nightly",
        always(VersionOutOfRange, tool="rust", required="nightly"),
        (
            "error: the `-Z` flag is only accepted on the nightly channel of Cargo, but this is the `stable` channel",
            VersionOutOfRange(tool="rust", required="nightly"),
        ),
    ),
    signature(
        "nable to update http",
        r"Unable to update (?P<url>(?:https?|ssh|git)://[^\s?#]{1,160})",
        always(UnreachableSource, role="dependency"),
        (
            "  Unable to update https://h.example/a/x?branch=main",
            UnreachableSource(url="https://h.example/a/x", role="dependency"),
        ),
        near=("  Unable to update the registry",),
    ),
)
"""What cargo, rustup and build scripts say."""
