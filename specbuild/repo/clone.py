"""Clone a repository at a revision, through any transport that git has."""

from __future__ import annotations

import difflib
import os
import re
import shlex
import shutil
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from urllib.parse import urlsplit

import anyio
from anyio import to_thread

from specbuild.errors import EmptyRepoError, RepoError, RepoTooLargeError, RevisionNotFoundError, TransientError
from specbuild.repo.git import Git, GitFailed, commit_date, explain
from specbuild.repo.room import check_room
from specbuild.repo.source import RepoLimits
from specbuild.retry import Retry
from specbuild.urls import without_credentials

_RETRY = Retry(attempts=3, first=2.0)
_FILTER = "--filter=blob:none"
_WATCH_SECONDS = 1.0


@dataclass(frozen=True, slots=True)
class Checkout:
    """A clone at a commit."""

    commit: str
    date: datetime | None
    fetch: str
    """Shell commands that make the same checkout in the present folder; empty for a local repository."""
    notes: tuple[str, ...]


async def clone(url: str, revision: str | None, target: Path, scratch: Path, limits: RepoLimits) -> Checkout:
    """Clone `url` into the new folder `target`, with all tags and submodules, at `revision` (default: its HEAD).

    Remote histories come without old file contents where the server can do that. No credentials stay in the clone.

    Raises the errors of `git.explain`, RevisionNotFoundError, EmptyRepoError, RepoTooLargeError, TransientError.
    """
    local = is_local(url)
    config = (("protocol.file.allow", "always"),) if local else ()
    await _clone_with_retries(Git(scratch, scratch, config), url, target, limits, partial=not local)
    git = Git(target, scratch, config)
    commit, special = await _resolve(git, url, revision)
    try:
        await git.run("checkout", "--quiet", "--detach", commit)
    except GitFailed as failure:
        raise explain(failure, url) from failure
    notes = await _submodules(git, url)
    _forget_credentials(target, url)
    return Checkout(commit, await commit_date(git, commit), "" if local else _commands(url, commit, special), notes)


def is_local(url: str) -> bool:
    """Whether the repository lies on this machine."""
    return url.startswith(("/", ".")) or url.lower().startswith("file:")


async def _clone_with_retries(git: Git, url: str, target: Path, limits: RepoLimits, *, partial: bool) -> None:
    pauses = _RETRY.pauses()
    while True:
        try:
            return await _clone_once(git, url, target, limits, partial=partial)
        except GitFailed as failure:
            error = explain(failure, url)
            await to_thread.run_sync(lambda: shutil.rmtree(target, ignore_errors=True))
            pause = next(pauses, None)
            if isinstance(error, TransientError) and pause is not None:
                await anyio.sleep(pause)
            elif partial and type(error) is RepoError:  # nothing that we know: perhaps the server is confused by it
                partial = False
            else:
                raise error from failure


async def _clone_once(git: Git, url: str, target: Path, limits: RepoLimits, *, partial: bool) -> None:
    options = [_FILTER] if partial else ["--no-local"] if is_local(url) else []
    end: GitFailed | RepoTooLargeError | None = None

    async def watch() -> None:
        """Stop a clone that outgrows the limit or the disk; nothing tells its size beforehand."""
        nonlocal end
        while True:
            try:
                check_room(_pack_size(target), 0, target.parent, limits)
            except RepoTooLargeError as caught:
                end = caught
                tasks.cancel_scope.cancel()
            await anyio.sleep(_WATCH_SECONDS)

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(watch)
        try:
            await git.run("clone", "--quiet", "--no-checkout", *options, "--", url, str(target))
        except GitFailed as caught:
            end = caught
        tasks.cancel_scope.cancel()
    if end is not None:
        raise end


def _pack_size(target: Path) -> int:
    total = 0
    try:
        for entry in os.scandir(target / ".git" / "objects" / "pack"):
            total += entry.stat().st_size
    except FileNotFoundError:
        pass
    return total


async def _resolve(git: Git, url: str, revision: str | None) -> tuple[str, str | None]:
    """The commit, and what had to be fetched on top of a plain clone to get it."""
    if revision is None:
        if commit := await _commit(git, "HEAD"):
            return commit, None
        if not await git.run("for-each-ref", "--count=1"):
            raise EmptyRepoError(
                f"{without_credentials(url)} has no commits",
                hint="if it is a web page or an archive, name its git address or give the archive's full name",
            )
        raise await _no_revision(git, url, "HEAD")
    if revision.startswith("-"):
        raise await _no_revision(git, url, revision)
    for name in (f"refs/tags/{revision}", f"refs/remotes/origin/{revision}", revision):
        if commit := await _commit(git, name):
            return commit, None
    try:
        await git.run("fetch", "--quiet", "origin", revision)
    except GitFailed as failure:
        if isinstance(error := explain(failure, url), TransientError):
            raise error from failure
        raise await _no_revision(git, url, revision) from failure
    if commit := await _commit(git, "FETCH_HEAD"):
        return commit, revision
    raise await _no_revision(git, url, revision)


async def _commit(git: Git, name: str) -> str | None:
    try:
        return await git.line("rev-parse", "--verify", "--quiet", f"{name}^{{commit}}") or None
    except GitFailed:
        return None


async def _no_revision(git: Git, url: str, revision: str) -> RevisionNotFoundError:
    refs = (await git.run("for-each-ref", "--format=%(refname)", "--sort=-version:refname", "refs/")).decode(
        "utf-8", "replace"
    )
    names = [re.sub(r"^refs/(tags|remotes/origin)/", "", ref) for ref in refs.splitlines()]
    close = difflib.get_close_matches(revision, names, n=5, cutoff=0.5) or names[:5]
    hint = f"nearest: {', '.join(close)}" if close else "it has neither tags nor branches"
    return RevisionNotFoundError(f"{without_credentials(url)} has no tag, branch or commit {revision!r}", hint=hint)


async def _submodules(git: Git, url: str) -> tuple[str, ...]:
    """Fetch submodules; one that cannot be had is told of, for many projects build without."""
    if not os.path.lexists(git.folder / ".gitmodules"):  # noqa: ASYNC240
        return ()
    try:
        await git.run("submodule", "--quiet", "update", "--init", "--recursive")
    except GitFailed as failure:
        error = explain(failure, url)
        if isinstance(error, TransientError):
            raise error from failure
        return (f"not all submodules could be fetched: {error.message}",)
    return ()


def _forget_credentials(target: Path, url: str) -> None:
    """Take user names and passwords out of all settings of the clone, since foreign code will run beside it."""
    secret = urlsplit(url).netloc.rpartition("@")[0] if "://" in url else ""
    if not secret or without_credentials(url) == url:
        return
    for config in (target / ".git").rglob("config"):
        text = config.read_text("utf-8", "surrogateescape")
        config.write_text(text.replace(f"{secret}@", ""), "utf-8", "surrogateescape")


def _commands(url: str, commit: str, special: str | None) -> str:
    lines = [f"git clone --quiet --no-checkout {_FILTER} -- {shlex.quote(without_credentials(url))} ."]
    if special is not None:
        lines.append(f"git fetch --quiet origin {shlex.quote(special)}")
    lines.append(f"git checkout --quiet --detach {commit}")
    lines.append("git submodule --quiet update --init --recursive")
    return "\n".join(lines)
