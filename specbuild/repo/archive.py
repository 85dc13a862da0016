"""Unpack an archive that nobody vouches for.

Everything is written by hand instead of by `tarfile.extract`: the `data` filter is missing from the interpreters of
older distributions, checks one member at a time, and knows no limits. Links are made when all files are there, so that
nothing is ever written through one.
"""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import os
import re
import stat
import tarfile
import time
import zipfile
import zlib
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import IO, Literal, cast

from specbuild.errors import HostileArchiveError, NotARepositoryError
from specbuild.repo.credible import newest_credible
from specbuild.repo.room import Budget
from specbuild.repo.source import ARCHIVE_SUFFIXES, RepoLimits
from specbuild.strict_tar import HostileHeaderError, StrictTarInfo

_MAGIC: tuple[tuple[bytes, Callable[[IO[bytes]], IO[bytes]]], ...] = (
    (b"\x1f\x8b", lambda file: cast("IO[bytes]", gzip.GzipFile(fileobj=file))),
    (b"BZh", lambda file: cast("IO[bytes]", bz2.BZ2File(file))),
    (b"\xfd7zXZ\x00", lambda file: cast("IO[bytes]", lzma.LZMAFile(file))),  # noqa: SIM115
    (b"\x5d\x00\x00", lambda file: cast("IO[bytes]", lzma.LZMAFile(file))),  # noqa: SIM115
)
_DAMAGE = (tarfile.TarError, zipfile.BadZipFile, EOFError, zlib.error, lzma.LZMAError, NotImplementedError, OSError)
_COMMIT = re.compile(r"[0-9a-f]{40}|[0-9a-f]{64}")
_CHUNK = 1 << 20
_LONGEST_HEADER = 4 << 20
_DEEPEST = 128


@dataclass(frozen=True, slots=True)
class Unpacked:
    """What an archive held."""

    root: Path
    """The folder that holds everything: the archive's only top folder, if it has just one."""
    date: datetime | None
    """Newest credible modification of a file, UTC."""
    commit: str | None
    """Which `git archive` has written down."""


@dataclass(frozen=True, slots=True)
class _Member:
    name: str
    kind: Literal["file", "folder", "link", "hardlink"]
    executable: bool = False
    mtime: float = 0.0
    size: int = 0
    target: str = ""
    open: Callable[[], IO[bytes]] = io.BytesIO


def unpack(archive: Path, folder: Path, limits: RepoLimits, tick: Callable[[], None] = lambda: None) -> Unpacked:
    """Unpack `archive` into `folder`, which must be empty. `tick` is called before each member and may raise to stop.

    Raises NotARepositoryError for a file that is no readable archive, HostileArchiveError, RepoTooLargeError. What has
    been written by then is left for the caller to remove.
    """
    writer = _Writer(folder, Budget(limits, folder, packed=archive.stat().st_size))
    try:
        if _start(archive).startswith(b"PK"):  # a tar may end with a zip, which is_zipfile would find
            commit: str | None = _unpack_zip(archive, writer, tick)
        else:
            commit = _unpack_tar(archive, writer, tick)
    except HostileHeaderError as error:
        raise HostileArchiveError(f"the archive has {error}") from error
    except _DAMAGE as error:
        if isinstance(error, OSError) and error.errno is not None:
            raise  # the disk's trouble, not the archive's
        raise NotARepositoryError(
            f"{archive.name} cannot be unpacked: {error or type(error).__name__}",
            hint=f"it may be damaged or cut short, or none of {', '.join(ARCHIVE_SUFFIXES)}",
        ) from error
    root = writer.finish()
    return Unpacked(root, newest_credible(writer.mtimes), commit if commit and _COMMIT.fullmatch(commit) else None)


def _unpack_tar(archive: Path, writer: _Writer, tick: Callable[[], None]) -> str | None:
    with archive.open("rb") as file:
        stream = _Stream(_decompress(file), writer.budget)
        with tarfile.open(fileobj=cast("IO[bytes]", stream), mode="r:", tarinfo=StrictTarInfo) as tar:
            while (info := tar.next()) is not None:
                tick()
                writer.write(_tar_member(tar, info))
                vars(tar)["members"].clear()  # it would keep every header in memory
            stream.finish()
            return tar.pax_headers.get("comment")


def _start(archive: Path) -> bytes:
    with archive.open("rb") as file:
        return file.read(8)


