"""The archive's Release file: which indexes there are, and the hashes that they must have."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from specbuild.errors import DownloadError

_SUFFIXES = (".xz", ".gz", "")
"""Ways of packing that Python's standard library unpacks, smallest first."""


@dataclass(frozen=True, slots=True)
class Listed:
    """One index file as the archive offers it."""

    path: str
    """Below `dists/RELEASE/`."""
    sha256: str
    size: int
    """Bytes, packed."""
    addresses: tuple[str, ...]
    """Paths below `dists/RELEASE/` in the order to be tried: mirrors in the midst of a sync are whole by hash only."""


@dataclass(frozen=True, slots=True)
class ReleaseFile:
    """What a Release file says."""

    sums: Mapping[str, tuple[str, int]]
    """Path → sha256 and size in bytes."""
    by_hash: bool
    date: str
    codename: str = ""

    def find(self, path: str) -> Iterator[Listed]:
        """The forms in which the index `path` can be had, best first; none if the archive has no such index."""
        for suffix in _SUFFIXES:
            if found := self.sums.get(path + suffix):
                folder = path.rpartition("/")[0]
                hashed = (f"{folder}/by-hash/SHA256/{found[0]}",) if self.by_hash else ()
                yield Listed(path + suffix, *found, (*hashed, path + suffix))


def read_release_file(text: str) -> ReleaseFile:
    """Read `Release` or `InRelease`. Raises DownloadError if it lists no sha256."""
    fields: dict[str, str] = {}
    sums: dict[str, tuple[str, int]] = {}
    name = ""
    for line in text.splitlines():
        if line.startswith("-----BEGIN PGP SIGNATURE"):
            break
        if not line[:1].isspace():
            name, _, value = line.partition(":")
            fields[name] = value.strip()
        elif name == "SHA256":
            parts = line.split()
            if len(parts) == 3 and parts[1].isdigit():
                sums[parts[2]] = (parts[0], int(parts[1]))
    if not sums:
        raise DownloadError(
            "the archive's Release file lists no indexes", hint="check the address of the Debian mirror"
        )
    by_hash = fields.get("Acquire-By-Hash", "").lower() == "yes"
    return ReleaseFile(sums, by_hash, fields.get("Date", ""), fields.get("Codename", ""))
