# In millions of calls pathlib costs more than the work.
# ruff: noqa: PTH101, PTH102, PTH103, PTH106, PTH108, PTH110, PTH112, PTH114, PTH116, PTH119, PTH120, PTH123, PTH208, PTH211
"""Work on whole trees of files, done in workers that the helper forks: unpack, remove, measure, flatten, compare.

Workers have the ids of the store's owner (in a user namespace, its root), no threads, and nothing to import any more:
an identity that is nobody on the host cannot read the standard library's files where those are in somebody's home.
"""

from __future__ import annotations

import contextlib
import importlib
import os
import stat
import tarfile
from collections.abc import Callable, Iterator
from typing import IO, Any

from specbuild.strict_tar import StrictTarInfo

for _codec in ("bz2", "lzma", "zlib"):  # tarfile would only import them when it meets such an archive
    with contextlib.suppress(ImportError):
        importlib.import_module(_codec)

OPAQUE = "user.overlay.opaque"
"""Set to "y" on a folder that hides what lower layers have under its name (overlayfs with `userxattr`)."""

_XATTR = "SCHILY.xattr."
"""What GNU tar, star and Python's writer call extended attributes in pax headers."""


def unpack(archive: IO[bytes], *, owner: tuple[int, int] | None = None) -> None:
    """Unpack a tar stream under the current root, which is the target: links cannot lead out of it.

    Numeric owners, modes, times and extended attributes are kept; `owner` replaces all owners. Device nodes are left
    out, since a Command has its own `/dev`. An id that the namespace does not have becomes root's.
    """
    folders: list[tarfile.TarInfo] = []
    with tarfile.open(fileobj=archive, mode="r|*", tarinfo=StrictTarInfo) as tar:
        for member in tar:
            path = "/" + os.path.normpath("/" + member.name).lstrip("/")
            if member.isdev() and not member.isfifo():
                continue
            if path != "/":
                _make(tar, member, path)
            _set_owner(member, path, owner)
            _set_xattrs(member, path)
            if member.isdir():
                folders.append(member)
            elif not member.issym() and not member.islnk():
                os.chmod(path, member.mode)
                os.utime(path, (member.mtime, member.mtime))
    for member in reversed(folders):
        path = "/" + os.path.normpath("/" + member.name).lstrip("/")
        os.chmod(path, member.mode)
        os.utime(path, (member.mtime, member.mtime))


def _make(tar: tarfile.TarFile, member: tarfile.TarInfo, path: str) -> None:
    os.makedirs(os.path.dirname(path), 0o755, exist_ok=True)
    if member.isdir():
        with contextlib.suppress(FileExistsError):
            os.mkdir(path, 0o700)
        return
    with contextlib.suppress(FileNotFoundError):
        os.unlink(path)
    if member.issym():
        os.symlink(member.linkname, path)
    elif member.islnk():
        os.link("/" + member.linkname.lstrip("/"), path, follow_symlinks=False)
    elif member.isfifo():
        os.mkfifo(path, 0o600)
    else:
        _write(tar, member, path)


def _write(tar: tarfile.TarFile, member: tarfile.TarInfo, path: str) -> None:
    source = tar.extractfile(member)
    if source is None:
        raise tarfile.TarError(f"{member.name}: neither a file nor a folder nor a link")
    with source, open(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_CLOEXEC, 0o600), "wb") as target:
        while chunk := source.read(1 << 20):
            target.write(chunk)


def _set_owner(member: tarfile.TarInfo, path: str, owner: tuple[int, int] | None) -> None:
    if member.islnk():
        return
    uid, gid = owner or (member.uid, member.gid)
    with contextlib.suppress(OSError):  # an id that is not mapped: EINVAL
        os.chown(path, uid, gid, follow_symlinks=False)


def _set_xattrs(member: tarfile.TarInfo, path: str) -> None:
    if member.islnk() or member.issym():
        return
    for key, value in member.pax_headers.items():
        name = key.removeprefix(_XATTR)
        if name != key and not name.startswith(("user.overlay.", "trusted.")):
            with contextlib.suppress(OSError):  # the filesystem may not have them
                os.setxattr(path, name, value.encode("utf-8", "surrogateescape"))


def remove(path: str) -> int:
    """Remove a tree without following links or leaving its filesystem; bytes freed. Missing is fine.

    What lies deeper than a process may open folders is moved up beside the tree first, and removed after it.
    """
    folder = os.path.dirname(path) or "."
    try:
        parent = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    except FileNotFoundError:
        return 0
    try:
        removal = _Removal(parent, os.path.basename(path))
        return removal.run()
    finally:
        os.close(parent)


def remove_hollow(path: str) -> bool:
    """Remove a tree of a few folders and empty files, which needs no worker; whether it is gone."""
    folders: list[str] = [path]
    files: list[str] = []
    try:
        for folder in folders:
            with os.scandir(folder) as entries:
                for entry in entries:
                    here = folders if entry.is_dir(follow_symlinks=False) else files
                    here.append(entry.path)
                    if len(folders) + len(files) > _A_FEW or (
                        here is files and entry.stat(follow_symlinks=False).st_size
                    ):
                        return False
        for file in files:
            os.unlink(file)
        for folder in reversed(folders):
            os.rmdir(folder)
    except OSError:  # for a worker to explain
        return False
    return True


