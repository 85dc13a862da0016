"""Whether a source tree fits: the user's limits and the disk's free space."""

from __future__ import annotations

import shutil
from pathlib import Path

from specbuild.errors import HostileArchiveError, RepoTooLargeError
from specbuild.repo.source import RepoLimits

_CHECK_DISK_EVERY = 64 << 20


def check_room(size: int, files: int, folder: Path, limits: RepoLimits) -> None:
    """Raise RepoTooLargeError when so many bytes and files may not, or do not, fit into `folder`."""
    if size > limits.max_bytes:
        raise RepoTooLargeError(
            f"the source tree holds {_gib(size)}, more than the limit of {_gib(limits.max_bytes)}",
            hint="remove data and build results that are no source, or have git ignore them",
        )
    if files > limits.max_files:
        raise RepoTooLargeError(f"the source tree holds {files:,} files, more than the limit of {limits.max_files:,}")
    free = shutil.disk_usage(folder).free
    if size + limits.free_bytes > free:
        raise RepoTooLargeError(
            f"the disk is too full: the source needs {_gib(size)}, and {_gib(limits.free_bytes)} have to stay free, "
            f"but {folder} has only {_gib(free)}",
            hint="free some space (`specbuild cache prune`) or set another cache folder (SPECBUILD_CACHE_DIR)",
        )


class Budget:
    """What an archive may still unpack to."""

    def __init__(self, limits: RepoLimits, folder: Path, *, packed: int) -> None:
        self._limits = limits
        self._folder = folder
        self._packed = max(packed, 1)
        self._bytes = 0
        self._entries = 0
        self._checked = 0
        check_room(0, 0, folder, limits)

    def add_entry(self) -> None:
        self._entries += 1
        if self._entries > self._limits.max_files:
            raise RepoTooLargeError(f"the archive holds more than {self._limits.max_files:,} files and folders")

    def add_bytes(self, count: int) -> None:
        self._bytes += count
        self._check_total(self._bytes)

    def expect(self, size: int) -> None:
        """Refuse a member by its announced size, before any of it is written."""
        if size < 0:
            raise HostileArchiveError("the archive has a member of negative size")
        self._check_total(self._bytes + size)

    def check_stream(self, unpacked: int) -> None:
        """Refuse what is decompressed without being written, such as headers."""
        self._check_ratio(unpacked)
        if unpacked > self._limits.max_bytes + self._limits.max_files * 2048:
            raise RepoTooLargeError(f"the archive unpacks to more than {_gib(self._limits.max_bytes)}")

    def _check_total(self, total: int) -> None:
        self._check_ratio(total)
        if total > self._limits.max_bytes:
            raise RepoTooLargeError(f"the archive unpacks to more than the limit of {_gib(self._limits.max_bytes)}")
        if total - self._checked > _CHECK_DISK_EVERY:
            self._checked = total
            check_room(total - self._bytes, 0, self._folder, self._limits)

    def _check_ratio(self, total: int) -> None:
        if total > self._limits.ratio_from_bytes and total / self._packed > self._limits.max_ratio:
            raise HostileArchiveError(
                f"the archive of {self._packed:,} bytes unpacks to more than {total:,}: it seems to be a bomb"
            )


def _gib(size: int) -> str:
    return f"{size / (1 << 30):.2f} GiB"
