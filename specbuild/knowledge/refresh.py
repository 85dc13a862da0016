"""Makes the index of a release, and makes it anew when it is old; without a network the old one goes on."""

from __future__ import annotations

import os
import shutil
import sqlite3
import tempfile
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import anyio.from_thread
import anyio.to_thread

from specbuild.bases.apt_sources import debian_mirrors, host_sources
from specbuild.bases.releases import ALIASES
from specbuild.errors import ConfigError, DownloadError, IntegrityError, OversizeError, TransientError
from specbuild.http import Client
from specbuild.knowledge.archive import Archive
from specbuild.knowledge.index_file import write_index
from specbuild.knowledge.query import FOLDER, index_path
from specbuild.knowledge.release_file import ReleaseFile
from specbuild.storage import held, on_disk

MAX_AGE = 30 * 86_400.0
"""Seconds: as for bases. A stable release changes every two months."""

PAUSE = 3600.0
"""Seconds after a failed attempt to make an index anew until the next: builds without a network do not wait each."""

Notify = Callable[[str], None]


def mirror_address(given: str | None, root: Path = Path("/")) -> str:
    """The mirror that bases are made from: as set (`debian_mirror`), else that of the apt below `root`.

    Raises ConfigError where neither tells.
    """
    if given:
        return given
    if found := debian_mirrors(host_sources(root)):
        return found.main
    raise ConfigError(
        "no Debian mirror is known here, so that package indexes cannot be read: this host's apt has none",
        hint="set `debian_mirror` (SPECBUILD_DEBIAN_MIRROR)",
    )


class Refresher:
    """Keeps the indexes below `cache_dir` up to date. Safe for any number of processes."""

    def __init__(
        self,
        cache_dir: Path,
        *,
        mirror: str,
        architecture: str,
        max_age: float = MAX_AGE,
        notify: Notify = lambda message: None,
    ) -> None:
        """`mirror` is the address of an archive (see `mirror_address`), `architecture` Debian's name of it."""
        self._folder = cache_dir / FOLDER
        self._mirror = mirror
        self._architecture = architecture
        self._max_age = max_age
        self._notify = notify

    async def refresh(self, release: str) -> Path:
        """The index of a release, made or made anew if it is missing or old (60 MB of downloads, some 15 s of a core).

        Raises DownloadError or TransientError if there is none and none can be made, StoreError for the disk.
        """
        target = index_path(self._folder, release, self._architecture)
        with on_disk(self._folder):
            if not self._fresh(target):
                async with held(target.with_suffix(".lock")):
                    if not self._fresh(target):  # another process may have made it meanwhile
                        await self._renew(release, target)
        return target

    def _fresh(self, target: Path) -> bool:
        try:
            young = time.time() - target.stat().st_mtime <= self._max_age
        except FileNotFoundError:
            return False
        return young and _version_of(target) is not None

    async def _renew(self, release: str, target: Path) -> None:
        try:
            async with Client() as client:
                await self._make_of_any(client, release, target)
        except (TransientError, DownloadError) as error:
            if _version_of(target) is None:
                raise
            later = time.time() - max(0.0, self._max_age - PAUSE)
            os.utime(target, (later, later))
            self._notify(f"the old package index of {release} is used: a newer one failed ({error.message})")

    async def _make_of_any(self, client: Client, release: str, target: Path) -> None:
        """Under the release's own name, or where what lies there does not fit together, under its suite's.

        A cache keeps what it has fetched of each name for itself: the older of two states may be the whole one.
        """
        damaged: DownloadError | None = None
        for suite in (release, *(alias for alias, name in ALIASES.items() if name == release)):
            archive = Archive(client, self._mirror, release, self._architecture, suite=suite)
            try:
                await self._make(archive, target)
            except (IntegrityError, OversizeError) as error:
                damaged = damaged or error
            except (DownloadError, TransientError) as error:
                raise (damaged or error) from error
            else:
                return
        if damaged:
            raise damaged

    async def _make(self, archive: Archive, target: Path) -> None:
        found = await archive.release_file()
        version = _version(found, archive.wanted(found))
        if await anyio.to_thread.run_sync(_version_of, target) == version:
            os.utime(target)
            return
        prefix = f".{target.stem}."
        await anyio.to_thread.run_sync(self._sweep, prefix)
        with tempfile.TemporaryDirectory(prefix=prefix, dir=self._folder) as work:
            files = await archive.fetch(found, Path(work))
            draft = Path(work, "index.sqlite")

            def write() -> None:
                write_index(
                    draft,
                    files.contents,
                    files.sources,
                    pydist=files.pydist,
                    meta={"version": version, "date": found.date},
                    interrupt=anyio.from_thread.check_cancelled,
                )
                _to_disk(draft)
                draft.replace(target)

            await anyio.to_thread.run_sync(write)

    def _sweep(self, prefix: str) -> None:
        """Remove what a killed process left. Call with the lock held."""
        for left in self._folder.glob(f"{prefix}*"):
            if left.is_dir():
                shutil.rmtree(left, ignore_errors=True)


def _version(release: ReleaseFile, paths: tuple[str, ...]) -> str:
    """What an index is made of: it need not be made anew while these hashes stay."""
    return " ".join(listed.sha256 for path in paths for listed in list(release.find(path))[:1])


def _version_of(path: Path) -> str | None:
    """What the index at `path` was made of; None for none, or one that cannot be read."""
    if not path.is_file():
        return None
    try:
        with closing(sqlite3.connect(f"{path.as_uri()}?mode=ro&immutable=1", uri=True)) as db:
            row = db.execute("SELECT value FROM meta WHERE key = 'version'").fetchone()
    except sqlite3.DatabaseError:
        return None
    return str(row[0]) if row else None


def _to_disk(path: Path) -> None:
    """The name must not come before the content, should the machine stop."""
    with path.open("rb") as file:
        os.fsync(file.fileno())
