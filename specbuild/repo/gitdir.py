"""Which parts of a `.git` folder belong into a private copy, and which settings may go with them.

Foreign code will run beside the copy. So neither hooks nor filters, helpers or credentials are taken along, only what
tells the history: objects, references, the index, and the plain facts of the settings.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from specbuild.repo.git import Git, GitFailed
from specbuild.urls import without_credentials

_OWN = ("HEAD", "index")
_COMMON = ("packed-refs", "shallow", "refs", "objects", "reftable", "info/exclude", "info/attributes")
_KEPT_CORE = frozenset({
    "core.repositoryformatversion", "core.filemode", "core.symlinks", "core.ignorecase", "core.precomposeunicode",
    "core.autocrlf", "core.eol", "core.sparsecheckout", "core.sparsecheckoutcone",
})  # fmt: skip
_KEPT = {
    "remote": frozenset({"url", "fetch", "tagopt", "promisor", "partialclonefilter"}),
    "branch": frozenset({"remote", "merge"}),
    "submodule": frozenset({"url", "active"}),
    "extensions": frozenset({"objectformat", "refstorage", "partialclone", "compatobjectformat", "noop"}),
}


@dataclass(frozen=True, slots=True)
class GitDir:
    """Where a work tree's version control lies."""

    own: Path
    """HEAD and index: `.git`, or a folder in another repository for a linked work tree or submodule."""
    common: Path
    """Objects, references and settings."""


@dataclass(frozen=True, slots=True)
class CopyOf:
    """A file to be copied, and to where."""

    source: str
    target: str
    """Relative to the root of the copy."""


async def locate(git: Git) -> GitDir:
    """The GitDir of the folder that git runs in. Raises GitFailed."""
    own = Path(await git.line("rev-parse", "--absolute-git-dir"))
    common = git.folder / await git.line("rev-parse", "--git-common-dir")
    return GitDir(own, common)


def history_files(gitdir: GitDir, target: str) -> Iterator[CopyOf]:
    """The files of the history that make up the `.git` folder `target` of the copy."""
    for name in (*_OWN, "info/sparse-checkout"):
        if (gitdir.own / name).is_file():
            yield CopyOf(str(gitdir.own / name), f"{target}/{name}")
    for shared in gitdir.own.glob("sharedindex.*"):  # of a split index
        yield CopyOf(str(shared), f"{target}/{shared.name}")
    for name in _COMMON:
        yield from _below(gitdir.common / name, f"{target}/{name}")
    seen = {gitdir.common / "objects"}
    for store in _alternates(gitdir.common / "objects", seen):
        yield from _objects_only(store, f"{target}/objects")


async def plain_settings(git: Git, gitdir: GitDir) -> str:
    """The text of the settings file for the copy."""
    entries = await _settings(git, gitdir.common / "config")
    if (gitdir.own / "config.worktree").is_file():
        entries += await _settings(git, gitdir.own / "config.worktree")
    lines = ["[core]\n\tbare = false\n"]
    for key, value in entries:
        section, _, rest = key.partition(".")
        subsection, _, name = rest.rpartition(".")
        if key in _KEPT_CORE or name in _KEPT.get(section, ()):
            lines.append(_setting(section, subsection, name, without_credentials(value) if name == "url" else value))
    return "".join(lines)


async def _settings(git: Git, path: Path) -> list[tuple[str, str]]:
    try:
        records = await git.names("config", "--file", str(path), "--list", "-z")
    except GitFailed:
        return []
    return [(key, value) for key, _, value in (record.partition("\n") for record in records)]


def _setting(section: str, subsection: str, name: str, value: str) -> str:
    head = f'[{section} "{_escaped(subsection)}"]' if subsection else f"[{section}]"
    return f'{head}\n\t{name} = "{_escaped(value)}"\n'


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")


def _below(path: Path, target: str) -> Iterator[CopyOf]:
    if path.is_file() and not path.is_symlink():
        yield CopyOf(str(path), target)
    for folder, folders, files in os.walk(path):
        folders.sort()
        inside = os.path.relpath(folder, path)
        for name in files:
            if name.startswith("tmp_") or name.endswith(".lock") or name == "alternates":
                continue
            relative = name if inside == "." else f"{inside}/{name}"
            yield CopyOf(f"{folder}/{name}", f"{target}/{relative}")


def _alternates(objects: Path, seen: set[Path]) -> Iterator[Path]:
    """The object stores that this one borrows from, and those that they borrow from in turn."""
    try:
        lines = (objects / "info" / "alternates").read_text("utf-8", "surrogateescape").splitlines()
    except FileNotFoundError:
        return
    for line in lines:
        store = Path(os.path.normpath(objects / line))
        if line and not line.startswith("#") and store.is_dir() and store not in seen:
            seen.add(store)
            yield store
            yield from _alternates(store, seen)


def _objects_only(store: Path, target: str) -> Iterator[CopyOf]:
    """Packs and loose objects of a borrowed store; its indexes over several packs would not fit the union."""
    for each in _below(store, target):
        relative = each.target.removeprefix(target + "/")
        if not relative.startswith("info/") and "multi-pack-index" not in relative:
            yield each
