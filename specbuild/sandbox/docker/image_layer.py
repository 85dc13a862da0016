"""Layers of images as layers of containers, where the root filesystem lies in a folder (see `tools`).

What a layer says is worked out first, and then written with each name once, whatever is written twice in the original:
engines refuse archives that name something twice. Every folder on the way to something is written as a folder, with the
look that it has in the layers below, so that an engine neither invents its mode nor follows a link that is there.
The rules are those of `overlay.image_layer`.
"""

from __future__ import annotations

import copy
import io
import posixpath
import tarfile
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import IO

from specbuild.sandbox.docker.tools import ROOTFS
from specbuild.strict_tar import StrictTarInfo, exact_time

WHITEOUT = ".wh."
OPAQUE = ".wh..wh..opq"
_OWN = ".wh..wh."
"""What else begins so is bookkeeping of AUFS, and stands for nothing."""
_XATTR = "SCHILY.xattr."
_NOT_OURS = (f"{_XATTR}user.overlay.", f"{_XATTR}trusted.")
"""What means something to overlayfs, or nothing outside of the namespace that wrote it."""


class UnknownFolderError(Exception):
    """A layer implies a folder whose look only layers tell that were not read."""


class Moving:
    """Of the layers of one image, lowest first. `whole` says whether that is all of them, or what lies on others."""

    def __init__(self, *, whole: bool) -> None:
        self._whole = whole
        self._folders: dict[str, tarfile.TarInfo] = {}
        """How the folders of the layers so far look."""

    def move(self, source: IO[bytes], target: IO[bytes]) -> None:
        """Write a layer's archive, which can be sought in, as that of a container's layer.

        Raises tarfile.TarError for what is no layer, UnknownFolderError.
        """
        with (
            tarfile.open(fileobj=source, mode="r:", tarinfo=StrictTarInfo) as original,
            tarfile.open(fileobj=target, mode="w", format=tarfile.PAX_FORMAT) as tar,
        ):
            layer = _Content()
            for member in original:
                layer.take(member)
            folders = self._write(layer, original, tar)
        self._learn(layer, folders)

    def _write(self, layer: _Content, original: tarfile.TarFile, tar: tarfile.TarFile) -> dict[str, tarfile.TarInfo]:
        """The folders that were written, those that were only implied, too."""
        folders: dict[str, tarfile.TarInfo] = {}

        def reach(folder: str) -> None:
            for path in (*ancestors(folder), folder):
                if path not in folders:
                    folders[path] = layer.entries.get(path) or self._implied(path)
                    tar.addfile(_moved(folders[path], path))

        reach("/")
        first_names: dict[int, str] = {}
        for path, member in layer.entries.items():
            if member.isdir():
                reach(path)
                continue
            reach(posixpath.dirname(path))
            if (first := first_names.setdefault(id(member), path)) != path:
                tar.addfile(_another_name(member, path, first))
            else:
                tar.addfile(_moved(member, path), original.extractfile(member) if _has_content(member) else None)
        for path, needed in layer.marks():
            folder = posixpath.dirname(path)
            reach(folder)
            if needed and self._may_be_below(folder):
                tar.addfile(_moved(tarfile.TarInfo(), path), io.BytesIO())
        return folders

    def _may_be_below(self, folder: str) -> bool:
        """Whether a folder may have something to hide; overlayfs shows marks in folders of one layer alone."""
        return not self._whole or folder == "/" or folder in self._folders

    def _implied(self, path: str) -> tarfile.TarInfo:
        """A folder that the archive does not name."""
        if path not in self._folders and not self._whole and path != "/":
            raise UnknownFolderError(path)
        return self._folders.get(path) or _folder()

    def _learn(self, layer: _Content, folders: dict[str, tarfile.TarInfo]) -> None:
        gone = layer.hidden | {path for path, member in layer.entries.items() if not member.isdir()}
        for path in [known for known in self._folders if _lies_in(known, gone) or _lies_below(known, layer.opaque)]:
            del self._folders[path]
        self._folders |= folders


