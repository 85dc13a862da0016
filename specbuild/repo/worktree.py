"""What belongs to the source tree in a folder: by git where git knows it, else all but what tools leave behind."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from pathlib import Path

from anyio import to_thread

from specbuild.errors import RepoTooLargeError, RepoToolMissingError
from specbuild.repo.git import Git, GitFailed
from specbuild.repo.gitdir import GitDir, locate

JUNK = frozenset({
    ".cache", ".direnv", ".eggs", ".gradle", ".hypothesis", ".ipynb_checkpoints", ".mypy_cache", ".nox", ".pdm-build",
    ".pixi", ".pytest_cache", ".ruff_cache", ".tox", ".venv", "__pycache__", "__pypackages__", "node_modules",
})  # fmt: skip
"""Folders that tools make and that are no source. Any folder with a `pyvenv.cfg` is left out too."""

DEEPEST = 400
"""Folders within folders."""


@dataclass(slots=True)
class Listing:
    """Paths relative to the listed folder."""

    paths: list[str] = field(default_factory=list[str])
    """Files and links."""
    tracked: list[str] = field(default_factory=list[str])
    """Those that git tracks."""
    folders: list[str] = field(default_factory=list[str])
    """That are empty, or whose submodule is not there."""
    histories: list[tuple[str, GitDir]] = field(default_factory=list[tuple[str, GitDir]])
    """Work trees in it (empty for the folder itself) and their version control."""
    commit: str | None = None
    """HEAD, when git knows the folder."""
    left_out: list[str] = field(default_factory=list[str])
    notes: list[str] = field(default_factory=list[str])

    @property
    def summary(self) -> tuple[str, ...]:
        """Notes for people."""
        if not self.left_out:
            return tuple(self.notes)
        shown = ", ".join(sorted(self.left_out)[:8]) + (", …" if len(self.left_out) > 8 else "")
        return (*self.notes, f"left out of the copy, as no source: {shown}")

    def check_depth(self) -> None:
        """Raise RepoTooLargeError for paths on which other programs, Python's own `rmtree` among them, would fail."""
        for path in self.paths:
            _check_depth(path)


async def list_folder(folder: Path, scratch: Path, avoid: Path) -> Listing:
    """List the source tree in `folder`, passing over `avoid` (where the copy goes, should that lie inside)."""
    git = Git(folder, scratch)
    try:
        top = Path(await git.line("rev-parse", "--show-toplevel"))
    except GitFailed as failure:
        note = _why_no_git(folder, failure)
        return await _list_plain(folder, avoid, note)
    except RepoToolMissingError:
        if any((parent / ".git").exists() for parent in (folder, *folder.parents)):
            raise
        return await _list_plain(folder, avoid, "")
    listing = Listing(commit=await _head(git))
    await _list_git(git, "", listing, whole=top.samefile(folder))  # noqa: ASYNC240
    if avoid.is_relative_to(folder):
        listing.paths = [path for path in listing.paths if not (folder / path).is_relative_to(avoid)]
    if not top.samefile(folder):  # noqa: ASYNC240
        if not listing.paths:  # say, a checkout below a home that is itself under git and ignores it
            return await _list_plain(folder, avoid, "")
        listing.notes.append(f"only {folder.relative_to(top.resolve())} of {top} was copied, without its history")  # noqa: ASYNC240
    return listing


def _why_no_git(folder: Path, failure: GitFailed) -> str:
    if not os.path.lexists(folder / ".git"):
        return ""
    return f"its version control cannot be read and was left out: {failure.words.strip().splitlines()[0]}"


async def _head(git: Git) -> str | None:
    try:
        return await git.line("rev-parse", "--verify", "--quiet", "HEAD^{commit}")
    except GitFailed:
        return None


async def _list_git(git: Git, prefix: str, listing: Listing, *, whole: bool) -> None:
    """Add what git sees in one work tree, then what it sees in the work trees inside."""
    if whole:
        listing.histories.append((prefix.rstrip("/"), await locate(git)))
    inner: list[str] = []
    for record in await git.names("ls-files", "--cached", "--stage", "-z"):
        about, _, path = record.partition("\t")
        if about.startswith("160000 "):
            inner.append(path)
        else:
            listing.paths.append(prefix + path)
            listing.tracked.append(prefix + path)
    for path in await git.names("ls-files", "--others", "--exclude-standard", "-z"):
        if junk := _junk_in(git.folder, path):
            listing.left_out.append(prefix + junk)
        elif path.endswith("/"):
            inner.append(path.rstrip("/"))
        else:
            listing.paths.append(prefix + path)
    listing.left_out = list(dict.fromkeys(listing.left_out))
    listing.paths = list(dict.fromkeys(listing.paths))  # a conflict has several entries
    listing.tracked = list(dict.fromkeys(listing.tracked))
    for path in dict.fromkeys(inner):
        folder = git.folder / path
        if os.path.lexists(folder / ".git") and not folder.is_symlink():  # noqa: ASYNC240
            await _list_git(Git(folder, git.scratch, git.config), f"{prefix}{path}/", listing, whole=True)
        else:
            listing.folders.append(prefix + path)


def _junk_in(root: Path, path: str) -> str | None:
    """The first folder on the way to `path` that is junk."""
    parts = path.split("/")
    for end in range(1, len(parts)):
        folder = "/".join(parts[:end])
        if parts[end - 1] in JUNK or os.path.lexists(root / folder / "pyvenv.cfg"):
            return folder
    return None


async def _list_plain(folder: Path, avoid: Path, note: str) -> Listing:
    listing = Listing(notes=[note] if note else [])
    await to_thread.run_sync(_walk, folder, avoid, listing)
    return listing


def _check_depth(path: str) -> None:
    if path.count("/") > DEEPEST:
        raise RepoTooLargeError(f"the source tree is nested deeper than {DEEPEST} folders: {path[:80]}…")


def _walk(root: Path, avoid: Path, listing: Listing) -> None:
    for folder, folders, files in os.walk(root):
        prefix = "" if folder == str(root) else f"{os.path.relpath(folder, root)}/"
        _check_depth(prefix)
        links = [name for name in folders if os.path.islink(f"{folder}/{name}")]  # noqa: PTH114
        junk = [name for name in folders if name not in links and _is_junk(f"{folder}/{name}", name)]
        listing.left_out.extend(prefix + name for name in junk)
        skipped = {*links, *junk, ".git", *(n for n in folders if f"{folder}/{n}" == str(avoid))}
        folders[:] = [name for name in folders if name not in skipped]
        listing.paths.extend(prefix + name for name in (*files, *links) if name != ".git")
        if not folders and not files and not links and prefix:
            listing.folders.append(prefix.rstrip("/"))


def _is_junk(path: str, name: str) -> bool:
    return name in JUNK or os.path.lexists(f"{path}/pyvenv.cfg")
