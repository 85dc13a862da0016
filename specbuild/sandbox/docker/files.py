"""Files of a Sandbox by way of the engine's archive calls, which work on a container whether it runs or not.

Paths are resolved here, component by component, because the engine would follow links in the container, of which the
Sandbox's root is but a folder.
"""

from __future__ import annotations

import base64
import errno
import io
import json
import os
import posixpath
import tarfile
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Any

from specbuild.errors import EngineError, SandboxError
from specbuild.sandbox.docker.engine import Engine
from specbuild.sandbox.docker.request import LONG, Archive, Request
from specbuild.sandbox.docker.tools import ROOTFS

_MOST_LINKS = 40
"""As in the kernel (path_resolution(7))."""
_GO_DIR, _GO_LINK, _GO_IRREGULAR = 1 << 31, 1 << 27, (1 << 26) | (1 << 25) | (1 << 24) | (1 << 21) | (1 << 19)
"""Bits of Go's os.FileMode, in which engines tell of files: folder, link; device, pipe, socket and the like."""
_BLOCK = 512


Canonical = Callable[[str], Awaitable[str]]
"""Where a path leads inside the Sandbox's root, whether there is something or not. Raises OSError (ELOOP)."""


@dataclass(frozen=True, slots=True)
class Entry:
    """What is at a path: Go's mode bits, and bytes."""

    mode: int
    size: int

    @property
    def is_folder(self) -> bool:
        """Whether it is a folder."""
        return bool(self.mode & _GO_DIR)

    @property
    def is_link(self) -> bool:
        """Whether it is a symbolic link."""
        return bool(self.mode & _GO_LINK)

    @property
    def is_file(self) -> bool:
        """Whether it is a regular file."""
        return not self.mode & (_GO_DIR | _GO_LINK | _GO_IRREGULAR)


@dataclass(frozen=True, slots=True)
class Place:
    """Where a path leads without links."""

    inner: str
    """As far as there is something."""
    missing: tuple[str, ...] = ()
    """The components at its end that do not exist."""
    entry: Entry | None = None
    """What is there, if it was looked at."""


