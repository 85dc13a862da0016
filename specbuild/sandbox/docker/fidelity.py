"""What an engine's commit loses of files, put back where its storage can be reached.

An engine writes a container's changes into an archive and unpacks that as the layer of an image. The archive has
whole seconds, of extended attributes at most some, no holes, and takes names that begin with `.wh.` for its own marks
(moby, pkg/archive; OCI image specification, layer.md). Where engine and we share a machine and we may look into the
folders of its layers, what was lost is put back into the new layer: the content that its digest names stays as it is.
Elsewhere Checkpoints are as an engine makes them.
"""

from __future__ import annotations

import contextlib
import ctypes
import errno
import os
import shutil
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from specbuild.sandbox.docker.engine import dig

_OWN = ("trusted.overlay.", "user.overlay.", "security.selinux", "system.")
"""Attributes that are the filesystem's, not the file's."""
_MARK = ".wh."
_IDS = 65536
"""As many as root filesystems use."""
_LEAST_HOLE = 64 << 10
"""Bytes: smaller holes are not worth a system call."""
_KEEP_SIZE_PUNCH_HOLE = 0x1 | 0x2
"""FALLOC_FL_KEEP_SIZE | FALLOC_FL_PUNCH_HOLE of fallocate(2)."""


def folder_of(inspected: dict[str, Any]) -> Path | None:
    """The folder of a container's or image's own layer, by what the engine says of it, if it can be worked with."""
    upper: str | None = dig(inspected, "GraphDriver", "Data", "UpperDir")
    if not upper or not is_root_of_all():
        return None
    folder = Path(upper)
    return folder if folder.is_dir() else None


def is_root_of_all() -> bool:
    """Whether files of every owner can be worked with; the root of a user namespace of one user is root by name only.

    See user_namespaces(7) for what the map holds.
    """
    if os.geteuid() != 0:
        return False
    ids = [int(line.split()[2]) for line in Path("/proc/self/uid_map").read_text().splitlines()]
    return sum(ids) >= _IDS


def restore(source: Path, target: Path) -> None:
    """Make the files of the layer `target`, the commit of `source`, as they are there."""
    _restore_folder(os.fspath(source), os.fspath(target))


def _restore_folder(source: str, target: str) -> None:
    with os.scandir(source) as found:
        entries = sorted(found, key=lambda entry: entry.name)
    for entry in entries:
        here, there = entry.path, os.path.join(target, entry.name)  # noqa: PTH118 - a hot loop
        info = entry.stat(follow_symlinks=False)
        if entry.name.startswith(_MARK):
            _copy_marked(here, there, info)
        try:
            made = os.lstat(there)
        except FileNotFoundError:
            continue
        if stat.S_IFMT(made.st_mode) != stat.S_IFMT(info.st_mode):
            continue
        if stat.S_ISDIR(info.st_mode):
            _restore_folder(here, there)
        elif stat.S_ISREG(info.st_mode) and info.st_blocks * 512 + _LEAST_HOLE < info.st_size:
            _punch(here, there)
        _copy_attributes(here, there, info)


def _copy_attributes(source: str, target: str, info: os.stat_result) -> None:
    for name in os.listxattr(source, follow_symlinks=False):
        if not name.startswith(_OWN):
            with contextlib.suppress(OSError):  # what its filesystem does not take, as the engine does
                os.setxattr(target, name, os.getxattr(source, name, follow_symlinks=False), follow_symlinks=False)
    os.utime(target, ns=(info.st_atime_ns, info.st_mtime_ns), follow_symlinks=False)


def _copy_marked(source: str, target: str, info: os.stat_result) -> None:
    """A file whose name was taken for a mark: undo what the mark has done, and copy the file."""
    folder, name = os.path.split(target)
    if name == ".wh..wh..opq":
        with contextlib.suppress(OSError):
            os.removexattr(folder, "trusted.overlay.opaque")
    else:
        hidden = os.path.join(folder, name.removeprefix(_MARK))  # noqa: PTH118
        original = os.path.join(os.path.dirname(source), name.removeprefix(_MARK))  # noqa: PTH118, PTH120
        if _is_whiteout(hidden) and not _is_whiteout(original):
            os.unlink(hidden)  # noqa: PTH108
    if os.path.lexists(target) or not os.path.isdir(folder):  # noqa: PTH112
        return
    if stat.S_ISDIR(info.st_mode):
        shutil.copytree(source, target, symlinks=True)
    elif stat.S_ISREG(info.st_mode) or stat.S_ISLNK(info.st_mode):
        shutil.copy2(source, target, follow_symlinks=False)
    else:
        return
    os.chown(target, info.st_uid, info.st_gid, follow_symlinks=False)


def _is_whiteout(path: str) -> bool:
    try:
        info = os.lstat(path)
    except FileNotFoundError:
        return False
    return stat.S_ISCHR(info.st_mode) and info.st_rdev == 0


def _punch(source: str, target: str) -> None:
    """Give a copy the holes of its original."""
    flags = os.O_NOFOLLOW | os.O_CLOEXEC
    original = os.open(source, os.O_RDONLY | flags)
    try:
        copy = os.open(target, os.O_RDWR | flags)
        try:
            size = os.fstat(original).st_size
            if os.fstat(copy).st_size == size:
                for begin, end in _holes(original, size):
                    _fallocate(copy, begin, end - begin)
        finally:
            os.close(copy)
    finally:
        os.close(original)


def _holes(fd: int, size: int) -> Iterator[tuple[int, int]]:
    at = 0
    while at < size:
        begin = os.lseek(fd, at, os.SEEK_HOLE)
        try:
            at = os.lseek(fd, begin, os.SEEK_DATA)
        except OSError as error:
            if error.errno != errno.ENXIO:
                raise
            at = size
        if at - begin >= _LEAST_HOLE:
            yield begin, at


def _fallocate(fd: int, offset: int, length: int) -> None:
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.fallocate(fd, _KEEP_SIZE_PUNCH_HOLE, ctypes.c_int64(offset), ctypes.c_int64(length)):
        number = ctypes.get_errno()
        if number != errno.EOPNOTSUPP:
            raise OSError(number, os.strerror(number))
