"""Copy a folder that is not ours, without ever writing to it."""

from __future__ import annotations

import errno
import fcntl
import os
import stat
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from anyio import from_thread, to_thread

from specbuild.errors import EmptyRepoError, RepoAccessError
from specbuild.repo.credible import newest_credible
from specbuild.repo.git import Git, GitFailed, commit_date
from specbuild.repo.gitdir import CopyOf, history_files, plain_settings
from specbuild.repo.room import check_room
from specbuild.repo.source import RepoLimits
from specbuild.repo.worktree import Listing, list_folder

FICLONE = 0x40049409
"""The ioctl that shares a file's blocks, from linux/fs.h: _IOW(0x94, 9, int)."""

_CHUNK = 1 << 30


@dataclass(frozen=True, slots=True)
class Copied:
    """What a folder held."""

    revision: str | None
    """Commit, with `-dirty` behind it when tracked files differ from it."""
    date: datetime | None
    """Of the commit; without git, of the newest file."""
    tracked: tuple[str, ...] | None
    """What git tracks; None without git."""
    notes: tuple[str, ...]


async def copy_folder(folder: Path, target: Path, scratch: Path, limits: RepoLimits) -> Copied:
    """Copy the source tree in `folder` to the new folder `target`.

    With git: what it tracks and what is there untracked without being ignored, submodules included, and a `.git` folder
    of its own that holds the history without hooks and secrets. Of a sub-folder of a repository only that sub-folder is
    copied, without history; commit and date are those of the repository. Without git: everything but `JUNK`.
    Links stay links, whatever they point to; sockets, pipes and devices are passed over.

    Raises EmptyRepoError, RepoTooLargeError, RepoAccessError, RepoToolMissingError.
    """
    folder = folder.resolve()  # noqa: ASYNC240 - one system call
    listing = await list_folder(folder, scratch, target.parent.resolve())
    if not listing.paths:
        raise EmptyRepoError(
            f"{folder} holds no files" + (" that git does not ignore" if listing.histories else ""),
            hint="name the folder that holds the project",
        )
    listing.check_depth()
    times = await to_thread.run_sync(_copy, folder, target, listing, limits)
    for place, gitdir in listing.histories:
        settings = await plain_settings(Git(folder / place, scratch), gitdir)
        (target / place / ".git" / "config").write_text(settings, "utf-8", "surrogateescape")
    return await _describe(Git(folder, scratch), Git(target, scratch), listing, times)


async def _describe(original: Git, copy: Git, listing: Listing, times: list[float]) -> Copied:
    if listing.commit is None:
        tracked = tuple(listing.tracked) if listing.histories else None
        return Copied(None, newest_credible(times), tracked, listing.summary)
    dirty = ""
    if listing.histories:  # asked of the copy: in the original, it would run the filters that the settings there name
        try:
            changes = await copy.run("status", "--porcelain", "--untracked-files=no", "--ignore-submodules=dirty")
            dirty = "-dirty" if changes else ""
        except GitFailed as failure:
            listing.notes.append(f"whether it differs from its commit is unknown: {failure.words.strip()[:200]}")
    date = await commit_date(original, listing.commit)
    return Copied(listing.commit + dirty, date, tuple(listing.tracked), listing.summary)


def _copy(folder: Path, target: Path, listing: Listing, limits: RepoLimits) -> list[float]:
    """Copy everything that is listed; modification times of the files. Runs in a worker thread."""
    work = [CopyOf(f"{folder}/{path}", path) for path in _reachable(folder, listing.paths)]
    work += [item for place, gitdir in listing.histories for item in history_files(gitdir, f"{place}/.git".lstrip("/"))]
    check_room(*_measure(work), target.parent, limits)
    copier = _Copier(str(target))
    for path in ("", *listing.folders, *(f"{place}/.git/refs".lstrip("/") for place, _ in listing.histories)):
        copier.make_folder(path)
    for item in work:
        from_thread.check_cancelled()
        copier.copy(item)
    return copier.times


