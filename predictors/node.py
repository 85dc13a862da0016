"""npm, yarn, node-gyp, Node itself, and browsers."""

from __future__ import annotations

from specbuild.failures import (
    Failure,
    MissingBrowser,
    MissingModule,
    NoPrebuiltBinary,
    NotBuilt,
    NotInstallable,
    UnfitLock,
    UnsatisfiableResolution,
    VersionOutOfRange,
    Weight,
)
from specbuild.predictors.phrases import LED
from specbuild.predictors.signature import always, signature


def _required(module: str, evidence: str) -> Failure:
    if module.startswith((".", "/")):
        return NotBuilt(path=module, evidence=evidence)
    return MissingModule(language="node", module=module, evidence=evidence)


def _resolution(evidence: str, requirement: str = "") -> Failure:
    return UnsatisfiableResolution(tool="npm", requirement=requirement.replace('"', ""), evidence=evidence)


def _engine(evidence: str, required: str = "") -> Failure:
    return VersionOutOfRange(tool="node", required=required, evidence=evidence)


def _no_script(name: str, evidence: str) -> Failure:
    del name  # other scripts than the one that was asked for may do
    return NotInstallable(tool="npm", problem="no-script", evidence=evidence)


def _pnpm_lock(evidence: str, code: str = "") -> Failure:
    return UnfitLock(tool="pnpm", problem="missing" if code == "NO_LOCKFILE" else "stale", evidence=evidence)


def _browser(browser: str, evidence: str) -> Failure:
    return MissingBrowser(browser=browser.lower(), evidence=evidence)


