"""Go's own tools: modules, vendored trees, cgo, the network."""

from __future__ import annotations

from specbuild.failures import (
    DeadUrl,
    Failure,
    IntegrityMismatch,
    MissingToolchain,
    NetworkTrouble,
    NotInstallable,
    RegistryTrouble,
    UnfitLock,
    UnreachableSource,
    VersionControlNeeded,
    VersionOutOfRange,
)
from specbuild.predictors.signature import always, signature


def _answered(url: str, status: str, evidence: str) -> Failure:
    if status in {"404", "410"}:
        return DeadUrl(url=url, status=status, evidence=evidence)
    host = url.partition("://")[2].partition("/")[0]
    return RegistryTrouble(status=status, host=host, evidence=evidence)


def _standard(required: str, evidence: str, because: str = "") -> Failure:
    return VersionOutOfRange(tool="go", required=required, because=because, evidence=evidence)


def _not_in_std(because: str, evidence: str) -> Failure | None:
    """A package of one path element is of the standard library of some release."""
    if "." in because.partition("/")[0]:
        return None
    return VersionOutOfRange(tool="go", because=because, evidence=evidence)


SIGNATURES = (
    signature(
        ("no required module provides package", "annot find module providing package"),
        r"(?:[^\s\"'`#]{1,200}:\d{1,6}:\d{1,6}: )?(?:go: )?(?:\S{1,120} imports$|)?"
        r"(?:no required module provides package|cannot find module providing package) ",
        always(UnfitLock, tool="go", problem="incomplete"),
        (
            "main.go:9:2: no required module provides package a.example/b; to add it:",
            UnfitLock(tool="go", problem="incomplete"),
        ),
    ),
    signature(
        ("nconsistent vendoring in", "updates to go."),
        r"(?:go: )?(?:inconsistent vendoring in |updates to go\.(?:mod|sum) needed)",
        always(UnfitLock, tool="go", problem="stale"),
        ("go: inconsistent vendoring in /w:", UnfitLock(tool="go", problem="stale")),
        ("go: updates to go.mod needed; to update it:", UnfitLock(tool="go", problem="stale")),
    ),
    signature(
        "dial tcp: lookup ",
        r"(?:go: )?(?:\S{1,120}: )?(?:Get \"[^\"]{1,200}\": )?dial tcp: lookup (?P<host>[\w.-]{1,120})(?: on "
        r"\S{1,60})?: (?!no such host)",
        NetworkTrouble,
        (
            'go: a@v1: Get "https://p.example/a.mod": dial tcp: lookup p.example: Temporary failure in name resolution',
            NetworkTrouble(host="p.example"),
        ),
    ),
    signature(
        "verifying ",
        r"(?:go: )?verifying (?P<subject>\S{1,160}): checksum mismatch",
        always(IntegrityMismatch, tool="go"),
        (
            "go: verifying a.example/b@v1.0.0: checksum mismatch",
            IntegrityMismatch(tool="go", subject="a.example/b@v1.0.0"),
        ),
    ),
    signature(
        ("is not in GOROOT", "is not in std"),
        r"(?:[^\s\"'`#]{1,200}:\d{1,6}:\d{1,6}: )?package (?P<because>[\w./-]{1,120}) is not in (?:GOROOT|std)",
        _not_in_std,
        (
            "a.go:4:2: package slices is not in GOROOT (/usr/lib/go/src/slices)",
            VersionOutOfRange(tool="go", because="slices"),
        ),
        near=("a.go:4:2: package a.example/b is not in std",),
    ),
    signature(
        ("is not in your go.mod", "toolchain not available", "ownload go"),
        r"(?:go: )?(?:download go(?P<required>[\d.]{1,10}\d)(?: for \S{1,40})?: (?:toolchain not available|\S))",
        _standard,
        (
            "go: download go1.24 for linux/amd64: toolchain not available",
            VersionOutOfRange(tool="go", required="1.24"),
        ),
    ),
    signature(
        ("build constraints exclude all Go files", "requires cgo", "requires CGO"),
        r"(?:[^\s\"'`#]{1,200}:\d{1,6}:\d{1,6}: )?(?:Binary was compiled with 'CGO_ENABLED=0', )?\S{1,80} "
        r"requires (?:cgo to work|CGO)",
        always(MissingToolchain, language="c", program="gcc"),
        (
            "Binary was compiled with 'CGO_ENABLED=0', go-sqlite3 requires cgo to work. This is a stub",
            MissingToolchain(language="c", program="gcc"),
        ),
    ),
    signature(
        "obtaining VCS status",
        r"error obtaining VCS status: ",
        always(VersionControlNeeded, need="ownership", by="go"),
        ("error obtaining VCS status: exit status 128", VersionControlNeeded(need="ownership", by="go")),
    ),
    signature(
        ("-race requires cgo",),
        r"(?:go: )?-race requires cgo",
        always(MissingToolchain, language="c", program="gcc"),
        ("go: -race requires cgo; enable cgo by setting CGO_ENABLED=1", MissingToolchain(language="c", program="gcc")),
    ),
    signature(
        ("invalid version: git", "nvalid version: git"),
        r"(?:go: )?(?P<url>\S{1,160}?)(?:@\S{1,60})?: invalid version: git (?:ls-remote|fetch) ",
        always(UnreachableSource, role="dependency"),
        (
            "go: a.example/b@v1: invalid version: git ls-remote -q origin in /x: exit status 128:",
            UnreachableSource(url="a.example/b", role="dependency"),
        ),
    ),
    signature(
        "does not contain package ",
        r"(?:go: )?(?:pattern \S{1,80}: )?(?:main )?module \(?\S{1,120}?\)?(?:@\S{1,60} found.{0,60},)? (?:but "
        r")?does not contain package ",
        always(NotInstallable, tool="go", problem="no-main-module"),
        (
            "main module (a.example/b) does not contain package a.example/b/c",
            NotInstallable(tool="go", problem="no-main-module"),
        ),
    ),
    signature(
        "annot find GOROOT",
        r"go: cannot find GOROOT directory",
        always(MissingToolchain, language="go"),
        ("go: cannot find GOROOT directory: /usr/local/go", MissingToolchain(language="go")),
    ),
    signature(
        "annot find package ",
        r"(?:[^\s\"'`#]{1,200}:\d{1,6}:\d{1,6}: )?(?:package \S{1,120}: )?cannot find package "
        r"\"[^\"\s]{1,160}\" in any of",
        always(UnfitLock, tool="go", problem="incomplete"),
        (
            'a.go:3:2: cannot find package "h.example/b" in any of:',
            UnfitLock(tool="go", problem="incomplete"),
        ),
    ),
    signature(
        ("reading http",),
        r"(?:go: )?\S{1,160}: reading (?P<url>https?://\S{1,200}): (?P<status>[45]\d\d) ",
        _answered,
        (
            "go: h.example/a@v1: reading https://p.example/x: 502 Bad Gateway",
            RegistryTrouble(status="502", host="p.example"),
        ),
    ),
    signature(
        "is replaced but not required",
        r"(?:[^\s\"'`#]{1,200}:\d{1,6}:\d{1,6}: )?module \S{1,120} provides package \S{1,120} and is replaced "
        r"but not required",
        always(UnfitLock, tool="go", problem="incomplete"),
        (
            "a.go:5:8: module h.example/b provides package x and is replaced but not required; to add it:",
            UnfitLock(tool="go", problem="incomplete"),
        ),
    ),
)
"""What the go command says beyond versions."""
