# In hundreds of thousands of calls pathlib costs more than the work.
# ruff: noqa: PTH116, PTH123, PTH208, PTH115
"""Write a layer, or a merged root, as a tar stream: the form in which files leave the store.

Done in workers that the helper forks, whose ids are those inside of a Sandbox: owners come out as Sandboxes see them,
and so does `security.capability`, which the kernel translates as it does ids. The same files give the same bytes.

What the OCI image specification asks of layers: https://github.com/opencontainers/image-spec/blob/v1.1.0/layer.md
What overlayfs writes into them: https://docs.kernel.org/filesystems/overlayfs.html
"""

from __future__ import annotations

import os
import re
import stat
import tarfile
from collections.abc import Iterator
from typing import IO

from specbuild.sandbox.overlay.trees import is_opaque

WHITEOUT = ".wh."
"""Begins the name of an entry that hides what lower layers have under the rest of its name."""
OPAQUE_ENTRY = f"{WHITEOUT}{WHITEOUT}.opq"
"""In a folder: hides all that lower layers have in it."""

_XATTR = "SCHILY.xattr."
_NOT_OURS = ("user.overlay.", "trusted.", "security.selinux", "security.ima", "security.evm")
"""Attributes of the overlay and of this machine's own policies, which mean nothing elsewhere."""

_CHUNK = 1 << 20
_Link = dict[tuple[int, int], str]


def write_layer(folder: str, sink: IO[bytes], *, without: str = "") -> int:
    """The overlay layer `folder` with its whiteouts as OCI has them; how many entries it has besides its root.

    `without` is a pattern of names that are left out. Raises ValueError for a name that an image cannot hold, OSError.
    """
    return _write(folder, sink, without, overlay=True)


def write_root(folder: str, sink: IO[bytes], *, without: str = "") -> int:
    """Whatever is seen at `folder`, as it is, but for names of the pattern `without`. Raises OSError."""
    return _write(folder, sink, without, overlay=False)


def _write(folder: str, sink: IO[bytes], without: str, *, overlay: bool) -> int:
    links: _Link = {}
    count = 0
    left_out = re.compile(without or r"(?!)")
    for name, path, info in _walk(folder):
        if left_out.fullmatch(name):
            continue
        if overlay and name != "." and os.path.basename(name).startswith(WHITEOUT):  # noqa: PTH119
            raise ValueError(f"/{name}: an image cannot hold a file of that name, which means the removal of another")
        if stat.S_ISSOCK(info.st_mode):  # of a server that runs no more
            continue
        count += 1
        if overlay and stat.S_ISCHR(info.st_mode) and info.st_rdev == 0:
            _mark(sink, _beside(name, WHITEOUT + os.path.basename(name)))  # noqa: PTH119
            continue
        entry = _entry(name, path, info, links)
        sink.write(entry.tobuf(tarfile.PAX_FORMAT, "utf-8", "surrogateescape"))
        if entry.isreg():
            _content(path, entry.size, sink)
        if overlay and stat.S_ISDIR(info.st_mode) and is_opaque(path):
            _mark(sink, f"{name}/{OPAQUE_ENTRY}")
    sink.write(b"\0" * 2 * tarfile.BLOCKSIZE)
    return count - 1


def _walk(folder: str) -> Iterator[tuple[str, str, os.stat_result]]:
    """Name in the archive, path and status of each file, a folder before what is in it, by name."""
    pending = [(".", folder)]
    while pending:
        name, path = pending.pop()
        info = os.stat(path, follow_symlinks=False)
        yield name, path, info
        if stat.S_ISDIR(info.st_mode):
            inside = sorted(os.listdir(path), key=os.fsencode, reverse=True)
            pending += [(entry if name == "." else f"{name}/{entry}", f"{path}/{entry}") for entry in inside]


def _entry(name: str, path: str, info: os.stat_result, links: _Link) -> tarfile.TarInfo:
    entry = tarfile.TarInfo(name)
    entry.mode = stat.S_IMODE(info.st_mode)
    entry.uid, entry.gid = info.st_uid, info.st_gid
    entry.mtime = info.st_mtime_ns // 10**9
    more = {"mtime": _decimal(info.st_mtime_ns)} if info.st_mtime_ns % 10**9 else {}
    known = links.setdefault((info.st_dev, info.st_ino), name) if _has_names(info) else name
    if known != name:
        entry.type, entry.linkname, entry.pax_headers = tarfile.LNKTYPE, known, more
        return entry
    _set_type(entry, path, info)
    entry.pax_headers = {**more, **_attributes(path)}
    return entry


def _has_names(info: os.stat_result) -> bool:
    return info.st_nlink > 1 and not stat.S_ISDIR(info.st_mode)


def _set_type(entry: tarfile.TarInfo, path: str, info: os.stat_result) -> None:
    mode = info.st_mode
    if stat.S_ISREG(mode):
        entry.size = info.st_size
    elif stat.S_ISDIR(mode):
        entry.type = tarfile.DIRTYPE
    elif stat.S_ISLNK(mode):
        entry.type, entry.linkname = tarfile.SYMTYPE, os.readlink(path)
    elif stat.S_ISFIFO(mode):
        entry.type = tarfile.FIFOTYPE
    else:
        entry.type = tarfile.CHRTYPE if stat.S_ISCHR(mode) else tarfile.BLKTYPE
        entry.devmajor, entry.devminor = os.major(info.st_rdev), os.minor(info.st_rdev)


def _decimal(nanoseconds: int) -> str:
    """Seconds, exactly: a float would lose the last digits."""
    sign = "-" if nanoseconds < 0 else ""
    seconds, rest = divmod(abs(nanoseconds), 10**9)
    return f"{sign}{seconds}.{rest:09}"


def _attributes(path: str) -> dict[str, str]:
    names = sorted(name for name in os.listxattr(path, follow_symlinks=False) if not name.startswith(_NOT_OURS))
    return {
        _XATTR + name: os.getxattr(path, name, follow_symlinks=False).decode("utf-8", "surrogateescape")
        for name in names
    }


def _beside(name: str, other: str) -> str:
    folder = os.path.dirname(name)  # noqa: PTH120
    return f"{folder}/{other}" if folder else other


def _mark(sink: IO[bytes], name: str) -> None:
    """An empty file that stands for something else."""
    entry = tarfile.TarInfo(name.removeprefix("./"))
    entry.mode = 0o600
    sink.write(entry.tobuf(tarfile.PAX_FORMAT, "utf-8", "surrogateescape"))


def _content(path: str, size: int, sink: IO[bytes]) -> None:
    left = size
    with open(os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC), "rb", buffering=0) as source:
        while left and (chunk := source.read(min(left, _CHUNK))):
            sink.write(chunk)
            left -= len(chunk)
    if left:
        raise OSError(f"{path} ends {left} bytes early")
    sink.write(b"\0" * (-size % tarfile.BLOCKSIZE))