def _decompress(file: IO[bytes]) -> IO[bytes]:
    start = file.read(8)
    file.seek(0)
    return next((opener(file) for magic, opener in _MAGIC if start.startswith(magic)), file)


def _tar_member(tar: tarfile.TarFile, info: tarfile.TarInfo) -> _Member:
    if info.isdir():
        return _Member(info.name, "folder")
    if info.issym():
        return _Member(info.name, "link", target=info.linkname)
    if info.islnk():
        return _Member(info.name, "hardlink", target=info.linkname)
    if not info.isreg():
        raise HostileArchiveError(f"the archive holds {info.name!r}, a device, pipe or other special file")
    return _Member(
        info.name,
        "file",
        executable=bool(info.mode & stat.S_IXUSR),
        mtime=float(info.mtime),
        size=info.size,
        open=lambda: cast("IO[bytes]", tar.extractfile(info)),
    )


def _unpack_zip(archive: Path, writer: _Writer, tick: Callable[[], None]) -> str:
    with zipfile.ZipFile(archive) as file:
        for info in file.infolist():
            tick()
            writer.write(_zip_member(file, info))
        return file.comment.decode("ascii", "replace").strip()


def _zip_member(file: zipfile.ZipFile, info: zipfile.ZipInfo) -> _Member:
    if info.flag_bits & 0x1:
        raise NotARepositoryError("the archive is encrypted", hint="unpack it yourself and name the folder")
    name = info.filename.replace("\\", "/")  # as some tools on Windows write them
    mode = info.external_attr >> 16 if info.create_system == 3 else 0
    if name.endswith("/"):
        return _Member(name, "folder")
    if stat.S_ISLNK(mode):
        if info.file_size > 4096:
            raise HostileArchiveError(f"the link {name!r} in the archive has a target of {info.file_size} bytes")
        return _Member(name, "link", target=os.fsdecode(file.read(info)))
    if stat.S_IFMT(mode) not in {0, stat.S_IFREG}:
        raise HostileArchiveError(f"the archive holds {name!r}, a device, pipe or other special file")
    return _Member(
        name,
        "file",
        executable=bool(mode & stat.S_IXUSR),
        mtime=_zip_time(info),
        size=info.file_size,
        open=lambda: file.open(info),
    )


def _zip_time(info: zipfile.ZipInfo) -> float:
    try:
        return datetime(*info.date_time, tzinfo=UTC).timestamp()
    except ValueError:
        return 0.0


class _Stream:
    """The decompressed archive for tarfile: forwards only, every byte counted, no header without bound."""

    def __init__(self, file: IO[bytes], budget: Budget) -> None:
        self._file = file
        self._budget = budget
        self._at = 0

    def read(self, size: int) -> bytes:
        if not 0 <= size <= _LONGEST_HEADER:
            raise HostileArchiveError(f"the archive has a header of {size:,} bytes")
        data = self._file.read(size)
        self._at += len(data)
        self._budget.check_stream(self._at)
        return data

    def finish(self) -> None:
        """Read what follows the end of the tar, for only then the compressed stream's checksum is looked at."""
        try:
            while self.read(_CHUNK):
                pass
        except gzip.BadGzipFile as error:
            if "Not a gzipped file" not in str(error):  # something behind the stream, which gzip itself overlooks
                raise

    def tell(self) -> int:
        return self._at

    def seek(self, position: int) -> int:
        if position < self._at:
            raise HostileArchiveError("the archive has a member of negative size")
        while self._at < position and self.read(min(_CHUNK, position - self._at)):
            pass
        return self._at


