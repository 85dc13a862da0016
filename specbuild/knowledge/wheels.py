"""What the user's package index says of distributions: releases, files, upload dates, requirements (PEP 691, 658).

CACHE/knowledge/index-DIGEST holds what was read, DIGEST being of the addresses of the indexes. Nothing here is an error
for a build: an index that cannot be had, or not soon, tells nothing, and is then left alone for a while.
"""

from __future__ import annotations

import contextlib
import json
import os
import tempfile
import time
from collections.abc import Awaitable, Callable, Iterable
from contextlib import AsyncExitStack
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from types import TracebackType
from typing import Self, TypeVar

import anyio
import anyio.to_thread
from packaging.utils import canonicalize_name

from specbuild.errors import ConfigError, SpecBuildError, TransientError
from specbuild.http import Client
from specbuild.knowledge.query import FOLDER
from specbuild.knowledge.releases import Release, releases_of
from specbuild.model import digest_of
from specbuild.repo.index_page import IndexFile
from specbuild.repo.index_settings import IndexSettings, default_index, read_index_settings
from specbuild.repo.pypi import index_files
from specbuild.retry import Retry

T = TypeVar("T")

MAX_AGE = 86_400.0
"""Seconds for which the page of a project is good: releases of the last day may be missed."""

PATIENCE = 5.0
"""Seconds that one question may take until the index is held to be out of reach."""

PAUSE = 300.0
"""Seconds for which an index that did not answer is not asked again."""

_GUESSES = 12
"""Metadata files that an index may be asked for in a row without having told of them, and without having them."""

_FORM = 1
"""Of the files in the cache."""

_LARGEST = 4 << 20
"""Bytes of a metadata file: the longest are descriptions of some 300 KB."""


class PackageIndex:
    """An asynchronous context manager that answers from the cache, else from the user's index.

    Several that ask for the same thing at once cause one request.
    """

    def __init__(
        self,
        cache_dir: Path,
        *,
        settings: IndexSettings | None = None,
        max_age: float = MAX_AGE,
        patience: float = PATIENCE,
        clock: Callable[[], float] = time.time,
    ) -> None:
        """`settings` are by default those of the user's pip and uv; `clock` tells seconds since 1970."""
        self._cache = cache_dir / FOLDER
        self._given = settings
        self._max_age = max_age
        self._patience = patience
        self._clock = clock
        self._stack = AsyncExitStack()
        self._locks: dict[str, anyio.Lock] = {}
        self._releases: dict[str, tuple[Release, ...]] = {}
        self._silent_until = 0.0
        self._guesses = _GUESSES
        self._without: set[str] = set()
        self._reached: _Reached | None = None

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._reached = None
        await self._stack.aclose()

    async def releases(self, project: str) -> tuple[Release, ...]:
        """Every release, newest first; none for a project that is unknown, or when the index cannot be had."""
        name = canonicalize_name(project)
        async with self._lock(name):
            if name not in self._releases:
                found = await self._releases_of(name)
                if found is None:
                    return ()
                self._releases[name] = found
            return self._releases[name]

    async def metadata(self, file: IndexFile) -> str | None:
        """The core metadata of a file, where the index has them by themselves."""
        untold = file.metadata is None and (self._guesses <= 0 or file.url in self._without)
        if file.metadata is False or untold:
            return None
        async with self._lock(file.url):
            reached = await self._reach()
            if reached is None:
                return None
            path = reached.folder / f"{file.name}.metadata"
            kept = await anyio.to_thread.run_sync(_read, path)
            if kept is not None:
                return kept[0]
            text = await self._asked(lambda: _text(reached.client, f"{file.url}.metadata"))
            if file.metadata is None:
                self._guesses = _GUESSES if text is not None else self._guesses - 1
            if text is None:
                self._without.add(file.url)
            else:
                await anyio.to_thread.run_sync(_write, path, text)
            return text

    async def _releases_of(self, name: str) -> tuple[Release, ...] | None:
        """From the cache if it is fresh, from the index, from the cache at any age; None where nobody knows."""
        reached = await self._reach()
        if reached is None:
            return None
        path = reached.folder / f"{name}.json"
        kept = await anyio.to_thread.run_sync(_read, path)
        text, written = kept or ("", 0.0)
        files = _loaded(text)
        if files is None or self._clock() - written > self._max_age:
            fetched = await self._asked(lambda: _page(reached, name))
            if fetched is not None:
                await anyio.to_thread.run_sync(_write, path, _dumped(fetched))
                files = fetched
        return None if files is None else await anyio.to_thread.run_sync(releases_of, files, name)

    async def _reach(self) -> _Reached | None:
        """The client and the addresses, made when they are first needed; None where the settings are of no use."""
        async with self._lock(""):
            if self._reached is None:
                try:
                    settings = self._given
                    if settings is None:
                        settings = await anyio.to_thread.run_sync(read_index_settings)
                    default = (await default_index(),) if settings.default_wanted else ()
                    retry = Retry(attempts=2, first=0.2)
                    client = await self._stack.enter_async_context(Client(settings.network, retry=retry))
                except ConfigError:
                    return None
                indexes = (*settings.indexes, *default)
                folder = self._cache / f"index-{digest_of(indexes)[:16]}"
                self._reached = _Reached(client, indexes, folder)
            return self._reached

    async def _asked(self, ask: Callable[[], Awaitable[T]]) -> T | None:
        """The answer of an index; None if there is none, or not soon, after which it is left alone for a while."""
        if self._clock() < self._silent_until:
            return None
        try:
            with anyio.fail_after(self._patience):
                return await ask()
        except (TransientError, TimeoutError):
            self._silent_until = self._clock() + PAUSE
        except (SpecBuildError, OSError):
            pass  # this question has no answer, the next may have one
        return None

    def _lock(self, name: str) -> anyio.Lock:
        return self._locks.setdefault(name, anyio.Lock())


