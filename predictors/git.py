"""git: repositories, tags, ownership, submodules."""

from __future__ import annotations

from specbuild.failures import DeadUrl, UnreachableSource, VersionControlNeeded
from specbuild.predictors.signature import always, signature

SIGNATURES = (
    signature(
        ("fatal: detected dubious", "fatal: unsafe repository"),
        r"fatal: (?:detected dubious ownership|unsafe repository)",
        always(VersionControlNeeded, need="ownership"),
        (
            "fatal: detected dubious ownership in repository at '/w'",
            VersionControlNeeded(need="ownership"),
        ),
    ),
    signature(
        ("fatal: No names found", "No tags can describe", "fatal: No annotated tags can describe"),
        r"fatal: No (?:names found|tags can describe|annotated tags can describe)",
        always(VersionControlNeeded, need="tags"),
        (
            "fatal: No tags can describe 'abcdef'.",
            VersionControlNeeded(need="tags"),
        ),
    ),
    signature(
        "fatal: not a git repository",
        r"fatal: not a git repository",
        always(VersionControlNeeded, need="repository"),
        (
            "fatal: not a git repository (or any parent up to mount point /)",
            VersionControlNeeded(need="repository"),
        ),
        near=("README: fatal: not a git repository is shown for archives without errors",),
    ),
    signature(
        "nable to auto-detect email address",
        r"fatal: unable to auto-detect email address",
        always(VersionControlNeeded, need="identity"),
        (
            "fatal: unable to auto-detect email address (got 'root@host.(none)')",
            VersionControlNeeded(need="identity"),
        ),
    ),
    signature(
        "fatal: clone of",
        r"fatal: clone of '(?P<url>[^'\s]{1,200})' into submodule path",
        always(UnreachableSource, role="submodule"),
        (
            "fatal: clone of 'https://host.example/a.git' into submodule path '/w/a' failed",
            UnreachableSource(url="https://host.example/a.git", role="submodule"),
        ),
    ),
    signature(
        "' not allowed",
        r"fatal: transport 'file' not allowed",
        always(VersionControlNeeded, need="file-protocol"),
        ("fatal: transport 'file' not allowed", VersionControlNeeded(need="file-protocol")),
    ),
    signature(
        "did not run successfully",
        r"git (?:clone|fetch)(?: (?:-\S{1,60}|--\S{1,60})){0,6} (?P<url>[^\s-]\S{1,200})(?: \S{1,200})? "
        r"did not run successfully",
        always(UnreachableSource, role="dependency"),
        (
            "  × git clone --filter=blob:none --quiet https://host.example/a /tmp/b did not run successfully.",
            UnreachableSource(url="https://host.example/a", role="dependency"),
        ),
    ),
    signature(
        "fatal: unable to access '",
        r"fatal: unable to access '(?P<url>[^'\s]{1,200})'",
        always(UnreachableSource, role="dependency"),
        (
            "fatal: unable to access 'https://host.example/a/': Could not resolve host: host.example",
            UnreachableSource(url="https://host.example/a/", role="dependency"),
        ),
    ),
    signature(
        "fatal: could not read",
        r"fatal: could not read Username for '(?P<url>[^'\s]{1,200})'",
        always(UnreachableSource, role="dependency"),
        (
            "fatal: could not read Username for 'https://host.example': terminal prompts disabled",
            UnreachableSource(url="https://host.example", role="dependency"),
        ),
    ),
    signature(
        "fatal: repository '",
        r"fatal: repository '(?P<url>[^'\s]{1,200})' not found",
        DeadUrl,
        (
            "fatal: repository 'https://host.example/a/' not found",
            DeadUrl(url="https://host.example/a/"),
        ),
    ),
    signature(
        ("fatal: empty ident name", "fatal: no email was given", "fatal: no name was given"),
        r"fatal: (?:empty ident name|no (?:email|name) was given)",
        always(VersionControlNeeded, need="identity"),
        (
            "fatal: empty ident name (for <root@x>) not allowed",
            VersionControlNeeded(need="identity"),
        ),
    ),
    signature(
        ("no git tags", "no tags found", "nable to determine version", "o tags found"),
        r"(?:[\w.]{1,80}: )?(?:[Uu]nable to determine (?:the )?version[^.]{0,80}(?:no git tags|no tags found"
        r"|tags)|no (?:git )?tags found)",
        always(VersionControlNeeded, need="tags"),
        (
            "RuntimeError: Unable to determine version from git; no tags found",
            VersionControlNeeded(need="tags"),
        ),
    ),
)
"""What git says."""
