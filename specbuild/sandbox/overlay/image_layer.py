# In millions of calls pathlib costs more than the work; this runs in the helper, with the standard library only.
# ruff: noqa: PTH101, PTH102, PTH108, PTH112, PTH114, PTH118
# ruff: noqa: PTH120, PTH123, PTH211
"""Unpacks one layer of an image as an overlay layer: what it adds, what it hides of the layers below.

The rules are those of the OCI image specification's layers and of what engines do on overlayfs: a layer is unpacked by
itself, `.wh.NAME` hides what lower layers have under NAME, `.wh..wh..opq` hides all that they have in a folder, neither
touches what the same layer brings. Folders that the archive implies look as they do below.

The process has the layer's folder as its root, so that no name and no link leads out of it; lower layers are reached
by descriptors alone, and names in them are resolved inside of them.
"""

from __future__ import annotations

import contextlib
import os
import stat
import tarfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import IO

from specbuild.sandbox.overlay import kernel, trees
from specbuild.strict_tar import StrictTarInfo, exact_time

WHITEOUT = ".wh."
OPAQUE = ".wh..wh..opq"
_OWN = ".wh..wh."
"""What else begins so is bookkeeping of AUFS, and stands for nothing."""
_XATTR = "SCHILY.xattr."
_NOT_OURS = ("user.overlay.", "trusted.")
"""What means something to overlayfs, or nothing outside of the namespace that wrote it."""
_PLAIN = os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_CLOEXEC


@dataclass(slots=True)
class _Look:
    """How something is to look once all is unpacked."""

    mode: int
    uid: int
    gid: int
    mtime_ns: int
    xattrs: dict[str, bytes] = field(default_factory=dict[str, bytes])