def _reachable(folder: Path, paths: list[str]) -> list[str]:
    """Those of `paths` that are reached through real folders only.

    A listed `a/b` of which `a` has become a link since would be read, and written, behind that link.
    """
    real: dict[str, bool] = {"": True}

    def is_real(path: str) -> bool:
        if path not in real:
            try:
                real[path] = is_real(os.path.dirname(path)) and stat.S_ISDIR(os.lstat(f"{folder}/{path}").st_mode)  # noqa: PTH120
            except OSError:
                real[path] = False
        return real[path]

    return [path for path in paths if is_real(os.path.dirname(path))]  # noqa: PTH120


def _measure(work: list[CopyOf]) -> tuple[int, int]:
    """Bytes and number of all files."""
    total = 0
    for item in work:
        try:
            total += os.lstat(item.source).st_size
        except FileNotFoundError:
            continue
    return total, len(work)


class _Copier:
    """Copies into one folder, sharing blocks where the filesystem can."""

    def __init__(self, target: str) -> None:
        self.times: list[float] = []
        self._target = target
        self._folders: set[str] = set()

    def make_folder(self, path: str) -> None:
        if path not in self._folders:
            os.makedirs(os.path.join(self._target, path), exist_ok=True)  # noqa: PTH103, PTH118
            self._folders.add(path)

    def copy(self, item: CopyOf) -> None:
        try:
            about = os.lstat(item.source)
            if not (stat.S_ISREG(about.st_mode) or stat.S_ISLNK(about.st_mode)):
                return
            self.make_folder(os.path.dirname(item.target))  # noqa: PTH120
            target = f"{self._target}/{item.target}"
            if stat.S_ISLNK(about.st_mode):
                os.symlink(os.readlink(item.source), target)  # noqa: PTH115, PTH211
            else:
                self._copy_file(item.source, target)
        except FileNotFoundError:
            return  # deleted in the work tree, or a moment ago
        except FileExistsError:
            return  # an object that two stores hold
        except PermissionError as error:
            raise RepoAccessError(
                f"{item.source} cannot be read: {error.strerror}",
                hint="change its owner or mode, or have git ignore it",
            ) from error

    def _copy_file(self, source: str, target: str) -> None:
        # O_NONBLOCK: should a pipe have taken the file's place, opening it must not wait for a writer.
        reading = os.open(source, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
        try:
            about = os.fstat(reading)
            if not stat.S_ISREG(about.st_mode):
                return
            mode = 0o755 if about.st_mode & stat.S_IXUSR else 0o644
            writing = os.open(target, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, mode)
            try:
                _share_or_copy(reading, writing, about.st_size)
                os.fchmod(writing, mode)
                os.utime(writing, ns=(about.st_mtime_ns, about.st_mtime_ns))
            finally:
                os.close(writing)
            self.times.append(about.st_mtime)
        finally:
            os.close(reading)


def _share_or_copy(reading: int, writing: int, size: int) -> None:
    try:
        fcntl.ioctl(writing, FICLONE, reading)
    except OSError as error:
        if error.errno not in {errno.EOPNOTSUPP, errno.ENOTTY, errno.EXDEV, errno.EINVAL, errno.EPERM, errno.ENOSYS}:
            raise
        _copy_data(reading, writing, size)


def _copy_data(reading: int, writing: int, size: int) -> None:
    """Copy in the kernel, and by hand where it cannot (other filesystems, files of size 0 in /proc)."""
    done = 0
    try:
        while copied := os.copy_file_range(reading, writing, _CHUNK):
            done += copied
    except OSError as error:
        if error.errno not in {errno.EXDEV, errno.EINVAL, errno.ENOSYS, errno.EOPNOTSUPP, errno.EPERM}:
            raise
    if done < size:
        while chunk := os.read(reading, 1 << 20):
            rest = memoryview(chunk)
            while rest:
                rest = rest[os.write(writing, rest) :]