_A_FEW = 16


class _Removal:
    def __init__(self, parent: int, name: str) -> None:
        self.parent = parent
        self.name = name
        self.device = os.fstat(parent).st_dev
        self.pending = [name]
        self.moved = 0

    def run(self) -> int:
        freed = 0
        while self.pending:
            freed += self._entry(self.parent, self.pending.pop(), 0)
        return freed

    def _entry(self, parent: int, name: str, depth: int) -> int:
        try:
            info = os.stat(name, dir_fd=parent, follow_symlinks=False)
        except FileNotFoundError:
            return 0
        if info.st_dev != self.device:
            raise OSError(f"{name}: another filesystem is mounted there")
        if not stat.S_ISDIR(info.st_mode):
            os.unlink(name, dir_fd=parent)
            return info.st_blocks * 512 if info.st_nlink == 1 else 0
        if depth > _DEEPEST:
            self.moved += 1
            aside = f"{self.name}.deep{self.moved}"
            os.rename(name, aside, src_dir_fd=parent, dst_dir_fd=self.parent)
            self.pending.append(aside)
            return 0
        folder = _open_folder(parent, name)
        try:
            freed = sum(self._entry(folder, child, depth + 1) for child in os.listdir(folder))
        finally:
            os.close(folder)
        os.rmdir(name, dir_fd=parent)
        return info.st_blocks * 512 + freed


_DEEPEST = 200
"""Folders held open at once; a process may have 1,024 descriptors, and Python nests as many calls."""


def _open_folder(parent: int, name: str) -> int:
    flags = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
    try:
        return os.open(name, flags, dir_fd=parent)
    except PermissionError:
        os.chmod(name, 0o700, dir_fd=parent)
        return os.open(name, flags, dir_fd=parent)


def measure(path: str) -> int:
    """Bytes on disk of a tree, a file with several names once."""
    seen: set[int] = set()
    total = 0
    for info in _walk(path):
        if info.st_nlink > 1 and not stat.S_ISDIR(info.st_mode):
            if info.st_ino in seen:
                continue
            seen.add(info.st_ino)
        total += info.st_blocks * 512
    return total


def _walk(path: str) -> Iterator[os.stat_result]:
    pending = [path]
    while pending:
        # What has gone meanwhile, and what lies deeper than a path can be long, counts for nothing.
        with contextlib.suppress(OSError), os.scandir(pending.pop()) as entries:
            for entry in entries:
                with contextlib.suppress(FileNotFoundError):
                    yield entry.stat(follow_symlinks=False)
                    if entry.is_dir(follow_symlinks=False):
                        pending.append(entry.path)


def flatten(layers: list[str], target: str, below: str | None = None) -> None:
    """Merge `layers`, lowest first, into the empty folder `target` by hard links; nothing is copied.

    Opaque folders stay, and so do the whiteouts that hide something of the one layer that lies under all of these,
    `below`; all of them, if that is not told. Others would be listed where nothing is merged. What the layers hide from
    each other is left out.
    """
    _merge_folder([*reversed(layers)], target, _Under(below, below is None), at_top=True)


class _Under:
    """What the layer under a merge has at some place, as far as it is a folder that shows through there."""

    def __init__(self, path: str | None, unknown: bool) -> None:
        self._path = path
        self._unknown = unknown

    def has(self, name: str) -> bool:
        """Whether there is, or may be, something of that name."""
        return self._unknown or (self._path is not None and os.path.lexists(f"{self._path}/{name}"))

    def enter(self, name: str) -> _Under:
        """The same one folder down."""
        path = f"{self._path}/{name}"
        is_folder = self._path is not None and os.path.isdir(path) and not os.path.islink(path)
        return _Under(path if is_folder else None, self._unknown)


_NOTHING = _Under(None, unknown=False)


def _merge_folder(sources: list[str], target: str, under: _Under, *, at_top: bool = False) -> None:
    """`sources` are folders of the same name, topmost first, as far down as they merge."""
    if not at_top:
        os.mkdir(target, 0o700)
    names = dict.fromkeys(name for source in sources for name in os.listdir(source))
    for name in names:
        _merge_entry([f"{source}/{name}" for source in sources], f"{target}/{name}", under, name)
    _copy_attributes(sources[0], target)


def _merge_entry(candidates: list[str], target: str, under: _Under, name: str) -> None:
    present = [path for path in candidates if os.path.lexists(path)]
    top = os.lstat(present[0])
    if not stat.S_ISDIR(top.st_mode):
        if not stat.S_ISCHR(top.st_mode) or under.has(name):
            _link(present[0], top, target)
        return
    merged: list[str] = []
    closed = False
    for path in present:
        if not stat.S_ISDIR(os.lstat(path).st_mode):  # a whiteout or a file: nothing below shows through
            closed = True
            break
        merged.append(path)
        if is_opaque(path):
            closed = True
            break
    _merge_folder(merged, target, _NOTHING if closed else under.enter(name))
    if closed:
        os.setxattr(target, OPAQUE, b"y")


