"""Blobs on their way: downloaded by pieces, resumed where they broke off, checked, and never twice at once.

FOLDER/sha256-HEX         whole and checked when it was put there
FOLDER/sha256-HEX.part    what has come so far, also from a process that was killed
FOLDER/sha256-HEX.lock    held by whoever downloads it
FOLDER/in-use             held by all who use blobs; whoever is the last of them removes what was whole

Blobs stay no longer than somebody uses them: what is made of them is kept in a store.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import os
import time
from collections.abc import Awaitable, Callable, Generator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

import anyio
import anyio.to_thread

from specbuild.errors import ImageNotFoundError, IntegrityError, RequestRefusedError, TransientError
from specbuild.http import Answer
from specbuild.oci.content import Descriptor, mismatch
from specbuild.oci.registry import Registry
from specbuild.storage import held

SLOWEST = 16 << 10
"""Bytes a second below which a download is given up: with 8 s for each MB nothing is gained by waiting."""
STALE_AFTER = 7 * 86_400.0
"""Seconds after which nobody is expected to go on with a download."""
_LEAST = 120.0
"""Seconds that every blob gets."""
_BUFFER = 1 << 20
"""Bytes that are written at once: pieces come from the network in a few KiB."""

Download = Callable[[Descriptor, Path], Awaitable[None]]
"""Makes a file longer until it is what the Descriptor promises. Raises IntegrityError if it is not to be had."""


class BlobStore:
    """Blobs in a folder. Safe for any number of processes."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def path(self, digest: str) -> Path:
        """Where that blob is, or would be."""
        return self.folder / digest.replace(":", "-")

    @contextmanager
    def in_use(self) -> Generator[None]:
        """Nobody removes blobs meanwhile. The last to leave does."""
        self.folder.mkdir(parents=True, exist_ok=True)
        fd = os.open(self.folder / "in-use", os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(fd, fcntl.LOCK_SH)  # waits for no more than a removal
            yield
            with contextlib.suppress(BlockingIOError):
                fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
                self._remove_all()
        finally:
            os.close(fd)

    def _remove_all(self) -> None:
        """Of what broke off lately the beginning is kept, since it will be gone on with."""
        for path in self.folder.glob("sha*-*"):
            if path.suffix != ".part" or path.stat().st_mtime < time.time() - STALE_AFTER:
                path.unlink()

    async def fetch(self, descriptor: Descriptor, download: Download) -> Path:
        """The blob's file, downloaded unless it is here. Raises what `download` raises."""
        path = self.path(descriptor.digest)
        if path.is_file():
            return path
        self.folder.mkdir(parents=True, exist_ok=True)
        async with held(path.with_name(f"{path.name}.lock")):
            if path.is_file():  # another process has brought it meanwhile
                return path
            part = path.with_name(f"{path.name}.part")
            await download(descriptor, part)
            part.replace(path)
            return path


def _digest(path: Path, algorithm: str) -> str:
    with path.open("rb") as file:
        return f"{algorithm}:{hashlib.file_digest(file, algorithm).hexdigest()}"


async def download(registry: Registry, descriptor: Descriptor, target: Path) -> None:
    """Make `target` the blob, from where it ends. Two tries are made of one that comes damaged.

    Raises IntegrityError if it is not what was promised, and what `Registry.ask` raises.
    """
    for last in (False, True):
        await _all_of(registry, descriptor, target)
        found = await anyio.to_thread.run_sync(_digest, target, descriptor.digest.partition(":")[0])
        if found == descriptor.digest:
            return
        target.unlink()  # noqa: ASYNC240 - one system call
        if last:
            raise mismatch(f"a blob of {registry.shown}", found, descriptor.digest)


async def _all_of(registry: Registry, descriptor: Descriptor, target: Path) -> None:
    """As many bytes as the blob has; what breaks off is resumed while anything comes at all.

    Raises what `Registry.ask` raises, IntegrityError for a server that sends more than was promised.
    """
    pauses = registry.retry.pauses()
    try:
        with anyio.fail_after(_LEAST + descriptor.size / SLOWEST):
            while True:
                before = _size(target)
                try:
                    if await _resume(registry, descriptor, target, before):
                        return
                    raise TransientError(f"{registry.shown} ended a download before its end", hint="try again later")
                except TransientError as trouble:
                    if _size(target) > before:
                        pauses = registry.retry.pauses()
                    await registry.pause(next(pauses, None), trouble)
    except TimeoutError:
        raise TransientError(
            f"{registry.endpoint.host} sends less than {SLOWEST >> 10} KiB a second", hint="try again later"
        ) from None


async def _resume(registry: Registry, descriptor: Descriptor, target: Path, have: int) -> bool:
    """One try; whether the blob has its size now."""
    if have > descriptor.size:  # it is no part of that blob
        _forget(target)
        have = 0
    if have == descriptor.size and have:
        return True

    async def save(answer: Answer) -> None:
        begins = answer.headers.get("content-range", "").removeprefix("bytes ").partition("-")[0]
        at = have if answer.status == 206 and begins == str(have) else 0
        if answer.status == 206 and at != have:
            raise TransientError(f"{registry.shown} sends another part than was asked for", hint="try again later")
        await _write(answer, target, at, descriptor)

    headers = {"Accept-Encoding": "identity"} | ({"Range": f"bytes={have}-"} if have else {})
    try:
        await registry.once("GET", f"blobs/{descriptor.digest}", save, headers=headers)
    except RequestRefusedError as error:
        if error.status != 416 or isinstance(error, ImageNotFoundError):
            raise
        _forget(target)
        return False
    return _size(target) == descriptor.size


async def _write(answer: Answer, target: Path, at: int, descriptor: Descriptor) -> None:
    """Append what comes; all that has come is in the file, also when the connection breaks."""
    with _open_at(target, at) as file:
        async for chunk in answer.chunks():
            at += len(chunk)
            if at > descriptor.size:
                file.truncate(0)
                raise IntegrityError(
                    f"a blob is larger than the {descriptor.size:,} bytes that were promised",
                    hint="do not trust that registry",
                )
            if len(chunk) + at % _BUFFER >= _BUFFER:
                await anyio.to_thread.run_sync(file.write, chunk)  # this one goes to the disk
            else:
                file.write(chunk)


def _open_at(path: Path, position: int) -> BinaryIO:
    """Without what comes after `position`."""
    file = path.open("r+b" if position else "wb", buffering=_BUFFER)
    file.truncate(position)
    file.seek(position)
    return file


def _forget(path: Path) -> None:
    path.unlink(missing_ok=True)


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except FileNotFoundError:
        return 0
