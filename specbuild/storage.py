"""Files that several processes share, and what a disk refuses, told apart from bugs of ours."""

from __future__ import annotations

import contextlib
import errno
import os
import secrets
from collections.abc import AsyncGenerator, Generator
from pathlib import Path
from typing import cast

import anyio
from filelock import FileLock, Timeout

from specbuild.errors import StoreError

FULL = frozenset({errno.ENOSPC, errno.EDQUOT})
"""Numbers by which the system says that a disk takes no more."""
_REFUSED = frozenset({errno.EACCES, errno.EPERM, errno.EROFS, errno.ENOTDIR, errno.EIO, errno.ENAMETOOLONG})


@contextlib.contextmanager
def on_disk(cache_dir: Path) -> Generator[None]:
    """Make the cache folder if it is missing, and raise StoreError for what a disk refuses meanwhile.

    Other errors of the system pass: they are ours.
    """
    try:
        cache_dir.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise StoreError(
            f"the cache folder {cache_dir} cannot be made: {error.strerror}",
            hint="set another one with SPECBUILD_CACHE_DIR or `cache_dir`",
        ) from error
    try:
        yield
    except OSError as error:
        told = as_store_error(error)
        if told is None:
            raise
        raise told from error
    except ExceptionGroup as group:
        told = next((found for error in _leaves(group) if (found := as_store_error(error))), None)
        if told is None:
            raise
        raise told from group


def write_whole(path: Path, text: str) -> None:
    """Write a file of which readers see the old text or the new one, and never a part. Raises OSError."""
    draft = path.with_name(f"{path.name}.{secrets.token_hex(4)}.new")
    draft.write_text(text, encoding="utf-8")
    draft.replace(path)


@contextlib.asynccontextmanager
async def held(path: Path) -> AsyncGenerator[None]:
    """Hold a lock file; waits, without blocking the loop, for whoever holds it now, in whatever process."""
    lock = FileLock(path, thread_local=False)
    while True:
        with contextlib.suppress(Timeout):
            lock.acquire(blocking=False)
            break
        await anyio.sleep(0.05)
    try:
        yield
    finally:
        lock.release()


def _leaves(error: Exception) -> Generator[OSError]:
    """The errors of the system in a group, of groups, of errors."""
    if isinstance(error, ExceptionGroup):
        for inner in cast("ExceptionGroup[Exception]", error).exceptions:
            yield from _leaves(inner)
    elif isinstance(error, OSError):
        yield error


def as_store_error(error: OSError) -> StoreError | None:
    """What to tell the user of an error of the system that a disk or its permissions explain; None for others."""
    where = f" at {os.fsdecode(error.filename)}" if isinstance(error.filename, (str, bytes)) else ""
    if error.errno in FULL:
        return StoreError(
            f"the disk is full{where}: {error.strerror}",
            hint="free some space (`specbuild cache prune`), or set SPECBUILD_CACHE_DIR to a larger disk",
        )
    if error.errno in _REFUSED:
        return StoreError(
            f"the disk refuses what SpecBuild needs{where}: {error.strerror}",
            hint="see who owns that path and how it is mounted, or set SPECBUILD_CACHE_DIR to another folder",
        )
    return None
