"""Archives on their way to an engine, written by a thread while they are sent."""

from __future__ import annotations

import copy
import io
import lzma
import os
import posixpath
import tarfile
import zlib
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import IO

import anyio

from specbuild.errors import BaseUnavailableError
from specbuild.sandbox.docker import tools
from specbuild.sandbox.docker.tools import ROOTFS
from specbuild.strict_tar import StrictTarInfo
from specbuild.together import joined

_CHUNK = 1 << 20

Writer = Callable[[IO[bytes]], None]
"""Writes an archive."""


@asynccontextmanager
async def sending(write: Writer) -> AsyncGenerator[AsyncIterator[bytes]]:
    """What `write` writes, in pieces, as long as it is asked for. An error of `write` ends the block, and is raised.

    The last piece is followed by the end only once `write` has succeeded: what is cut off must not look complete.
    """
    read, sink = os.pipe2(os.O_CLOEXEC)
    os.set_blocking(read, False)
    written = anyio.Event()

    async def produce() -> None:
        try:
            await anyio.to_thread.run_sync(partial(_produce, write, sink))
        except BrokenPipeError:  # nobody wants more: what became of the block says why
            return
        written.set()

    async def pieces() -> AsyncIterator[bytes]:
        while True:
            try:
                chunk = os.read(read, _CHUNK)
            except BlockingIOError:
                await anyio.wait_readable(read)
                continue
            if not chunk:
                break
            yield chunk
        await written.wait()

    async with joined() as tasks:
        tasks.start_soon(produce)
        try:
            yield pieces()
        finally:
            os.close(read)  # the thread ends with a broken pipe if it has not ended yet


def _produce(write: Writer, sink: int) -> None:
    with os.fdopen(sink, "wb", buffering=_CHUNK) as file:
        write(file)


def single(name: str, data: bytes, mode: int) -> bytes:
    """An archive of one file."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w", format=tarfile.PAX_FORMAT) as tar:
        info = _entry(name, tarfile.REGTYPE, mode)
        info.size = len(data)
        tar.addfile(info, io.BytesIO(data))
    return buffer.getvalue()


def folder_writer(source: Path) -> Writer:
    """The content of a folder, owned by root; what is neither file, folder nor link is left out."""

    def own(info: tarfile.TarInfo) -> tarfile.TarInfo | None:
        info.uid = info.gid = 0
        info.uname = info.gname = ""
        return None if info.isdev() else info

    def write(sink: IO[bytes]) -> None:
        with tarfile.open(fileobj=sink, mode="w|", format=tarfile.PAX_FORMAT) as tar:
            for entry in sorted(source.iterdir()):
                tar.add(entry, entry.name, filter=own)

    return write


def base_writer(source: Path) -> Writer:
    """A root filesystem's archive as that of a container: in its folder, beside the tools.

    Raises BaseUnavailableError for what is no archive of one.
    """

    def write(sink: IO[bytes]) -> None:
        try:
            with (
                tarfile.open(source, "r:*", tarinfo=StrictTarInfo) as original,
                tarfile.open(fileobj=sink, mode="w|", format=tarfile.PAX_FORMAT) as tar,
            ):
                tools.add(tar)
                _move(original, tar)
        except BrokenPipeError:
            raise
        except (tarfile.TarError, OSError, EOFError, zlib.error, lzma.LZMAError) as error:
            raise BaseUnavailableError(f"the base {source} cannot be read: {error}") from error

    return write


def _move(original: tarfile.TarFile, tar: tarfile.TarFile) -> None:
    """Copy all members; of several with one name the last, as unpacking would, because engines refuse such archives."""
    last = {_inside(member.name): member for member in original}
    if ROOTFS not in last:
        tar.addfile(_entry(ROOTFS, tarfile.DIRTYPE, 0o755))
    kept = {id(member) for member in last.values()}
    for member in original.getmembers():
        if id(member) in kept and not _leads_nowhere(member):
            data = original.extractfile(member) if member.isreg() else None
            tar.addfile(_moved(member), data)
    for folder in (f"{ROOTFS}/{name}" for name in ("dev", "proc", "sys", "etc")):
        if folder not in last:
            tar.addfile(_entry(folder, tarfile.DIRTYPE, 0o755))
    for name in _COVERED:  # so that what is shown over them leaves nothing behind
        if name not in last or _leads_nowhere(last[name]):
            tar.addfile(_entry(name, tarfile.REGTYPE, 0o644))


_COVERED = (f"{ROOTFS}/etc/resolv.conf", f"{ROOTFS}/etc/hosts")


def _leads_nowhere(member: tarfile.TarInfo) -> bool:
    """A link to what only a running system has, as systemd-resolved's."""
    return member.issym() and _inside(member.name) in _COVERED and member.linkname.startswith(("../run/", "/run/"))


def _moved(member: tarfile.TarInfo) -> tarfile.TarInfo:
    member = copy.copy(member)  # the original goes by its names
    member.name = _inside(member.name)
    if member.islnk():
        member.linkname = _inside(member.linkname)
    member.pax_headers = {
        name: value for name, value in member.pax_headers.items() if name.startswith(("SCHILY.xattr.", "mtime"))
    }
    return member


def _inside(name: str) -> str:
    parts = name.split("/")
    if ".." in parts:
        raise BaseUnavailableError(f"the base is no root filesystem: {name!r} leads out of it")
    return posixpath.normpath(f"{ROOTFS}/{name}")


def _entry(name: str, kind: bytes, mode: int) -> tarfile.TarInfo:
    info = tarfile.TarInfo(name)
    info.type, info.mode = kind, mode
    return info