class _Writer:
    """Writes members below one folder."""

    def __init__(self, folder: Path, budget: Budget) -> None:
        self.budget = budget
        self.mtimes: list[float] = []
        self._folder = folder
        self._folders = {""}
        self._links: dict[str, str] = {}
        self._now = time.time()

    def write(self, member: _Member) -> None:
        path = _safe(member.name)
        self.budget.add_entry()
        if not path:
            return
        if member.kind == "folder":
            self._make_folder(path)
            return
        self._make_folder(os.path.dirname(path))  # noqa: PTH120 - paths inside the archive
        if member.kind == "link":
            self._links[path] = member.target
        elif member.kind == "hardlink":
            self._hard_link(path, _safe(member.target))
        else:
            self._write_file(path, member)

    def finish(self) -> Path:
        """Make the links, see that none leads out, and tell where the root is."""
        root = self._root()
        for path, target in self._links.items():
            _check_link(path, target, root)
            full = self._full(path)
            if os.path.lexists(full):
                if os.path.isdir(full):  # noqa: PTH112
                    raise HostileArchiveError(f"{path!r} is both a link and a folder in the archive")
                os.unlink(full)  # noqa: PTH108
            os.symlink(target, full)  # noqa: PTH211
        top = os.path.realpath(self._full(root))
        for path in self._links:
            real = os.path.realpath(self._full(path))
            if real != top and not real.startswith(top + os.sep):
                raise HostileArchiveError(f"the link {path!r} in the archive leads out of it by way of another link")
        return Path(self._full(root))

    def _root(self) -> str:
        names = os.listdir(self._folder)  # noqa: PTH208
        tops = {*names, *(path.partition("/")[0] for path in self._links)}
        return names[0] if len(tops) == 1 and names and names[0] in self._folders else ""

    def _full(self, path: str) -> str:
        return os.path.join(self._folder, path)  # noqa: PTH118

    def _make_folder(self, path: str) -> None:
        if path in self._folders:
            return
        self._make_folder(os.path.dirname(path))  # noqa: PTH120
        self.budget.add_entry()
        try:
            os.mkdir(self._full(path), 0o755)  # noqa: PTH102
        except FileExistsError:
            raise HostileArchiveError(f"{path!r} is both a file and a folder in the archive") from None
        self._folders.add(path)

    def _write_file(self, path: str, member: _Member) -> None:
        self.budget.expect(member.size)
        mode = 0o755 if member.executable else 0o644
        with member.open() as source, os.fdopen(self._create(path, mode), "wb", buffering=0) as file:
            while chunk := source.read(_CHUNK):
                self.budget.add_bytes(len(chunk))
                file.write(chunk)
            os.fchmod(file.fileno(), mode)
            seconds = min(max(member.mtime, 0.0), self._now)
            os.utime(file.fileno(), (seconds, seconds))
        self.mtimes.append(member.mtime)

    def _create(self, path: str, mode: int) -> int:
        """A new file; an earlier member of the same name gives way, as with every unpacker."""
        if path in self._folders:
            raise HostileArchiveError(f"{path!r} is both a file and a folder in the archive")
        self._links.pop(path, None)
        full = self._full(path)
        if os.path.lexists(full):
            os.unlink(full)  # noqa: PTH108
        return os.open(full, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, mode)

    def _hard_link(self, path: str, target: str) -> None:
        if target == path:
            return
        full = self._full(target)
        if not target or target in self._folders or not os.path.isfile(full):  # noqa: PTH113
            raise HostileArchiveError(f"the hard link {path!r} in the archive has no file {target!r} before it")
        os.close(self._create(path, 0o644))
        os.unlink(self._full(path))  # noqa: PTH108
        os.link(full, self._full(path), follow_symlinks=False)


def _safe(name: str) -> str:
    """The name in its plain form, relative to the folder that is written to; empty for that folder itself."""
    if any(ord(char) < 32 or ord(char) == 127 for char in name):
        raise HostileArchiveError(f"the archive holds a name with control characters: {name!r}")
    parts = [part for part in name.split("/") if part not in {"", "."}]
    if name.startswith("/"):
        raise HostileArchiveError(f"the archive holds an absolute path: {name!r}")
    if ".." in parts:
        raise HostileArchiveError(f"the archive reaches outside of itself: {name!r}")
    if len(parts) > _DEEPEST or any(len(os.fsencode(part)) > 255 for part in parts):
        raise HostileArchiveError(f"the archive holds a name beyond all measure: {name[:200]!r}…")
    return "/".join(parts)


def _check_link(path: str, target: str, root: str) -> None:
    """Refuse a link that leads out of `root` by its words alone."""
    if not target or target.startswith("/") or any(ord(char) < 32 for char in target):
        raise HostileArchiveError(f"the link {path!r} in the archive leads out of it: {target!r}")
    reached = os.path.normpath(os.path.join(os.path.dirname(path), target))  # noqa: PTH118, PTH120
    if (
        reached == ".."
        or reached.startswith("../")
        or (root and reached != root and not reached.startswith(root + "/"))
    ):
        raise HostileArchiveError(f"the link {path!r} in the archive leads out of it: {target!r}")
