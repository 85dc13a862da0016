"""npm, yarn, node-gyp, Node itself, and browsers."""

from __future__ import annotations

from specbuild.failures import (
    Failure,
    MissingBrowser,
    MissingCommand,
    MissingModule,
    MissingProjectFile,
    NetworkTrouble,
    NoPrebuiltBinary,
    NotBuilt,
    NotInstallable,
    UnfitLock,
    UnsatisfiableResolution,
    VersionOutOfRange,
    Weight,
    WrongArchitecture,
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


def _pnpm_engine(evidence: str, required: str = "") -> Failure:
    return VersionOutOfRange(tool="node", required=required, evidence=evidence)


_GLOBALS = {"structuredClone": ">=17", "AbortController": ">=15", "WebSocket": ">=22", "File": ">=20", "crypto": ">=19"}
"""What Node has as a global → since when; the rest came with fetch."""


def _global(because: str, evidence: str) -> Failure:
    return VersionOutOfRange(tool="node", required=_GLOBALS.get(because, ">=18"), because=because, evidence=evidence)


_METHODS = {
    "findLast": ">=18",
    "findLastIndex": ">=18",
    "structuredClone": ">=17",
    "replaceAll": ">=15",
    "at": ">=16",
    "hasOwn": ">=16",
    "toSorted": ">=20",
    "toReversed": ">=20",
    "withResolvers": ">=22",
    "groupBy": ">=21",
}
"""Methods of the language → the release of Node that brought them; the rest came with 12."""


def _method(because: str, evidence: str) -> Failure:
    return VersionOutOfRange(
        tool="node",
        required=_METHODS.get(because, ">=12"),
        because=because,
        evidence=evidence,
        weight=Weight.SYMPTOM,
    )


def _platform(evidence: str, subject: str = "") -> Failure:
    return WrongArchitecture(subject=subject, evidence=evidence)


def _typed(module: str, evidence: str) -> Failure | None:
    if module.startswith((".", "/")):
        return None
    bare = "type definition" in evidence
    return MissingModule(language="node", module=f"@types/{module}" if bare else module, evidence=evidence)


def _resolved(evidence: str, first: str = "", second: str = "") -> Failure | None:
    module = first or second
    return None if module.startswith(("@/", "~", "/")) else _required(module, evidence)


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
        r"(?:\[[\w-]{1,30}\] )?(?:Error(?: \[ERR_MODULE_NOT_FOUND\])?: )?Cannot find (?:module|package) "
        r"'(?P<module>[^'\s]{1,200})'",
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
        ("No binary for ", "annot find Chrome binary", "annot find Firefox binary"),
        LED + r"(?:No binary for |(?:unknown error: )?[Cc]annot find )(?P<browser>Chrome|Chromium|Firefox"
        r"|Edge)\w{0,10} (?:browser|binary)",
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
    signature(
        "PNPM_UNSUPPORTED_ENGINE",
        r"ERR_PNPM_UNSUPPORTED_ENGINE ",
        _pnpm_engine,
        (
            (
                " ERR_PNPM_UNSUPPORTED_ENGINE  Unsupported environment (bad pnpm and/or Node.js version)\n\nYour Node "
                'version is incompatible with "/w".\n\nExpected version: >=20\nGot: v18.19.0'
            ),
            VersionOutOfRange(tool="node", required=">=20"),
        ),
        follow=r"Expected version: (?P<required>.{1,60})",
        within=6,
    ),
    signature(
        "EBADPLATFORM",
        r"(?:notsup |code )?.{0,20}EBADPLATFORM$",
        _platform,
        (
            "npm ERR! code EBADPLATFORM\nnpm ERR! notsup Unsupported platform for fsevents@2.3.2: wanted x",
            WrongArchitecture(subject="fsevents@2.3.2"),
        ),
        follow=r"notsup Unsupported platform for (?P<subject>\S{1,100}): wanted",
    ),
    signature(
        (" not found.", "not found"),
        r"(?:[\w● ]{0,40}: )?(?:Preset|Plugin) (?P<module>[@\w./-]{1,100}) not found\.?$",
        _required,
        ("Preset ts-jest not found.", MissingModule(language="node", module="ts-jest")),
    ),
    signature(
        ("annot find type definition file", "annot find module", "ould not find plugin"),
        r"(?:\S{1,200}\(\d{1,6},\d{1,6}\): |\S{1,200}:\d{1,6}:\d{1,6} - )?error TS(?:2307|2688|7016): "
        r"Cannot find (?:module|type definition file for) '(?P<module>[^'\s]{1,120})'",
        _typed,
        (
            "src/a.ts(3,20): error TS2307: Cannot find module 'express' or its corresponding type declarations.",
            MissingModule(language="node", module="express"),
        ),
        (
            "error TS2688: Cannot find type definition file for 'node'.",
            MissingModule(language="node", module="@types/node"),
        ),
    ),
    signature(
        ("ailed to resolve import ", "an't resolve '"),
        r"(?:(?:Module not found: )?(?:[\w ]{0,40}Error|error): )?(?:\[[\w:-]{1,40}\] )?(?:Failed to resolve "
        r"import \"(?P<first>[^\"\s.][^\"\s]{0,120})\" from"
        r"|Can't resolve '(?P<second>[^'\s.][^'\s]{0,120})' in)",
        _resolved,
        (
            "Module not found: Error: Can't resolve 'react' in '/w/src'",
            MissingModule(language="node", module="react"),
        ),
        (
            'Error: Failed to resolve import "vue" from "src/a.ts". Does the file exist?',
            MissingModule(language="node", module="vue"),
        ),
    ),
    signature(
        ("ouldn't find a package.json", "ould not read package.json", "No package.json", "o package.json found"),
        r"(?:error |ERR_PNPM_NO_PKG_MANIFEST {1,2}|enoent |Error: )?(?:Couldn't find a package\.json|Could not "
        r"read package\.json|"
        r"No package\.json (?:\(or .{1,60}\) )?(?:was )?found)",
        always(NotInstallable, tool="npm", problem="no-manifest"),
        (
            'error Couldn\'t find a package.json file in "/w"',
            NotInstallable(tool="npm", problem="no-manifest"),
        ),
        (
            "npm error enoent Could not read package.json: Error: ENOENT: no such file or directory",
            NotInstallable(tool="npm", problem="no-manifest"),
        ),
    ),
    signature(
        ("the packageManager field", '"packageManager": "'),
        r"(?:error |Usage Error: )?(?:This project is configured to use|This project's package\.json defines "
        r"\"packageManager\": \")"
        r" ?(?P<tool>yarn|pnpm|npm)@?(?P<required>[\d.]{0,12})",
        VersionOutOfRange,
        (
            'error This project\'s package.json defines "packageManager": "yarn@3.2.1". However the current global',
            VersionOutOfRange(tool="yarn", required="3.2.1"),
        ),
    ),
    signature(
        "different Node.js version",
        r"was compiled against a different Node\.js version using",
        always(VersionOutOfRange, tool="node", because="NODE_MODULE_VERSION"),
        (
            "was compiled against a different Node.js version using",
            VersionOutOfRange(tool="node", because="NODE_MODULE_VERSION"),
        ),
    ),
    signature(
        "is required for the TypeScript",
        r"(?:Error: )?Jest: '(?P<module>[@\w./-]{1,80})' is required for",
        _required,
        (
            "Error: Jest: 'ts-node' is required for the TypeScript configuration files. Make sure it is installed",
            MissingModule(language="node", module="ts-node"),
        ),
    ),
    signature(
        ("annot be found. Make sure the", "not be found. Make sure", "not found. Make sure"),
        r"(?:[●•] )?(?:[\w ]{0,40}: )?(?:Test environment|Module|Preset|Reporter|Transformer|Runner) "
        r"[\"']?(?P<module>[@\w][@\w./-]{0,80}?)[\"']? "
        r"(?:in the \w{1,40} option )?(?:cannot be found|could not be found|was not found|not found)[.,]",
        _required,
        (
            "  Test environment jest-environment-jsdom cannot be found. Make sure the testEnvironment option points",
            MissingModule(language="node", module="jest-environment-jsdom"),
        ),
    ),
    signature(
        ("is not defined",),
        r"(?:[● ]{0,4})?ReferenceError: (?P<because>fetch|structuredClone|AbortController|Headers|FormData|Blob"
        r"|WebSocket|crypto|File|navigator|Request|Response) "
        r"is not defined$",
        _global,
        (
            "ReferenceError: fetch is not defined",
            VersionOutOfRange(tool="node", required=">=18", because="fetch"),
        ),
        near=("ReferenceError: foo is not defined",),
    ),
    signature(
        "binding.gyp not found",
        r"(?:gyp: )?binding\.gyp not found \(cwd: ",
        always(MissingProjectFile, path="binding.gyp", tool="node-gyp"),
        (
            "gyp: binding.gyp not found (cwd: /w) while trying to load binding.gyp",
            MissingProjectFile(path="binding.gyp", tool="node-gyp"),
        ),
    ),
    signature(
        "find any Python installation",
        r"(?:stack )?(?:Error: )?Could not find any Python installation to use",
        always(MissingCommand, command="python3"),
        (
            "gyp ERR! stack Error: Could not find any Python installation to use",
            MissingCommand(command="python3"),
        ),
    ),
    signature(
        "is not a function",
        r"TypeError: (?:\S{1,60}\.)?(?P<because>findLast|findLastIndex|structuredClone|replaceAll|at|hasOwn"
        r"|flatMap|flat|toSorted|toReversed|withResolvers|fromEntries|matchAll|allSettled|groupBy) is not a "
        r"function$",
        _method,
        (
            "TypeError: a.findLast is not a function",
            VersionOutOfRange(tool="node", required=">=18", because="findLast", weight=Weight.SYMPTOM),
        ),
        near=("TypeError: a.foo is not a function",),
    ),
    signature(
        ("revision is not downloaded", "rowser was not found", "not find browser"),
        r"(?:Error: )?(?P<browser>Chromium|Chrome|Firefox) (?:\(r\d{1,9}\) )?revision is not downloaded",
        _browser,
        (
            'Error: Chromium revision is not downloaded. Run "npm install" or "yarn install"',
            MissingBrowser(browser="chromium"),
        ),
    ),
    signature(
        "n't find package ",
        r"error Couldn't find package \"(?P<requirement>[^\"]{1,100})\" (?:required by .{1,80} )?on the",
        always(UnsatisfiableResolution, tool="yarn"),
        (
            'error Couldn\'t find package "foo@^9" on the "npm" registry.',
            UnsatisfiableResolution(tool="yarn", requirement="foo@^9"),
        ),
    ),
    signature(
        "getaddrinfo ",
        r"error An unexpected error occurred: \"https?://\S{1,200} getaddrinfo (?:ENOTFOUND|EAI_AGAIN) "
        r"(?P<host>[\w-]{1,60}(?:\.[\w-]{1,60}){0,5})",
        NetworkTrouble,
        (
            'error An unexpected error occurred: "https://r.example/x: getaddrinfo ENOTFOUND r.example".',
            NetworkTrouble(host="r.example"),
        ),
    ),
    signature(
        "not locate the bindings file",
        r"(?:Error: )?Could not locate the bindings file\. Tried:",
        always(NotBuilt, path="build/Release"),
        ("Error: Could not locate the bindings file. Tried:", NotBuilt(path="build/Release")),
    ),
)
"""What Node's tools say."""