class Unpacking:
    """Of one layer. `below` are descriptors of the folders of the layers below, topmost first."""

    def __init__(self, below: Sequence[int] = ()) -> None:
        self._below = below
        self._folders: dict[str, _Look] = {}
        """Folders change their times until everything is in them."""
        self._opaque_root = False
        self._devices: set[str] = set()
        """What is left out: a Command has a `/dev` of its own."""

    def run(self, archive: IO[bytes]) -> bool:
        """Unpack the tar stream under the current root; whether the layer hides everything below it."""
        with tarfile.open(fileobj=archive, mode="r|", bufsize=1 << 18, tarinfo=StrictTarInfo) as tar:
            while (member := tar.next()) is not None:
                vars(tar)["members"].clear()  # else it remembers all that it has seen
                self._place(tar, member)
        while archive.read(1 << 20):  # the writer is not done before its last padding has been read
            pass
        for path, look in reversed(self._folders.items()):
            if _kind(path) == stat.S_IFDIR:
                _apply(path, look)
        return self._opaque_root

    def _place(self, tar: tarfile.TarFile, member: tarfile.TarInfo) -> None:
        path = _plain(member.name)
        folder, name = os.path.split(path)
        if f"/{WHITEOUT}" in folder:
            raise tarfile.TarError(f"{member.name} lies in a folder whose name means that another is hidden")
        if name.startswith(WHITEOUT):
            self._hide(folder, name)
        elif path == "/":
            if member.isdir():
                self._folders[path] = _look_of(member)
        elif member.isdir():
            if _kind(path) not in {None, stat.S_IFDIR, stat.S_IFCHR}:
                self._clear(path)
            self._make_folder(path)
            self._folders[path] = _look_of(member)
        elif member.ischr() or member.isblk() or self._is_of_device(member):
            self._devices.add(path)
        else:
            self._make_folder(folder)
            self._clear(path)
            self._devices.discard(path)
            self._make(tar, member, path)

    def _make(self, tar: tarfile.TarFile, member: tarfile.TarInfo, path: str) -> None:
        if member.islnk():
            self._link(member, path)
            return
        if member.issym():
            os.symlink(member.linkname, path)
        elif member.isfifo():
            os.mkfifo(path, 0o600)
        else:
            source = tar.extractfile(member)
            if source is None:
                raise tarfile.TarError(f"{member.name}: neither a file nor a folder nor a link")
            with source, open(os.open(path, _PLAIN, 0o600), "wb") as target:
                while chunk := source.read(1 << 20):
                    target.write(chunk)
        _apply(path, _look_of(member))

    # What is hidden

    def _hide(self, folder: str, name: str) -> None:
        if name == OPAQUE:
            if folder == "/":
                self._opaque_root = True
                _show_plainly("/")
            else:
                self._make_folder(folder)
                _make_opaque(folder)
            return
        if name.startswith(_OWN):
            return
        hidden = name.removeprefix(WHITEOUT)
        if hidden in {"", ".", ".."}:
            raise tarfile.TarError(f"{os.path.join(folder, name)} hides what has no name")
        self._make_folder(folder)
        path = os.path.join(folder, hidden)
        kind = _kind(path)
        if kind is None and self._is_below(path):
            os.mknod(path, stat.S_IFCHR, os.makedev(0, 0))
        elif kind == stat.S_IFDIR:  # of this layer, which stays
            _make_opaque(path)

    def _clear(self, path: str) -> None:
        """Remove what this layer has at `path`, so that something else can be there."""
        if _kind(path) is not None:
            trees.remove(path)
            for gone in [known for known in self._folders if known == path or known.startswith(f"{path}/")]:
                del self._folders[gone]

    # Folders

    def _make_folder(self, path: str) -> None:
        """Make a folder, and those above it, unless they are there."""
        if path == "/" or os.path.isdir(path):
            return
        self._make_folder(os.path.dirname(path))
        kind = _kind(path)
        if kind is not None:
            os.unlink(path)
        os.mkdir(path, 0o700)
        if kind == stat.S_IFCHR:  # hidden before: what is below must not show through now
            os.setxattr(path, trees.OPAQUE, b"y")
        self._folders[path] = self._look_below(path)

    def _look_below(self, path: str) -> _Look:
        found = None if self._is_hidden_here(path) else self._find_below(path)
        if found is None:
            return _Look(0o755, 0, 0, 0)
        fd, info = found
        try:
            return _look_at(fd, info) if stat.S_ISDIR(info.st_mode) else _Look(0o755, 0, 0, 0)
        finally:
            os.close(fd)

    def _is_hidden_here(self, path: str) -> bool:
        return self._opaque_root or any(trees.is_opaque(folder) for folder in _ancestors(path))

    def _find_below(self, path: str) -> tuple[int, os.stat_result] | None:
        """What the merged layers below have at `path`: an O_PATH descriptor, and what it is of."""
        for layer in self._below:
            fd, final = _find_in(layer, path)
            if fd is not None:
                return fd, os.fstat(fd)
            if final:
                return None
        return None

    def _is_below(self, path: str) -> bool:
        """Whether there is anything to hide at `path`."""
        found = None if self._is_hidden_here(path) else self._find_below(path)
        if found is not None:
            os.close(found[0])
        return found is not None

    # Hard links

    def _is_of_device(self, member: tarfile.TarInfo) -> bool:
        return member.islnk() and _plain(member.linkname) in self._devices

    def _link(self, member: tarfile.TarInfo, path: str) -> None:
        target = _plain(member.linkname)
        if _kind(target) in {None, stat.S_IFCHR}:
            self._copy_up(member, target)
        os.link(target, path, follow_symlinks=False)

    def _copy_up(self, member: tarfile.TarInfo, path: str) -> None:
        """Bring a file of a lower layer into this one, as overlayfs does when it gets another name."""
        found = None if _kind(path) is not None or self._is_hidden_here(path) else self._find_below(path)
        if found is None:
            raise tarfile.TarError(f"{member.name} is a link to {member.linkname}, which does not exist")
        fd, info = found
        try:
            self._make_folder(os.path.dirname(path))
            if stat.S_ISLNK(info.st_mode):
                os.symlink(os.readlink("", dir_fd=fd), path)
            elif stat.S_ISREG(info.st_mode):
                _copy(fd, path)
            else:
                raise tarfile.TarError(f"{member.name} is a link to {member.linkname}, which is no file")
            _apply(path, _look_at(fd, info))
        finally:
            os.close(fd)


def _plain(name: str) -> str:
    """As an absolute path."""
    return os.path.normpath("/" + name.lstrip("/"))


