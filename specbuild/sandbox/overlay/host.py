"""The running system's root as the lowest layer: whether it can be, and what hides the rest of it."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from specbuild.errors import BaseUnavailableError

_NEEDED = ("bin", "etc", "lib", "lib32", "lib64", "libx32", "opt", "sbin", "usr", "var")
"""Folders of the root that make up a system; overlayfs shows what is mounted on them as empty."""
_OWN_MOUNTS = ("/proc", "/sys", "/dev")
"""What every Command has its own of."""
_COVERED = ("/etc/resolv.conf", "/etc/hosts")


class Kind(StrEnum):
    """What stands in the masking layer for a path of the host."""

    PARENT = "parent"
    """A folder as it is, on the way to something masked."""
    FOLDER = "folder"
    """An empty folder that hides the host's."""
    FILE = "file"
    """An empty file."""
    NOTHING = "nothing"
    """A whiteout: the host has nothing there, and what may come later stays hidden."""


@dataclass(frozen=True, slots=True)
class Mask:
    """One entry of the masking layer; in the files, so that it costs no mounts."""

    path: str
    kind: Kind
    mode: int = 0o755
    uid: int = 0
    gid: int = 0


def check_mounts(masked: Iterable[str], mountinfo: str | None = None) -> None:
    """Raises BaseUnavailableError when part of the system is on a filesystem of its own."""
    text = Path("/proc/self/mountinfo").read_text("utf-8", "replace") if mountinfo is None else mountinfo
    for point in (line.split(" ", 5)[4] for line in text.splitlines()):
        needed = point.split("/")[1] in _NEEDED
        file = os.path.isfile(point)  # noqa: PTH113 - unlike that of Path it raises nothing for folders of others
        if needed and not _below(point, masked) and not file:
            raise BaseUnavailableError(
                f"the running system cannot be a base: {point} is on a filesystem of its own, which would look empty",
                hint="use a portable base, such as debian:bookworm",
            )


def _below(path: str, others: Iterable[str]) -> bool:
    return any(path == other or path.startswith(f"{other}/") for other in others)


def masks(paths: Iterable[str]) -> list[Mask]:
    """The masking layer, parents before what lies in them. Links are followed: what they lead to is hidden."""
    real = sorted({os.path.realpath(path) for path in paths} - {"/"})
    outermost = [path for path in real if not _below(path, set(real) - {path}) and not _below(path, _OWN_MOUNTS)]
    found: dict[str, Mask] = {}
    for path in outermost:
        _add(found, path, _mask(path))
    for path in _COVERED:
        # Where the link leads (to /run, mostly) is no part of the root; an empty file can be covered.
        if os.path.islink(path) and not _below(path, outermost):  # noqa: PTH114
            _add(found, path, Mask(path, Kind.FILE, 0o644))
    return list(found.values())


def _mask(path: str) -> Mask:
    try:
        info = os.lstat(path)
    except FileNotFoundError:
        return Mask(path, Kind.NOTHING)
    kind = Kind.FOLDER if stat.S_ISDIR(info.st_mode) else Kind.FILE
    return Mask(path, kind, stat.S_IMODE(info.st_mode), info.st_uid, info.st_gid)


def _add(found: dict[str, Mask], path: str, mask: Mask) -> None:
    for parent in reversed(Path(path).parents[:-1]):
        name = str(parent)
        if name not in found:
            try:
                info = parent.stat()
            except FileNotFoundError:
                found[name] = Mask(name, Kind.NOTHING)
                return
            found[name] = Mask(name, Kind.PARENT, stat.S_IMODE(info.st_mode), info.st_uid, info.st_gid)
        elif found[name].kind is Kind.NOTHING:
            return
    found[path] = mask
