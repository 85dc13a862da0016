"""What the cache takes, and shrinking it without touching what is in use."""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import anyio.to_thread

from specbuild.config import Settings
from specbuild.errors import ConfigError, EngineError, StoreError
from specbuild.library import Library
from specbuild.sandbox.backends import Opening, open_backend
from specbuild.sandbox.docker.ledger import held

Notify = Callable[[str], None]

_SHARED = ("bases", "caches", "settings", "testing")
"""What builds have in common, beside `store` and `docker`, which only their backends may touch."""
_PLANS = "plan-????????"
"""Source trees that `plan` reads; left behind by those that were killed."""
_ABANDONED_SECONDS = 7 * 24 * 3600
"""Age after which the folder of a build that never ended is held for left behind by a crash."""
_BLOCK = 512
"""Unit of `st_blocks`, whatever the file system's own block is (POSIX)."""


def disk_usage(folder: Path) -> dict[str, int]:
    """Bytes on disk below each entry of `folder`; hard links count once, other file systems are left out."""
    seen: set[int] = set()
    if not folder.is_dir():
        return {}
    return {path.name: sum(_blocks(path, seen)) for path in sorted(folder.iterdir())}


def _blocks(path: Path, seen: set[int]) -> Iterator[int]:
    device = path.lstat().st_dev
    pending = [path]
    while pending:
        try:
            found = (current := pending.pop()).lstat()
            if found.st_dev != device or found.st_ino in seen:
                continue
            seen.add(found.st_ino)
            yield found.st_blocks * _BLOCK
            if current.is_dir() and not current.is_symlink():
                pending.extend(current.iterdir())
        except (FileNotFoundError, PermissionError):  # removed meanwhile, or another user's inside a sandbox's layer
            continue


def _silent(message: str) -> None:
    del message


def held_by_engines(folder: Path) -> dict[str, int]:
    """Bytes of the Checkpoints of a cache that are images in container engines, by the engine's address."""
    return held(folder / "docker")


async def prune_cache(settings: Settings, *, before: float | None = None, notify: Notify = _silent) -> int:
    """Remove what nothing needs, and environments made before that time (seconds since the epoch); bytes freed.

    `notify` is told of each container engine that holds something of the cache and cannot be asked now.
    """
    library = Library(settings.cache_dir)
    gone = [file.parent for file in library.environments() if before is not None and file.stat().st_mtime < before]
    gone += [place.folder for place in library.places() if _is_abandoned(place.folder)]
    gone = [folder for folder in gone if not library.place(folder.name).is_building]
    return await _remove(settings, gone, notify, everything=False)


def running_builds(settings: Settings) -> list[str]:
    """Ids of the builds that go on in this cache now."""
    return sorted(place.id for place in Library(settings.cache_dir).places() if place.is_building)


async def clean_cache(settings: Settings, *, notify: Notify = _silent) -> int:
    """Remove everything of SpecBuild's own that no running build uses; bytes freed. `notify` as of `prune_cache`.

    While a build runs, the bases, downloads and settings that builds share stay too.
    """
    places = Library(settings.cache_dir).places()
    ended = [place.folder for place in places if not place.is_building]
    shared = _shared(settings.cache_dir) if len(ended) == len(places) else []
    return await _remove(settings, [*ended, *shared], notify, everything=True)


def _shared(folder: Path) -> list[Path]:
    """What SpecBuild itself has put into the cache folder, which may hold things of others: somebody's home, say."""
    return [path for path in _entries(folder) if path.name in _SHARED or path.match(_PLANS)]


async def _remove(settings: Settings, folders: list[Path], notify: Notify, *, everything: bool) -> int:
    _refuse_mounts(folders)
    freed = await _prune(open_backend(settings), folders, everything=everything)
    for address in _engines(settings):  # of builds on an engine, by request
        on_engine = open_backend(settings.model_copy(update={"backend": "docker"}), engine=address)
        try:
            freed += await _prune(on_engine, folders, everything=everything)
        except (EngineError, ConfigError) as error:
            if address:
                notify(f"{error.message}: what it holds of this cache stays until it can be asked again")
    return freed + await anyio.to_thread.run_sync(_delete, folders)


def _engines(settings: Settings) -> list[str]:
    """The addresses of all engines that hold something of the cache; empty for the one that is found.

    What that one holds may be written down without an address.
    """
    if settings.backend == "overlay" or not (settings.cache_dir / "docker").exists():
        return []
    return [*([""] if settings.backend == "auto" else []), *held_by_engines(settings.cache_dir)]


async def _prune(opening: Opening, folders: list[Path], *, everything: bool) -> int:
    """Have a backend give up the environments of those folders, and what nobody needs; bytes freed."""
    async with opening as backend:
        for folder in folders:
            await backend.forget(folder.name)
        return await backend.prune(everything=everything)


def _delete(paths: list[Path]) -> int:
    freed = 0
    for path in paths:
        freed += sum(_blocks(path, set()))
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path)
        else:
            path.unlink()
    return freed


def _entries(folder: Path) -> list[Path]:
    return list(folder.iterdir()) if folder.is_dir() else []


def _is_abandoned(folder: Path) -> bool:
    unfinished = not (folder / "environment.json").exists()
    return unfinished and folder.stat().st_mtime < time.time() - _ABANDONED_SECONDS


def _refuse_mounts(folders: list[Path]) -> None:
    """Deleting must never walk into a mounted file system."""
    mounted = [line.split()[4] for line in Path("/proc/self/mountinfo").read_text().splitlines()]
    for folder in folders:
        inside = [point for point in mounted if Path(point).is_relative_to(folder.absolute())]
        if inside:
            raise StoreError(
                f"{inside[0]} is mounted inside {folder}, so it is not removed", hint=f"umount {inside[0]} first"
            )
