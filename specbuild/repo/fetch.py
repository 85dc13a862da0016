"""Make a private, pinned copy of the source tree that the user named."""

from __future__ import annotations

import shutil
import tempfile
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path, PurePosixPath
from urllib.parse import unquote, urlsplit

from anyio import from_thread, to_thread

from specbuild.errors import (
    EmptyRepoError,
    NotARepositoryError,
    OversizeError,
    RepoAccessError,
    RepoNotFoundError,
    RepoTooLargeError,
    RequestRefusedError,
)
from specbuild.repo.archive import Unpacked, unpack
from specbuild.repo.clone import clone
from specbuild.repo.commands import download_commands
from specbuild.repo.digest import Tree, read_tree
from specbuild.repo.folder import copy_folder
from specbuild.repo.generated import is_rewritten
from specbuild.repo.git import Git, GitFailed, prepare_scratch, tracked_files
from specbuild.repo.source import Address, Repo, RepoLimits, parse_address
from specbuild.urls import without_credentials


@dataclass(frozen=True, slots=True)
class _Source:
    """A private copy, before it is hashed."""

    kind: str
    root: Path
    revision: str | None
    date: datetime | None
    tracked: tuple[str, ...] | None
    """What git tracks; None for what has no git."""
    fetch: str = ""
    notes: tuple[str, ...] = ()


async def fetch_repo(spec: str, work: Path, *, limits: RepoLimits | None = None) -> Repo:
    """Copy the source tree that `spec` names into the folder `work`, which is SpecBuild's own.

    `spec` is a folder; a git URL, `user@host:path` or local repository, each with an optional `@REVISION`; an archive,
    local or by http; or `pypi:NAME`, `pypi:NAME==VERSION`. The copy lies in a new folder inside `work`, and stays until
    the caller removes it; on failure and cancellation nothing stays.

    Raises the subclasses of RepoError, UsageError for an address that makes no sense, TransientError, and DownloadError
    for a server's final refusal.
    """
    limits = limits or RepoLimits()
    home = await to_thread.run_sync(_make_home, work)
    try:
        address = parse_address(spec)
        source = await _fetch(address, home, limits)
        repo = await to_thread.run_sync(_describe, address, source)
        await to_thread.run_sync(_keep_only, home, source.root)
    except PermissionError as error:
        shutil.rmtree(home, ignore_errors=True)
        raise RepoAccessError(
            f"{error.filename or spec} cannot be read: {error.strerror}", hint="change its owner or mode"
        ) from error
    except BaseException:
        shutil.rmtree(home, ignore_errors=True)
        raise
    return repo


def _make_home(work: Path) -> Path:
    work.mkdir(parents=True, exist_ok=True)
    home = Path(tempfile.mkdtemp(prefix="source-", dir=work)).resolve()
    prepare_scratch(home / "scratch")
    return home


def _keep_only(home: Path, root: Path) -> None:
    """Remove downloads and settings; the tree alone stays."""
    for path in home.iterdir():
        if path != root and path not in root.parents:
            shutil.rmtree(path) if path.is_dir() else path.unlink()


async def _fetch(address: Address, home: Path, limits: RepoLimits) -> _Source:
    match address.kind:
        case "folder":
            return await _from_folder(Path(address.location), home, limits)
        case "git":
            return await _from_git(address.location, address.revision, home, limits)
        case "archive":
            return await _from_archive(address.location, home, limits)
        case "pypi":
            return await _from_pypi(address.location, address.revision, home, limits)


async def _from_folder(folder: Path, home: Path, limits: RepoLimits) -> _Source:
    if not folder.is_dir():  # noqa: ASYNC240
        raise RepoNotFoundError(
            f"there is no folder {str(folder)!r}",
            hint="check the path; repositories elsewhere are named by URL, packages as pypi:NAME==VERSION",
        )
    if await _is_bare(folder, home / "scratch"):
        return await _from_git(str(folder.absolute()), None, home, limits)  # noqa: ASYNC240
    copied = await copy_folder(folder, home / "tree", home / "scratch", limits)
    return _Source("folder", home / "tree", copied.revision, copied.date, copied.tracked, notes=copied.notes)


async def _is_bare(folder: Path, scratch: Path) -> bool:
    if not ((folder / "HEAD").is_file() and (folder / "objects").is_dir()):
        return False
    try:
        return await Git(folder, scratch).line("rev-parse", "--is-bare-repository") == "true"
    except GitFailed:
        return False


