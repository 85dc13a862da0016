"""Downloaded files on disk: whole ones alone, by address, the least recently used removed first.

A file that is being written has no name at all (`O_TMPFILE`) until it is whole, so an engine that is killed leaves none
behind, and nobody is ever given a part of one. Several engines may share a folder: each writes for itself, and of two
that fetch the same file at once the first to end names it.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import unquote, urlsplit, urlunsplit

import anyio.to_thread

T = TypeVar("T")

Headers = tuple[tuple[str, str], ...]
"""Names in lower case."""

MOST_BYTES = 4 << 30
"""What all files may take."""

_KEPT_SHARE = 0.9
"""How much of that is left when files had to be removed, so that it is not done for each new one."""

_MOST_HEAD = 1 << 16


@dataclass(frozen=True, slots=True)
class Body:
    """A file that is whole or being written: a line that tells of it, then its bytes."""

    fd: int
    offset: int
    """Where its bytes begin."""

    async def read(self, at: int, count: int) -> bytes:
        """Up to `count` of its bytes."""
        return await _in_thread(lambda: os.pread(self.fd, count, self.offset + at))

    def close(self) -> None:
        """No more is read of it."""
        os.close(self.fd)


@dataclass(frozen=True, slots=True)
class Kept:
    """A whole file."""

    body: Body
    headers: Headers
    size: int


class Folder:
    """The folder of kept files."""

    def __init__(self, path: Path, *, most_bytes: int = MOST_BYTES) -> None:
        """Raises OSError where files cannot be kept."""
        self._path = path
        self._most_bytes = most_bytes
        path.mkdir(parents=True, exist_ok=True, mode=0o700)
        os.close(self._unnamed())
        self._bytes = sum(size for _, size, _ in self._files())

    async def find(self, name: str) -> Kept | None:
        """The file of that name, which counts as used by this."""
        return await _in_thread(lambda: self._find(name))

    async def has(self, name: str) -> bool:
        """Whether there is a file of that name."""
        return await _in_thread(lambda: (self._path / name).exists())

    async def begin(self, url: str, headers: Headers) -> Body:
        """A file that is written from now on. Raises OSError."""
        return await _in_thread(lambda: self._begin(url, headers))

    async def write(self, body: Body, at: int, data: bytes, *sums: Callable[[bytes], None]) -> None:
        """Write bytes, and let `sums` have them too. Raises OSError."""
        await _in_thread(lambda: _write(body, at, data, sums))

    async def keep(self, name: str, body: Body, *, replace: bool) -> None:
        """Name a file that is whole; one of that name stays unless it is to be replaced. Raises OSError."""
        await _in_thread(lambda: self._keep(name, body, replace=replace))

    def drop(self, url: str) -> None:
        """Forget the files of an address, whoever may fetch them."""
        for path in self._path.glob(f"{_digest(_plain(url))}-*"):
            path.unlink(missing_ok=True)

    def _find(self, name: str) -> Kept | None:
        try:
            fd = os.open(self._path / name, os.O_RDONLY | os.O_CLOEXEC)
        except FileNotFoundError:
            return None
        head = _read_head(fd)
        if head is None:
            os.close(fd)
            (self._path / name).unlink(missing_ok=True)
            return None
        os.utime(fd)
        offset, headers = head
        return Kept(Body(fd, offset), headers, os.fstat(fd).st_size - offset)

    def _unnamed(self) -> int:
        return os.open(self._path, os.O_TMPFILE | os.O_RDWR | os.O_CLOEXEC, 0o600)

    def _begin(self, url: str, headers: Headers) -> Body:
        head = json.dumps({"url": _plain(url), "headers": headers}).encode() + b"\n"
        fd = self._unnamed()
        os.write(fd, head)
        return Body(fd, len(head))

    def _keep(self, name: str, body: Body, *, replace: bool) -> None:
        target = self._path / name
        if replace:
            target.unlink(missing_ok=True)
        folder = os.open(self._path, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            # With a folder's descriptor, the link behind /proc is followed: open(2), under O_TMPFILE.
            os.link(f"/proc/self/fd/{body.fd}", name, dst_dir_fd=folder, follow_symlinks=True)
        except FileExistsError:
            return
        finally:
            os.close(folder)
        self._bytes += os.fstat(body.fd).st_size
        if self._bytes > self._most_bytes:
            self._make_room()

    def _make_room(self) -> None:
        """Remove the least recently used, whichever engine has put them there."""
        files = sorted(self._files())
        self._bytes = sum(size for _, size, _ in files)
        for _, size, path in files:
            if self._bytes <= self._most_bytes * _KEPT_SHARE:
                return
            path.unlink(missing_ok=True)
            self._bytes -= size

    def _files(self) -> list[tuple[float, int, Path]]:
        """When each was used last, its size, and where it is."""
        found: list[tuple[float, int, Path]] = []
        with os.scandir(self._path) as entries:
            for entry in entries:
                try:
                    status = entry.stat(follow_symlinks=False)
                except FileNotFoundError:  # another engine has removed it
                    continue
                found.append((status.st_mtime, status.st_size, Path(entry.path)))
        return found


def name_of(url: str, credentials: str) -> str:
    """The name of a file: those who have other `credentials` for its server do not get it."""
    return f"{_digest(_plain(url))}-{_digest(credentials)[:16]}"


def _plain(url: str) -> str:
    """The same address for all ways to write it: apt spells `+` as `%2b`, or does not."""
    parts = urlsplit(url)
    return urlunsplit(parts._replace(netloc=parts.netloc.rpartition("@")[2].lower(), path=unquote(parts.path)))


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def _read_head(fd: int) -> tuple[int, Headers] | None:
    """Where the bytes of a file begin, and what its server said of it; None if it is damaged."""
    line, newline, _ = os.pread(fd, _MOST_HEAD, 0).partition(b"\n")
    try:
        told: dict[str, Any] = json.loads(line)
        headers = tuple((str(key), str(value)) for key, value in told["headers"])
        size = int(dict(headers)["content-length"])
    except (ValueError, KeyError, TypeError):
        return None
    offset = len(line) + len(newline)
    return (offset, headers) if os.fstat(fd).st_size - offset == size else None


def _write(body: Body, at: int, data: bytes, sums: tuple[Callable[[bytes], None], ...]) -> None:
    view = memoryview(data)
    done = 0
    while done < len(data):
        done += os.pwrite(body.fd, view[done:], body.offset + at + done)
    for each in sums:
        each(data)


async def _in_thread(work: Callable[[], T]) -> T:
    """Disks may keep one waiting: the engine has other things to see to."""
    return await anyio.to_thread.run_sync(work)
