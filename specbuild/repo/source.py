"""The Repo: a private, pinned copy of the source tree to set up."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Literal
from urllib.parse import urlsplit

from specbuild.errors import RepoSchemeError, UsageError

Kind = Literal["folder", "git", "archive", "pypi"]

ARCHIVE_SUFFIXES = (".tar.gz", ".tgz", ".tar.bz2", ".tbz2", ".tbz", ".tar.xz", ".txz", ".tar.lzma", ".tar", ".zip")
"""Names of archives that can be unpacked."""

_GIT_SCHEMES = frozenset({"git", "ssh", "git+ssh", "ssh+git", "file", "http", "https", "ftp", "ftps"})
_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*)://")
_SCP = re.compile(r"(?:[^@/:\s]+@)?[^/:@\s]+:(?!//)(?!\\)\S")
"""`user@host:path` and `host:path`, by git's rule: no slash before the first colon."""

_OTHER_REGISTRIES = frozenset({"cargo", "crates", "docker", "gem", "gh", "github", "gitlab", "go", "npm", "oci"})
_KNOWN = f"git URLs ({', '.join(sorted(_GIT_SCHEMES))}), http(s) archives, paths and pypi:NAME==VERSION are known"


@dataclass(frozen=True, slots=True)
class Repo:
    """A source tree that SpecBuild owns a copy of. The original is never written to."""

    origin: str
    """As the user named it."""
    kind: str
    """`folder`, `git`, `archive`, `pypi`."""
    path: Path
    """Root of the private copy."""
    revision: str | None
    """Commit id, or version of a source distribution."""
    digest: str
    """sha256 over relative paths, modes, link targets and contents of the tree, `.git` left out."""
    tracked: Mapping[str, str]
    """Files that no Recipe may change: relative path → sha256 of the content. What git tracks; without git, every
    regular file except metadata that build tools rewrite (`*.egg-info`, `PKG-INFO`, scm version files)."""
    date: datetime | None
    """Date of the revision in UTC."""
    fetch: str
    """Shell commands that fetch the same tree into the present folder, for export; empty for local folders."""
    notes: tuple[str, ...] = ()
    """What was left out of the copy or could not be had, and why, for people."""


@dataclass(frozen=True, slots=True)
class RepoLimits:
    """How much a Repo may hold. More raises RepoTooLargeError, or HostileArchiveError where only malice explains it."""

    max_bytes: int = 20 << 30
    """Of the source tree with its version control."""
    max_files: int = 2_000_000
    max_download_bytes: int = 4 << 30
    """Of an archive."""
    free_bytes: int = 512 << 20
    """That must stay free on the disk."""
    max_ratio: float = 250.0
    """Unpacked ÷ packed size of an archive, from `ratio_from_bytes` on. DEFLATE cannot exceed 1032; real source trees
    stay below 40."""
    ratio_from_bytes: int = 256 << 20


@dataclass(frozen=True, slots=True)
class Address:
    """What the user named, understood."""

    origin: str
    kind: Kind
    location: str
    """A path, a URL, or the name of a package."""
    revision: str | None = None
    """Of git; or the version of a package, None for the newest."""


def parse_address(spec: str) -> Address:
    """Decide what `spec` means, looking at the disk where the words leave it open.

    An existing path comes first; then `pypi:NAME==VERSION`, URLs, `user@host:path`; `PATH@REVISION` last.

    Raises RepoSchemeError for an address that nothing here can fetch, UsageError for one that makes no sense.
    """
    if not spec.strip() or "\0" in spec:
        raise UsageError(
            f"{spec!r} names no repository", hint="give a folder, a git URL, an archive or pypi:NAME==VERSION"
        )
    path = Path(spec).expanduser()
    if path.exists() or path.is_symlink():
        return Address(spec, "folder" if path.is_dir() else "archive", str(path))
    if spec.startswith("pypi:"):
        return _package(spec)
    if _SCHEME.match(spec):
        return _url(spec)
    if (prefix := spec.partition(":")[0]) in _OTHER_REGISTRIES and ":" in spec:
        raise RepoSchemeError(f"{spec!r} cannot be fetched: {prefix}: is unknown here", hint=_KNOWN)
    if _SCP.match(spec) and not spec.startswith((".", "/", "~")):
        return Address(spec, "git", *_split_revision(spec, spec.index(":") + 1))
    start, at, revision = spec.rpartition("@")
    if at and revision and Path(start).expanduser().is_dir():
        return Address(spec, "git", str(Path(start).expanduser().absolute()), revision)
    return Address(spec, "folder", str(path))


def is_archive_name(name: str) -> bool:
    """Whether a file of that name is an archive that can be unpacked."""
    return name.lower().endswith(ARCHIVE_SUFFIXES)


def _package(spec: str) -> Address:
    match = re.fullmatch(r"pypi:(?://)?\s*([A-Za-z0-9][A-Za-z0-9._-]*)\s*(?:==\s*([A-Za-z0-9.!+_-]+))?\s*", spec)
    if match is None:
        raise UsageError(
            f"{spec!r} is not of the form pypi:NAME==VERSION", hint="leave out extras and ranges of versions"
        )
    return Address(spec, "pypi", match[1], match[2])


def _url(spec: str) -> Address:
    url, _, fragment = spec.partition("#")
    if "subdirectory=" in fragment:
        raise UsageError(
            f"{spec!r} names a folder inside a repository, which cannot be fetched by itself",
            hint="clone the repository and name the folder's path",
        )
    plain = re.sub(r"^git\+(?!ssh:)", "", url)
    scheme = urlsplit(plain).scheme.lower()
    if scheme not in _GIT_SCHEMES:
        raise RepoSchemeError(
            f"{spec!r} cannot be fetched: {scheme}:// is unknown here",
            hint=_KNOWN,
        )
    if scheme in {"http", "https", "file"} and not url.startswith("git+") and is_archive_name(urlsplit(plain).path):
        return Address(spec, "archive", plain)
    authority_end = plain.find("/", plain.index("://") + 3)
    return Address(spec, "git", *_split_revision(plain, authority_end if authority_end > 0 else len(plain)))


def _split_revision(url: str, path_start: int) -> tuple[str, str | None]:
    """The revision stands behind the last `@` of the path, or behind `.git@`, whatever follows there."""
    at = url.find(".git@", path_start) + 4 if ".git@" in url[path_start:] else url.rfind("@", path_start)
    if at < path_start or at + 1 == len(url) or at == path_start:
        return url, None
    return url[:at], url[at + 1 :]
