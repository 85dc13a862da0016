"""Debian's own list of Python distributions and their packages: `pydist/cpython3_fallback` of dh-python's source.

dh_python3 reads it where a distribution has no metadata of its own in the archive
(https://manpages.debian.org/dh_python3, "dependencies").
"""

from __future__ import annotations

import re
import tarfile
from collections.abc import Iterator
from pathlib import Path

from packaging.utils import canonicalize_name

from specbuild.knowledge.sources import SourcePackage

SOURCE = "dh-python"
_MEMBER = re.compile(r"[^/]+/pydist/cpython3_fallback")
_LINE = re.compile(r"(?P<distribution>[A-Za-z0-9][\w.-]*)\s+(?P<package>[a-z0-9][a-z0-9.+-]+)")
_LARGEST = 16 << 20


def tarball_of(source: SourcePackage) -> str | None:
    """The name of the file of dh-python's source that has the list."""
    return next((name for name in source.files if re.search(r"\.tar\.(xz|gz)$", name)), None)


def read_tarball(path: Path) -> tuple[tuple[str, str], ...]:
    """Pairs of normalised distribution name and Debian package; none if the archive has no such list."""
    with tarfile.open(path) as archive:
        for member in archive:
            if _MEMBER.fullmatch(member.name) and member.isreg() and member.size <= _LARGEST:
                file = archive.extractfile(member)
                return tuple(read_pydist(file.read().decode("utf-8", errors="replace"))) if file else ()
    return ()


def read_pydist(text: str) -> Iterator[tuple[str, str]]:
    """The pairs in lines of `distribution package`; comments and distributions without a package are left out."""
    for line in text.splitlines():
        if match := _LINE.match(line.strip()):
            yield canonicalize_name(match["distribution"]), match["package"]
