"""Layers of containers as layers of images: the way back of `image_layer`."""

from __future__ import annotations

import copy
import posixpath
import re
import tarfile
from typing import IO

from specbuild.errors import StoreError
from specbuild.sandbox.docker.image_layer import WHITEOUT
from specbuild.sandbox.docker.tools import ROOTFS
from specbuild.strict_tar import StrictTarInfo


def take_out(archive: IO[bytes], sink: IO[bytes], *, without: str = "") -> int:
    """Write what an archive, which can be sought in, has below the root of Sandboxes; how many entries that has.

    `without` is a pattern of names that are left out. The root itself does not count. Raises StoreError.
    """
    try:
        with (
            tarfile.open(fileobj=archive, mode="r:", tarinfo=StrictTarInfo) as original,
            tarfile.open(fileobj=sink, mode="w|", format=tarfile.PAX_FORMAT) as tar,
        ):
            return _Way(original, tar, without).run()
    except tarfile.TarError as error:
        raise StoreError(f"a layer that the container engine gave cannot be read: {error}") from error


class _Way:
    def __init__(self, original: tarfile.TarFile, tar: tarfile.TarFile, without: str) -> None:
        self._original = original
        self._tar = tar
        self._left_out = re.compile(without or r"(?!)")
        self._heirs: dict[str, str] = {}
        """Of files that are left out: the first of their other names, which has the content now."""

    def run(self) -> int:
        count = 0
        for member in self._original:
            name = outside(member.name)
            if name is not None and not self._is_left_out(name):
                self._pass(member, name)
                count += name != "."
        return count

    def _is_left_out(self, name: str) -> bool:
        folder, last = posixpath.split(name)
        hidden = last.removeprefix(WHITEOUT) if not last.startswith(WHITEOUT * 2) else last
        return self._left_out.fullmatch(posixpath.join(folder, hidden)) is not None

    def _pass(self, member: tarfile.TarInfo, name: str) -> None:
        passed = copy.copy(member)
        passed.name = name
        if member.islnk():
            target = outside(member.linkname)
            if target is None:
                raise StoreError(f"/{name} is a link to what is outside of the sandbox")
            passed.linkname = self._heirs.get(target, target)
            if passed.linkname == target and self._is_left_out(target):
                self._heirs[target] = name
                self._content_of(passed)
                return
        self._tar.addfile(passed, self._original.extractfile(member) if member.isreg() else None)

    def _content_of(self, link: tarfile.TarInfo) -> None:
        """Write a file in place of a link to what is left out."""
        target = self._original.getmember(f"{ROOTFS}/{link.linkname}")
        passed = copy.copy(target)
        passed.name = link.name
        self._tar.addfile(passed, self._original.extractfile(target))


def outside(name: str) -> str | None:
    """A name of a container's archive as one of the Sandbox's; `.` for its root, None for what lies beside it."""
    plain = posixpath.normpath("/" + name).lstrip("/")
    if plain == ROOTFS:
        return "."
    return plain.removeprefix(f"{ROOTFS}/") if plain.startswith(f"{ROOTFS}/") else None
