"""Find and download a source distribution through the user's own indexes."""

from __future__ import annotations

import bisect
from collections.abc import AsyncIterator, Iterable
from dataclasses import dataclass
from pathlib import Path
from shutil import copyfile
from urllib.parse import unquote, urlsplit

import anyio
from anyio import to_thread
from packaging.utils import canonicalize_name
from packaging.version import InvalidVersion, Version

from specbuild.errors import (
    IntegrityError,
    NoSourceDistributionError,
    PackageNotFoundError,
    RepoAccessError,
    RequestRefusedError,
    TransientError,
)
from specbuild.http import Client, Download
from specbuild.repo.digest import hash_file
from specbuild.repo.index_page import (
    ACCEPT,
    SDIST_SUFFIXES,
    IndexFile,
    files_in,
    parse_page,
    same_version,
    version_key,
)
from specbuild.repo.index_settings import IndexSettings, default_index
from specbuild.urls import without_credentials

_SHOWN = 6


@dataclass(frozen=True, slots=True)
class Sdist:
    """A source distribution that was found."""

    version: str
    file: IndexFile
    notes: tuple[str, ...] = ()


async def find_sdist(client: Client, settings: IndexSettings, name: str, version: str | None) -> Sdist:
    """The source distribution of `name` at `version`, or the newest final one that is not yanked.

    Places are asked in order (find-links, further indexes, the default index) and the first that has it is taken, so
    that a private index cannot be outbid by a public one.

    Raises PackageNotFoundError and NoSourceDistributionError (with the nearest versions), RepoAccessError,
    TransientError.
    """
    project = canonicalize_name(name)
    seen: list[IndexFile] = []
    asked: list[str] = []
    async for place, files in _places(client, settings, project):
        asked.append(without_credentials(place))
        seen += files
        if found := _choose(files, project, version):
            return found
    raise _not_found(name, version, seen, asked)


async def download_sdist(client: Client, sdist: Sdist, folder: Path, max_bytes: int) -> Download:
    """Download it into `folder` and check its hash, if the index gave one."""
    target = folder / sdist.file.name
    parts = urlsplit(sdist.file.url)
    if parts.scheme != "file":
        return await client.download(sdist.file.url, target, hashes=sdist.file.hashes, max_bytes=max_bytes)
    await to_thread.run_sync(copyfile, unquote(parts.path), target)
    sha256 = await to_thread.run_sync(hash_file, target)
    if sdist.file.hashes.get("sha256", sha256) != sha256:
        raise IntegrityError(f"{parts.path} has the sha256 {sha256}, but {sdist.file.hashes['sha256']} was promised")
    return Download(target, sdist.file.url, (await anyio.Path(target).stat()).st_size, sha256)


async def _places(client: Client, settings: IndexSettings, project: str) -> AsyncIterator[tuple[str, list[IndexFile]]]:
    """Each place that may have the project, with the files that it has."""
    for place in settings.find_links:
        if urlsplit(place).scheme in {"http", "https"}:
            yield place, await _page(client, place)
        else:
            path = Path(unquote(urlsplit(place).path) if place.startswith("file:") else place)
            yield place, await to_thread.run_sync(files_in, path.expanduser())  # noqa: ASYNC240
    for index in settings.indexes:
        yield index, await index_files(client, index, project)
    if settings.default_wanted:
        index = await default_index()
        yield index, await index_files(client, index, project)


async def index_files(client: Client, index: str, project: str) -> list[IndexFile]:
    """The files that one index has of a project (by its normalised name); none if it does not know it.

    Raises RepoAccessError where credentials are missing, TransientError and RequestRefusedError as `Client` does.
    """
    parts = urlsplit(index)
    if parts.scheme == "file":
        return await to_thread.run_sync(files_in, Path(unquote(parts.path)) / project)
    return await _page(client, f"{index.rstrip('/')}/{project}/")


async def _page(client: Client, url: str) -> list[IndexFile]:
    """The files on a page; none for a project that the index does not know."""
    try:
        answer = await client.get(url, headers={"Accept": ACCEPT})
    except RequestRefusedError as refused:
        if refused.status in {404, 410}:
            return []
        if refused.status in {401, 403, 407}:
            raise RepoAccessError(
                f"the package index refuses: {refused.message}",
                hint="write the credentials into the index's address (pip's or uv's settings) or into ~/.netrc",
            ) from refused
        raise
    try:
        return parse_page(answer.body, answer.headers.get("content-type", ""), answer.url)
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise TransientError(
            f"{answer.url} is no page of a package index: {error}", hint="a proxy or a captive portal may have sent it"
        ) from error


def _choose(files: Iterable[IndexFile], project: str, version: str | None) -> Sdist | None:
    sdists = [(found, file) for file in files if (found := file.version(project))]
    if version is not None:
        sdists = [each for each in sdists if same_version(each[0], version)]
    else:
        sdists = [each for each in sdists if each[1].yanked is None and _is_final(each[0])] or [
            each for each in sdists if each[1].yanked is None
        ]
    if not sdists:
        return None
    best = max(sdists, key=lambda each: (version_key(each[0]), -_rank(each[1])))
    return Sdist(*best, notes=_notes(best, files, project, newest=version is None))


def _notes(best: tuple[str, IndexFile], files: Iterable[IndexFile], project: str, *, newest: bool) -> tuple[str, ...]:
    version, file = best
    notes: list[str] = []
    if file.yanked is not None:
        notes.append(f"{file.name} was withdrawn by its authors: {file.yanked or 'no reason given'}")
    wheels = [each for found in files if found.yanked is None and (each := found.wheel_version(project))]
    newer = [each for each in wheels if _is_final(each) and version_key(each) > version_key(version)]
    if newest and newer:
        notes.append(f"{max(newer, key=version_key)} is newer than {version}, but there are only wheels of it")
    return tuple(notes)


def _rank(file: IndexFile) -> int:
    return next(place for place, end in enumerate(SDIST_SUFFIXES) if file.name.lower().endswith(end))


def _is_final(version: str) -> bool:
    try:
        return not Version(version).is_prerelease
    except InvalidVersion:
        return False


def _not_found(
    name: str, version: str | None, files: list[IndexFile], asked: list[str]
) -> PackageNotFoundError | NoSourceDistributionError:
    project = canonicalize_name(name)
    sources = {found for file in files if (found := file.version(project))}
    wheels = {found for file in files if (found := file.wheel_version(project))}
    where = ", ".join(asked) or "no index at all (no-index is set)"
    if not sources and not wheels:
        return PackageNotFoundError(f"there is no package {name!r} on {where}", hint="check the name and PIP_INDEX_URL")
    near = ", ".join(_nearest(sources, version))
    hint = f"with a source distribution: {near}" if near else "name its git repository instead"
    if version is None or any(same_version(each, version) for each in wheels):
        shown = f"{name} {version}" if version else name
        return NoSourceDistributionError(f"{shown} has only wheels on {where}, no source distribution", hint=hint)
    return PackageNotFoundError(f"{name} has no version {version} on {where}", hint=hint)


def _nearest(versions: set[str], wanted: str | None) -> list[str]:
    """The versions around the wanted one, else the newest."""
    ordered = sorted(versions, key=version_key)
    if wanted is None:
        return ordered[-_SHOWN:]
    place = bisect.bisect(ordered, version_key(wanted), key=version_key)
    start = max(0, min(place - _SHOWN // 2, len(ordered) - _SHOWN))
    return ordered[start : start + _SHOWN]