def _find_in(layer: int, path: str) -> tuple[int | None, bool]:
    """A descriptor of `path` in one layer; without one, whether the layer hides what is below it.

    Files and folders can be read by it; for all else it is of O_PATH.
    """
    closed = False
    for folder in (*_ancestors(path), path):
        try:
            fd = kernel.open_in_root(layer, folder, os.O_PATH | os.O_NOFOLLOW)
        except FileNotFoundError:
            break
        kind = stat.S_IFMT(os.fstat(fd).st_mode)
        if kind in {stat.S_IFDIR, stat.S_IFREG}:
            os.close(fd)
            fd = kernel.open_in_root(layer, folder, os.O_RDONLY | os.O_NOFOLLOW)
        if folder == path and kind != stat.S_IFCHR:
            return fd, True
        closed = closed or kind != stat.S_IFDIR or _is_opaque(fd)
        os.close(fd)
        if kind != stat.S_IFDIR:
            break
    return None, closed


def _is_opaque(fd: int) -> bool:
    try:
        return os.getxattr(fd, trees.OPAQUE) == b"y"
    except OSError:
        return False


def _ancestors(path: str) -> Iterator[str]:
    """The folders above `path`, from the top, without the root."""
    parts = path.strip("/").split("/")[:-1]
    for count in range(1, len(parts) + 1):
        yield "/" + "/".join(parts[:count])


def _kind(path: str) -> int | None:
    """What this layer has there; None for nothing."""
    try:
        return stat.S_IFMT(os.lstat(path).st_mode)
    except (FileNotFoundError, NotADirectoryError):
        return None


def _make_opaque(folder: str) -> None:
    os.setxattr(folder, trees.OPAQUE, b"y")
    _show_plainly(folder)


def _show_plainly(folder: str) -> None:
    """Remove the whiteouts in a folder that hides all below anyway: overlayfs lists them where nothing is merged."""
    with os.scandir(folder) as entries:
        for entry in entries:
            if entry.is_dir(follow_symlinks=False):
                _show_plainly(entry.path)
            elif stat.S_ISCHR(entry.stat(follow_symlinks=False).st_mode):
                os.unlink(entry.path)


def _look_of(member: tarfile.TarInfo) -> _Look:
    xattrs = {
        key.removeprefix(_XATTR): value.encode("utf-8", "surrogateescape")
        for key, value in member.pax_headers.items()
        if key.startswith(_XATTR) and not key.removeprefix(_XATTR).startswith(_NOT_OURS)
    }
    return _Look(stat.S_IMODE(member.mode), member.uid, member.gid, _mtime_ns(member), xattrs)


def _mtime_ns(member: tarfile.TarInfo) -> int:
    """Exactly: a float has no room for the nanoseconds of our time."""
    whole, _, rest = (exact_time(member) or str(int(member.mtime))).partition(".")
    fraction = int((rest + "0" * 9)[:9])
    return int(whole) * 10**9 + (-fraction if whole.startswith("-") else fraction)


def _look_at(fd: int, info: os.stat_result) -> _Look:
    """How a file of a lower layer looks."""
    xattrs: dict[str, bytes] = {}
    if stat.S_ISREG(info.st_mode) or stat.S_ISDIR(info.st_mode):
        with contextlib.suppress(OSError):  # the filesystem may have none
            names = [each for each in os.listxattr(fd) if not each.startswith(_NOT_OURS)]
            xattrs = {each: os.getxattr(fd, each) for each in names}
    return _Look(stat.S_IMODE(info.st_mode), info.st_uid, info.st_gid, info.st_mtime_ns, xattrs)


def _apply(path: str, look: _Look) -> None:
    """Owner first: changing it takes set-id bits and capabilities away."""
    link = os.path.islink(path)
    with contextlib.suppress(OSError, OverflowError):  # an id that is not mapped, or that none can have
        os.chown(path, look.uid, look.gid, follow_symlinks=False)
    for name, value in look.xattrs.items():
        with contextlib.suppress(OSError, ValueError):  # the filesystem may not have them, or nothing has such a name
            os.setxattr(path, name, value, follow_symlinks=False)
    if not link:
        os.chmod(path, look.mode)
    with contextlib.suppress(OSError, OverflowError):  # a time that no file can have
        os.utime(path, ns=(look.mtime_ns, look.mtime_ns), follow_symlinks=False)


def _copy(source: int, path: str) -> None:
    target = os.open(path, _PLAIN, 0o600)
    try:
        while os.sendfile(target, source, None, 1 << 30):
            pass
    finally:
        os.close(target)