class Files:
    """The files of one container's Sandbox root."""

    def __init__(self, engine: Engine, container: str, canonical: Canonical | None) -> None:
        self._engine = engine
        self._container = container
        self._canonical = canonical
        """For engines that say where a link leads in the container, and nothing of what is written in it."""

    async def read(self, path: str, limit: int) -> bytes:
        """The bytes of a regular file. Raises OSError of the fitting kind, or SandboxError."""
        place = await self.resolve(path)
        entry = place.entry or await self._look(place.inner)
        if place.missing or entry is None:
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), path)
        if entry.is_folder:
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), path)
        if not entry.is_file:
            raise SandboxError(f"{path} in the sandbox is not a regular file")
        if entry.size > limit:
            raise SandboxError(f"{path} in the sandbox has {entry.size:,} bytes, more than the limit of {limit}")
        return await self._content(place.inner, limit)

    async def _content(self, inner: str, limit: int) -> bytes:
        archive = await self._archive(inner, limit + 64 * _BLOCK)
        with tarfile.open(fileobj=io.BytesIO(archive)) as tar:
            member = tar.next()
            file = tar.extractfile(member) if member is not None else None
            if file is None:
                raise SandboxError(f"{inner} in the sandbox changed while it was read")
            return file.read()

    async def _archive(self, inner: str, most: int) -> bytes:
        data = bytearray()
        asked = Request("GET", self._path, {"path": _outer(inner)}, within=LONG)
        async with self._engine.send(asked) as response:
            async for chunk in response.content.iter_chunked(1 << 20):
                data += chunk
                if len(data) > most + (1 << 20):
                    raise SandboxError(f"{inner} in the sandbox is larger than it was a moment ago")
        return bytes(data)

    async def write(self, path: str, data: bytes, mode: int) -> None:
        """Write a file owned by root, with missing folders; a link at its end is followed inside the root."""
        place = await self.resolve(path)
        folders, name = place.missing[:-1], (place.missing or (posixpath.basename(place.inner),))[-1]
        at = place.inner if place.missing else posixpath.dirname(place.inner)
        buffer = io.BytesIO()
        with tarfile.open(fileobj=buffer, mode="w", format=tarfile.PAX_FORMAT) as tar:
            for count in range(len(folders)):
                tar.addfile(_info("/".join(folders[: count + 1]), tarfile.DIRTYPE, 0o755))
            info = _info("/".join((*folders, name)), tarfile.REGTYPE, mode)
            info.size = len(data)
            tar.addfile(info, io.BytesIO(data))
        await self.put(at, buffer.getvalue())

    async def folder(self, path: str) -> str:
        """The folder at that path, made if it is missing; without links. Raises OSError."""
        place = await self.resolve(path)
        if place.missing:
            buffer = io.BytesIO()
            with tarfile.open(fileobj=buffer, mode="w", format=tarfile.PAX_FORMAT) as tar:
                for count in range(len(place.missing)):
                    tar.addfile(_info("/".join(place.missing[: count + 1]), tarfile.DIRTYPE, 0o755))
            await self.put(place.inner, buffer.getvalue())
        return posixpath.join(place.inner, *place.missing)

    async def exists(self, inner: str) -> bool:
        """Whether there is something at a path without links."""
        return await self._look(inner) is not None

    async def kinds(self, inner: str, limit: int) -> dict[str, bytes]:
        """What lies in a folder: types as of `tarfile`, by name. Links are told as such by every engine.

        Raises SandboxError for a folder of more than `limit` bytes in all.
        """
        archive = await self._archive(inner, limit)
        with tarfile.open(fileobj=io.BytesIO(archive)) as tar:
            paths = [(member.name.strip("/").split("/"), member.type) for member in tar]
        return {parts[1]: kind for parts, kind in paths if len(parts) == 2}

    async def put(self, inner: str, archive: Archive, *, outer: bool = False) -> None:
        """Unpack an archive into a folder that exists."""
        where = inner if outer else _outer(inner)
        await self._engine.json(Request("PUT", self._path, {"path": where}, archive=archive, within=LONG))

    @property
    def _path(self) -> str:
        return f"containers/{self._container}/archive"

    async def resolve(self, path: str) -> Place:
        """Where a path leads without links, and the components at its end that do not exist.

        Raises NotADirectoryError, and OSError (ELOOP) for links that lead in a circle.
        """
        todo = _parts(path)
        inner, links, entry = "/", 0, None
        while todo:
            part = todo.pop()
            if part == "..":
                inner, entry = posixpath.dirname(inner), None
                continue
            here = posixpath.join(inner, part)
            found = await self._look(here)
            if found is None:
                await self._must_be_folder(inner, entry, path)
                return Place(inner, _plain([part, *todo[::-1]]))
            if not found.is_link:
                inner, entry = here, found
                continue
            if self._canonical is not None:
                return await self._split(await self._canonical(path), path)
            links += 1
            if links > _MOST_LINKS:
                raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), path)
            target = await self._link(here)
            inner, entry = "/" if target.startswith("/") else inner, None
            todo += _parts(target)
        return Place(inner, (), entry)

    async def _split(self, plain: str, path: str) -> Place:
        """A path without links, split where it ends to exist."""
        inner, missing = posixpath.normpath(plain), list[str]()
        while (entry := await self._look(inner)) is None and inner != "/":
            missing.insert(0, posixpath.basename(inner))
            inner = posixpath.dirname(inner)
        if missing:
            await self._must_be_folder(inner, entry, path)
        return Place(inner, tuple(missing), entry)

    async def _must_be_folder(self, inner: str, entry: Entry | None, path: str) -> None:
        entry = entry or (await self._look(inner) if inner != "/" else None)
        if entry is not None and not entry.is_folder:
            raise FileNotFoundError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), path)

    async def _look(self, inner: str) -> Entry | None:
        """What is at a path, of whose folders none is a link."""
        asked = Request("HEAD", self._path, {"path": _outer(inner)}, missing_ok=True)
        try:
            async with self._engine.send(asked) as response:
                told = response.headers.get("X-Docker-Container-Path-Stat", "")
        except EngineError as error:
            if not _is_no_folder(error):
                raise
            # Podman fails so at a link that leads in a circle, and tells of a link to nothing with a 404.
            return Entry(_GO_LINK, 0) if self._canonical else None
        if not told:
            return None
        content: dict[str, Any] = json.loads(base64.b64decode(told))
        return Entry(int(content["mode"]), int(content["size"]))

    async def _link(self, inner: str) -> str:
        """Where a link points; the engine's own answer is what it would lead to in the container."""
        archive = await self._archive(inner, 1 << 20)
        with tarfile.open(fileobj=io.BytesIO(archive)) as tar:
            member = tar.next()
        if member is None or not member.issym():
            raise SandboxError(f"{inner} in the sandbox changed while it was read")
        return member.linkname


def _parts(path: str) -> list[str]:
    """The components of a path, the last one first."""
    return [part for part in path.split("/") if part not in {"", "."}][::-1]


def _is_no_folder(error: EngineError) -> bool:
    """A HEAD has no text to go by: what is asked for below a file is answered with a plain refusal."""
    return error.status in {400, 500}


def _plain(parts: Sequence[str]) -> tuple[str, ...]:
    """Components that do not exist, as names alone."""
    return tuple(part for part in posixpath.normpath("/" + "/".join(parts)).split("/") if part)


def _outer(inner: str) -> str:
    return f"/{ROOTFS}{inner}" if inner != "/" else f"/{ROOTFS}"


def _info(name: str, kind: bytes, mode: int) -> tarfile.TarInfo:
    info = tarfile.TarInfo(name)
    info.type, info.mode, info.mtime = kind, mode, int(time.time())
    return info