async def _from_git(url: str, revision: str | None, home: Path, limits: RepoLimits) -> _Source:
    tree = home / "tree"
    checkout = await clone(url, revision, tree, home / "scratch", limits)
    tracked = tuple(await tracked_files(Git(tree, home / "scratch")))
    return _Source("git", tree, checkout.commit, checkout.date, tracked, checkout.fetch, checkout.notes)


async def _from_archive(location: str, home: Path, limits: RepoLimits) -> _Source:
    scheme = urlsplit(location).scheme if "://" in location else ""
    if scheme not in {"http", "https"}:
        path = Path(unquote(urlsplit(location).path)) if scheme == "file" else Path(location)
        unpacked = await _unpack(path, home, limits)
        return _Source("archive", unpacked.root, unpacked.commit, unpacked.date, None)
    from specbuild.http import Client
    from specbuild.repo.index_settings import read_index_settings

    name = PurePosixPath(unquote(urlsplit(location).path)).name or "archive"
    try:
        async with Client(read_index_settings().network) as client:
            download = await client.download(location, home / name, max_bytes=limits.max_download_bytes)
    except RequestRefusedError as refused:
        kind = RepoAccessError if refused.status in {401, 403, 407} else RepoNotFoundError
        raise kind(refused.message, hint=refused.hint or "check the address") from refused
    except OversizeError as error:
        raise RepoTooLargeError(error.message) from error
    unpacked = await _unpack(download.path, home, limits)
    fetch = download_commands(without_credentials(location), name, download.sha256, _top(unpacked, home))
    return _Source("archive", unpacked.root, unpacked.commit, unpacked.date, None, fetch)


async def _from_pypi(name: str, version: str | None, home: Path, limits: RepoLimits) -> _Source:
    from specbuild.http import Client
    from specbuild.repo.index_settings import read_index_settings
    from specbuild.repo.pypi import download_sdist, find_sdist

    settings = read_index_settings()
    try:
        async with Client(settings.network) as client:
            sdist = await find_sdist(client, settings, name, version)
            download = await download_sdist(client, sdist, home, limits.max_download_bytes)
    except OversizeError as error:
        raise RepoTooLargeError(error.message) from error
    unpacked = await _unpack(download.path, home, limits)
    url = without_credentials(sdist.file.url)
    fetch = (
        ""
        if url.startswith("file:")
        else download_commands(url, sdist.file.name, download.sha256, _top(unpacked, home))
    )
    date = sdist.file.uploaded or unpacked.date
    return _Source("pypi", unpacked.root, sdist.version, date, None, fetch, sdist.notes)


async def _unpack(path: Path, home: Path, limits: RepoLimits) -> Unpacked:
    tree = home / "tree"
    await to_thread.run_sync(_check_file, path, limits)
    tree.mkdir()
    return await to_thread.run_sync(unpack, path, tree, limits, from_thread.check_cancelled)


def _check_file(path: Path, limits: RepoLimits) -> None:
    if not path.exists():
        raise RepoNotFoundError(f"there is no file {str(path)!r}", hint="check the path")
    if not path.is_file():
        raise NotARepositoryError(f"{str(path)!r} is neither a folder nor a file", hint="name a folder or an archive")
    if path.suffix in {".whl", ".egg"}:
        raise NotARepositoryError(
            f"{path.name} is built already and holds no source tree", hint="name the source, or pypi:NAME==VERSION"
        )
    if path.stat().st_size > limits.max_download_bytes:
        raise RepoTooLargeError(f"{path.name} is larger than the limit of {limits.max_download_bytes:,} bytes")


def _top(unpacked: Unpacked, home: Path) -> str:
    """The archive's only top folder; empty when it has several."""
    return "" if unpacked.root == home / "tree" else unpacked.root.name


def _describe(address: Address, source: _Source) -> Repo:
    tree = read_tree(source.root, from_thread.check_cancelled)
    if not any(entry.kind != "folder" for entry in tree.entries):
        raise EmptyRepoError(f"{without_credentials(address.origin)} holds no files")
    return Repo(
        origin=without_credentials(address.origin),
        kind=source.kind,
        path=source.root,
        revision=source.revision,
        digest=tree.digest,
        tracked=_tracked(source, tree),
        date=source.date,
        fetch=source.fetch,
        notes=source.notes,
    )


def _tracked(source: _Source, tree: Tree) -> dict[str, str]:
    files = tree.files
    if source.tracked is not None:
        return {path: files[path] for path in source.tracked if path in files}
    return {path: sha256 for path, sha256 in files.items() if not is_rewritten(source.root, path)}