SIGNATURES = (
    signature(
        "package-lock.json",
        r"(?:The )?`npm ci` command can only install with an existing",
        always(UnfitLock, tool="npm", problem="missing"),
        (
            "npm ERR! The `npm ci` command can only install with an existing package-lock.json or",
            UnfitLock(tool="npm", problem="missing"),
        ),
    ),
    signature(
        "package-lock.json",
        r"`npm ci` can only install packages when your package\.json and \S{1,60}",
        always(UnfitLock, tool="npm", problem="stale"),
        (
            "npm error `npm ci` can only install packages when your package.json and package-lock.json are in sync.",
            UnfitLock(tool="npm", problem="stale"),
        ),
    ),
    signature(
        ("npm error code ERESOLVE", "npm ERR! code ERESOLVE"),
        r"code ERESOLVE$",
        _resolution,
        (
            'npm ERR! code ERESOLVE\nnpm ERR! ERESOLVE unable to resolve\nnpm ERR! peer vue@"^2" from x@1.0.0',
            UnsatisfiableResolution(tool="npm", requirement="vue@^2 from x@1.0.0"),
        ),
        follow=r"peer (?P<requirement>\S{1,80} from \S{1,80})",
        within=12,
    ),
    signature(
        "No matching version found for ",
        r"notarget No matching version found for (?P<requirement>\S{1,100}?)\.?$",
        _resolution,
        (
            "npm ERR! notarget No matching version found for chalk@^99.0.0.",
            UnsatisfiableResolution(tool="npm", requirement="chalk@^99.0.0"),
        ),
    ),
    signature(
        ("npm error notsup", "npm ERR! notsup"),
        r"notsup Required: \{.{0,60}\"node\":\"(?P<required>[^\"]{1,60})\"",
        _engine,
        (
            'npm ERR! notsup Required: {"npm":">=7","node":"^14 || ^16"}',
            VersionOutOfRange(tool="node", required="^14 || ^16"),
        ),
    ),
    signature(
        "issing script: ",
        r"Missing script: \"?(?P<name>[\w:-]{1,40})",
        _no_script,
        ('npm ERR! Missing script: "build"', NotInstallable(tool="npm", problem="no-script")),
    ),
    signature(
        "digital envelope routines::unsupported",
        r"(?:opensslErrorStack: )?(?:Error: )?error:0308010C:digital envelope routines::unsupported",
        always(VersionOutOfRange, tool="node", required="<17", because="OpenSSL 3"),
        (
            "Error: error:0308010C:digital envelope routines::unsupported",
            VersionOutOfRange(tool="node", required="<17", because="OpenSSL 3"),
        ),
    ),
    signature(
        "prebuilt binaries found",
        r"(?:install )?No prebuilt binaries found \((?P<target>[^)]{1,160})\)",
        always(NoPrebuiltBinary, weight=Weight.WARNING),
        (
            "prebuild-install warn install No prebuilt binaries found (target=18 runtime=node arch=arm64)",
            NoPrebuiltBinary(target="target=18 runtime=node arch=arm64", weight=Weight.WARNING),
        ),
    ),
    signature(
        "lockfile needs to be updated",
        r"error Your lockfile needs to be updated",
        always(UnfitLock, tool="yarn", problem="stale"),
        (
            "error Your lockfile needs to be updated, but yarn was run with `--frozen-lockfile`.",
            UnfitLock(tool="yarn", problem="stale"),
        ),
    ),
    signature(
        "The lockfile would",
        r"(?:➤ )?YN0028: .{0,40}The lockfile would have been modified",
        always(UnfitLock, tool="yarn", problem="stale"),
        (
            "➤ YN0028: │ The lockfile would have been modified by this install, which is explicitly forbidden.",
            UnfitLock(tool="yarn", problem="stale"),
        ),
    ),
    signature(
        'annot install with "frozen-lockfile"',
        r"(?:ERR_PNPM_(?P<code>\w{1,40}) {1,4})?Cannot install with \"frozen-lockfile\"",
        _pnpm_lock,
        (
            ' ERR_PNPM_OUTDATED_LOCKFILE  Cannot install with "frozen-lockfile" because pnpm-lock.yaml is not',
            UnfitLock(tool="pnpm", problem="stale"),
        ),
    ),
    signature(
        "is incompatible with this module",
        r"error (?P<because>\S{1,100}): The engine \"node\" is incompatible with this module\. Expected version "
        r"\"(?P<required>[^\"]{1,60})\"\. Got \"(?P<found>[\d.]{1,16})\"",
        always(VersionOutOfRange, tool="node"),
        (
            'error y@2.0.0: The engine "node" is incompatible with this module. Expected version "^8". Got "18.1.0"',
            VersionOutOfRange(tool="node", required="^8", found="18.1.0", because="y@2.0.0"),
        ),
    ),
    signature(
        ("annot find module '", "annot find package '"),
        r"(?:Error(?: \[ERR_MODULE_NOT_FOUND\])?: )?Cannot find (?:module|package) '(?P<module>[^'\s]{1,200})'",
        _required,
        ("Error: Cannot find module 'express'", MissingModule(language="node", module="express")),
        ("Error: Cannot find module '../dist/x.js'", NotBuilt(path="../dist/x.js")),
        (
            "Error [ERR_MODULE_NOT_FOUND]: Cannot find package 'chai' imported from /w/test.js",
            MissingModule(language="node", module="chai"),
        ),
        near=("expect(() => f()).toThrow(\"Cannot find module 'x'\")",),
    ),
    signature(
        "No binary for ",
        LED + r"No binary for (?P<browser>Chrome|Chromium|Firefox|Edge)\w{0,10} browser",
        _browser,
        ("No binary for Firefox browser on your platform.", MissingBrowser(browser="firefox")),
    ),
    signature(
        "xecutable doesn't exist at",
        LED + r"Executable doesn't exist at",
        always(MissingBrowser, browser="playwright"),
        (
            "playwright._impl.Error: BrowserType.launch: Executable doesn't exist at /x/chromium-1/chrome",
            MissingBrowser(browser="playwright"),
        ),
    ),
    signature(
        "ould not find Chrom",
        r"(?:Error: )?Could not find (?P<browser>Chrome|Chromium)\b",
        _browser,
        ("Error: Could not find Chrome (ver. 121.0.6167.85).", MissingBrowser(browser="chrome")),
    ),
    signature(
        "SyntaxError: Unexpected token",
        r"SyntaxError: Unexpected token '?(?P<because>\?\?=|\|\|=|&&=|\?\?|\?\.|\?|\.)'?$",
        always(VersionOutOfRange, tool="node"),
        ("SyntaxError: Unexpected token '??='", VersionOutOfRange(tool="node", because="??=")),
        near=("SyntaxError: Unexpected token < in JSON at position 0",),
    ),
)
"""What Node's tools say."""