def overlap(ours: list[str], theirs: list[str]) -> str:
    """The first path that both groups of layers change, each lowest first; empty if they are apart.

    Folders that both have are no change, as long as their owners and modes agree: overlayfs copies up the folders above
    all that it writes. A whiteout is a change.
    """
    pending = [""]
    while pending:
        at = pending.pop()
        for name in sorted(_names(ours, at) & _names(theirs, at)):
            path = f"{at}/{name}"
            if not _same_folder(ours, theirs, path):
                return path
            pending.append(path)
    return ""


def _names(layers: list[str], folder: str) -> set[str]:
    found: set[str] = set()
    for layer in layers:
        with contextlib.suppress(FileNotFoundError, NotADirectoryError):
            found.update(os.listdir(layer + folder))
    return found


def _same_folder(ours: list[str], theirs: list[str], path: str) -> bool:
    looks: set[tuple[int, int, int]] = set()
    for group in (ours, theirs):
        present = [layer + path for layer in group if os.path.lexists(layer + path)]
        infos = [os.lstat(one) for one in present]
        if not all(stat.S_ISDIR(info.st_mode) for info in infos) or any(map(is_opaque, present)):
            return False
        looks.add((infos[-1].st_mode, infos[-1].st_uid, infos[-1].st_gid))
    return len(looks) == 1


def _link(source: str, info: os.stat_result, target: str) -> None:
    if stat.S_ISCHR(info.st_mode):  # a whiteout; every device node would be one, there are no others
        os.mknod(target, stat.S_IFCHR, os.makedev(0, 0))
        return
    os.link(source, target, follow_symlinks=False)


def is_opaque(path: str) -> bool:
    """Whether a folder of a layer hides the same folder of the layers below."""
    try:
        return os.getxattr(path, OPAQUE) == b"y"
    except OSError:
        return False


def _copy_attributes(source: str, target: str) -> None:
    info = os.stat(source)
    os.chown(target, info.st_uid, info.st_gid)
    for name in os.listxattr(source):
        if name != OPAQUE:
            os.setxattr(target, name, os.getxattr(source, name))
    os.chmod(target, stat.S_IMODE(info.st_mode))
    os.utime(target, ns=(info.st_atime_ns, info.st_mtime_ns))


def write_file(data: IO[bytes], path: str, mode: int) -> None:
    """Write a file under the current root, with missing folders; a link at its end is followed inside the root."""
    os.makedirs(os.path.dirname(path), 0o755, exist_ok=True)
    with open(os.open(path, os.O_CREAT | os.O_TRUNC | os.O_WRONLY | os.O_NONBLOCK | os.O_CLOEXEC, mode), "wb") as file:
        while chunk := data.read(1 << 20):
            file.write(chunk)
        os.fchmod(file.fileno(), mode)
        os.fchown(file.fileno(), 0, 0)


def read_file(path: str, limit: int, sink: Callable[[bytes], object]) -> None:
    """Give the bytes of a regular file under the current root to `sink`.

    Raises FileNotFoundError, IsADirectoryError, OSError (EINVAL) for what is no file, OverflowError above `limit`.
    """
    with open(os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC), "rb") as file:
        info = os.fstat(file.fileno())
        if stat.S_ISDIR(info.st_mode):
            raise IsADirectoryError(21, "Is a directory", path)
        if not stat.S_ISREG(info.st_mode):
            raise OSError(22, "not a regular file", path)
        if info.st_size > limit:
            raise OverflowError(f"{path} has {info.st_size:,} bytes, more than the limit of {limit:,}")
        left = limit
        while left > 0 and (chunk := file.read(min(left, 1 << 20))):
            left -= len(chunk)
            sink(chunk)


def ready_for_covers() -> None:
    """See that the files which the host's are shown over exist under the current root, so that nothing is left there.

    A link that leads nowhere, as systemd-resolved's does while it is not running, is replaced.
    """
    os.makedirs("/etc", 0o755, exist_ok=True)
    for path in ("/etc/resolv.conf", "/etc/hosts"):
        if not os.path.exists(path):
            with contextlib.suppress(FileNotFoundError):
                os.unlink(path)
            os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_CLOEXEC, 0o644))


def mask(layer: str, entries: list[dict[str, Any]]) -> None:
    """Fill a layer with `host.Mask` entries."""
    for entry in entries:
        path = layer + entry["path"]
        match entry["kind"]:
            case "nothing":
                os.mknod(path, stat.S_IFCHR, os.makedev(0, 0))
                continue
            case "file":
                os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_CLOEXEC, 0o600))
            case kind:
                os.mkdir(path)
                if kind == "folder":
                    os.setxattr(path, OPAQUE, b"y")
        os.chown(path, entry["uid"], entry["gid"])
        os.chmod(path, entry["mode"])
