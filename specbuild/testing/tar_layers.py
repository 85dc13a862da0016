"""An independent reader of image layers: applies them one on the other, in memory, as the OCI specification says.

https://github.com/opencontainers/image-spec/blob/v1.1.0/layer.md#applying-changesets
"""

from __future__ import annotations

import hashlib
import tarfile
from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path

_XATTR = "SCHILY.xattr."
_KINDS = {
    tarfile.REGTYPE: "f",
    tarfile.DIRTYPE: "d",
    tarfile.SYMTYPE: "l",
    tarfile.FIFOTYPE: "p",
    tarfile.CHRTYPE: "c",
    tarfile.BLKTYPE: "b",
}
"""Letters as of `find -printf %y`."""


@dataclass(frozen=True, slots=True)
class Entry:
    """One file of an image."""

    kind: str
    mode: int
    uid: int
    gid: int
    mtime_ns: int
    target: str
    """Of a symbolic link."""
    sha256: str
    """Of a regular file's content."""
    xattrs: tuple[tuple[str, bytes], ...]
    inode: int
    """The same number for names of the same file."""


def apply_layers(layers: Iterable[Path]) -> dict[str, Entry]:
    """What is seen when the layers, lowest first, lie on each other: entries by path, the root as `.`."""
    seen: dict[str, Entry] = {}
    for number, layer in enumerate(layers):
        _apply(layer, seen, number << 32)
    return seen


def _apply(layer: Path, seen: dict[str, Entry], first_inode: int) -> None:
    new: set[str] = set()
    with tarfile.open(layer, "r:*", errorlevel=2) as tar:
        for inode, member in enumerate(tar, first_inode):
            name = member.name.removeprefix("./").rstrip("/") or "."
            folder, _, base = name.rpartition("/")
            if base == ".wh..wh..opq":
                _remove(seen, folder, keep=new, itself=False)
            elif base.startswith(".wh."):
                _remove(seen, "/".join(filter(None, [folder, base[4:]])), keep=new, itself=True)
            else:
                entry = _entry(tar, member, seen, inode)
                if name in seen and (seen[name].kind, entry.kind) != ("d", "d"):
                    _remove(seen, name, keep=set(), itself=True)
                seen[name] = entry
                new.add(name)


def _remove(seen: dict[str, Entry], name: str, *, keep: set[str], itself: bool) -> None:
    below = f"{name}/" if name else ""
    for path in [path for path in seen if (path.startswith(below) and path != ".") or (itself and path == name)]:
        if path not in keep and (itself or path != name):
            del seen[path]


def _entry(tar: tarfile.TarFile, member: tarfile.TarInfo, seen: dict[str, Entry], inode: int) -> Entry:
    if member.islnk():
        return seen[member.linkname.removeprefix("./")]
    content = tar.extractfile(member) if member.isreg() else None
    whole, _, fraction = member.pax_headers.get("mtime", str(int(member.mtime))).partition(".")
    xattrs = {
        name.removeprefix(_XATTR): value.encode("utf-8", "surrogateescape")
        for name, value in member.pax_headers.items()
        if name.startswith(_XATTR)
    }
    return Entry(
        kind=_KINDS[member.type],
        mode=member.mode,
        uid=member.uid,
        gid=member.gid,
        mtime_ns=int(whole) * 10**9 + int(fraction.ljust(9, "0") or 0) * (-1 if whole.startswith("-") else 1),
        target=member.linkname if member.issym() else "",
        sha256=hashlib.sha256(content.read()).hexdigest() if content else "",
        xattrs=tuple(sorted(xattrs.items())),
        inode=inode,
    )


def without_inodes(entries: dict[str, Entry]) -> dict[str, Entry]:
    """The entries with the inode numbers left out, which differ from one reader to the next."""
    return {name: replace(entry, inode=0) for name, entry in entries.items()}


def links(entries: dict[str, Entry]) -> set[frozenset[str]]:
    """Groups of names of the same file, where there is more than one."""
    groups: dict[int, set[str]] = {}
    for name, entry in entries.items():
        if entry.kind != "d":
            groups.setdefault(entry.inode, set()).add(name)
    return {frozenset(group) for group in groups.values() if len(group) > 1}