@dataclass(frozen=True, slots=True)
class _Reached:
    """How the index is reached."""

    client: Client
    indexes: tuple[str, ...]
    folder: Path
    """Of the cache."""


async def _page(reached: _Reached, name: str) -> list[IndexFile]:
    """Of the first index that has the project, as installers do, lest a public one outbid a private one."""
    for index in reached.indexes:
        if files := await index_files(reached.client, index, name):
            return files
    return []


async def _text(client: Client, url: str) -> str:
    return (await client.get(url, max_bytes=_LARGEST)).body.decode("utf-8", "replace")


def _dumped(files: Iterable[IndexFile]) -> str:
    rows = [
        [f.name, f.url, _written(f.uploaded), f.requires_python, f.yanked, f.metadata, f.hashes.get("sha256")]
        for f in files
    ]
    return json.dumps({"form": _FORM, "files": rows}, separators=(",", ":"))


def _written(moment: datetime | None) -> str | None:
    return moment.isoformat() if moment else None


def _loaded(text: str) -> list[IndexFile] | None:
    """None for what another release of SpecBuild, or nobody, has written."""
    try:
        kept = json.loads(text)
        return [_file(*row) for row in kept["files"]] if kept["form"] == _FORM else None
    except (ValueError, KeyError, TypeError, RecursionError):
        return None


def _file(
    name: str,
    url: str,
    uploaded: str | None,
    requires_python: str,
    yanked: str | None,
    metadata: bool | None,
    sha256: str | None = None,
) -> IndexFile:
    return IndexFile(
        name,
        url,
        hashes={"sha256": sha256} if sha256 else {},
        uploaded=datetime.fromisoformat(uploaded) if uploaded else None,
        yanked=yanked,
        requires_python=requires_python,
        metadata=metadata,
    )


def _read(path: Path) -> tuple[str, float] | None:
    """The text, and when it was written; None if it is not there."""
    try:
        return path.read_text("utf-8"), path.stat().st_mtime
    except (OSError, UnicodeDecodeError):
        return None


def _write(path: Path, text: str) -> None:
    """All at once, so that whoever reads meanwhile sees the old or the new. A cache that is not kept is no loss."""
    with contextlib.suppress(OSError):
        path.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile("w", encoding="utf-8", dir=path.parent, delete=False) as file:
            file.write(text)
        os.replace(file.name, path)  # noqa: PTH105