@dataclass(slots=True)
class _Content:
    """What a layer has, and what it hides; by absolute paths."""

    entries: dict[str, tarfile.TarInfo] = field(default_factory=dict[str, tarfile.TarInfo])
    """All names of a file have the same entry, whatever becomes of the first of them later in the archive."""
    hidden: set[str] = field(default_factory=set[str])
    opaque: set[str] = field(default_factory=set[str])
    _devices: set[str] = field(default_factory=set[str])
    """What is left out: a Command has a `/dev` of its own."""

    def take(self, member: tarfile.TarInfo) -> None:
        path = _plain(member.name)
        folder, name = posixpath.split(path)
        if f"/{WHITEOUT}" in folder:
            raise tarfile.TarError(f"{member.name} lies in a folder whose name means that another is hidden")
        if name.startswith(WHITEOUT):
            self._hide(folder, name)
        elif path != "/" and (member.ischr() or member.isblk()):
            self._devices.add(path)
        elif not member.islnk():
            self._place(path, member)
        elif (target := _plain(member.linkname)) not in self._devices:
            self._place(path, self._linked(member, path, target))
        else:
            self._devices.add(path)

    def _linked(self, member: tarfile.TarInfo, path: str, target: str) -> tarfile.TarInfo:
        """What a hard link is another name of. Raises tarfile.TarError where there is nothing."""
        found = self.entries.get(target)
        if found is None or found.isdir() or target == path:
            raise tarfile.TarError(f"{member.name} is a link to {member.linkname}, which the layer does not have")
        return found

    def _place(self, path: str, member: tarfile.TarInfo) -> None:
        if path == "/" and not member.isdir():
            return
        self._clear_way(path)
        self._devices.discard(path)
        before = self.entries.pop(path, None)
        if before is not None and before.isdir() and not member.isdir():
            for below in [known for known in self.entries if known.startswith(f"{path}/")]:
                del self.entries[below]
        self.entries[path] = member

    def _clear_way(self, path: str) -> None:
        """What lies in the way of a folder goes."""
        for folder in ancestors(path):
            if folder in self.entries and not self.entries[folder].isdir():
                del self.entries[folder]

    def _hide(self, folder: str, name: str) -> None:
        if name == OPAQUE:
            self.opaque.add(folder)
        elif not name.startswith(_OWN):
            if name.removeprefix(WHITEOUT) in {"", ".", ".."}:
                raise tarfile.TarError(f"{posixpath.join(folder, name)} hides what has no name")
            self.hidden.add(posixpath.join(folder, name.removeprefix(WHITEOUT)))

    def marks(self) -> Iterator[tuple[str, bool]]:
        """Names of the marks that hide something, and whether each is needed; the folder that it is in is anyway.

        Something that the layer itself has hides what was there before, but a folder, which has to say so. In a folder
        that hides all there is nothing to hide one by one, and in what is no folder there are no marks.
        """
        others = {path for path, member in self.entries.items() if not member.isdir()}
        named = (*self.entries, *self.hidden, *(posixpath.join(path, OPAQUE) for path in self.opaque))
        folders = {folder for path in named for folder in ancestors(path)} | (self.entries.keys() - others)
        opaque = self.opaque | (self.hidden & folders)
        marks = [(posixpath.join(path, OPAQUE), True) for path in opaque if path not in others]
        for path in self.hidden - folders - others:
            folder, name = posixpath.split(path)
            marks.append((posixpath.join(folder, WHITEOUT + name), not _lies_below(path, opaque)))
        return ((path, needed) for path, needed in sorted(marks) if not _lies_below(path, others))


def _plain(name: str) -> str:
    """A name in an archive as an absolute path, which cannot lead out of the root."""
    return posixpath.normpath("/" + name.lstrip("/"))


def ancestors(path: str) -> Iterator[str]:
    """The folders above an absolute path, from the root."""
    if path != "/":
        yield "/"
        parts = path.strip("/").split("/")[:-1]
        for count in range(1, len(parts) + 1):
            yield "/" + "/".join(parts[:count])


def _lies_below(path: str, folders: set[str]) -> bool:
    return any(folder in folders for folder in ancestors(path))


def _lies_in(path: str, folders: set[str]) -> bool:
    return path in folders or _lies_below(path, folders)


def _moved(member: tarfile.TarInfo, path: str) -> tarfile.TarInfo:
    """The entry under its path in a container."""
    moved = copy.copy(member)
    moved.name = inside(path)
    if _has_content(member):  # also what was written with holes, which is read without
        moved.type = tarfile.REGTYPE
    moved.pax_headers = {
        name: value
        for name, value in member.pax_headers.items()
        if name.startswith(_XATTR) and not name.startswith(_NOT_OURS)
    }
    if (time := exact_time(member)) is not None:
        moved.pax_headers["mtime"] = time
    return moved


def _has_content(member: tarfile.TarInfo) -> bool:
    """Whether it is read as a file; so is what is of a type that nobody knows (POSIX ustar)."""
    return member.isreg() or member.type not in tarfile.SUPPORTED_TYPES


def _another_name(member: tarfile.TarInfo, path: str, first: str) -> tarfile.TarInfo:
    """A hard link; it looks as the file that it is of, because engines give that the look that its names have."""
    moved = _moved(member, path)
    moved.type, moved.linkname, moved.size = tarfile.LNKTYPE, inside(first), 0
    return moved


def inside(path: str) -> str:
    """The name of an absolute path in a container's archive."""
    return ROOTFS + path.rstrip("/")


def _folder() -> tarfile.TarInfo:
    info = tarfile.TarInfo()
    info.type, info.mode = tarfile.DIRTYPE, 0o755
    return info
