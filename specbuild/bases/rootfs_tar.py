"""What can be read of a root filesystem's archive, and added to it, without unpacking."""

from __future__ import annotations

import hashlib
import io
import tarfile
from pathlib import Path


def digest_of_file(path: Path) -> str:
    """The sha256 of a file, in hexadecimal."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def installed_packages(path: Path) -> tuple[tuple[str, str], ...]:
    """Name and version of every package installed in the archive, by dpkg's status file; sorted."""
    with tarfile.open(path) as archive:
        member = next((m for m in archive if m.name.removeprefix("./") == "var/lib/dpkg/status"), None)
        file = archive.extractfile(member) if member else None
        text = file.read().decode("utf-8", "replace") if file else ""
    return tuple(sorted(_package(stanza) for stanza in text.split("\n\n") if "ok installed" in stanza))


def _package(stanza: str) -> tuple[str, str]:
    fields = dict(line.split(": ", 1) for line in stanza.splitlines() if ": " in line and not line[0].isspace())
    return fields["Package"], fields["Version"]


def add_file(path: Path, name: str, text: str, *, mtime: int, mode: int = 0o644) -> None:
    """Append a file of root's to an archive that is not compressed. Its folder must be in it."""
    data = text.encode()
    member = tarfile.TarInfo(f"./{name}")
    member.size, member.mode, member.mtime = len(data), mode, mtime
    member.uname = member.gname = "root"
    with tarfile.open(path, "a:", format=tarfile.PAX_FORMAT) as archive:
        archive.addfile(member, io.BytesIO(data))
