"""The digest of a source tree, and of each of its files.

Walks on file names as the system gives them: names that are not UTF-8 appear with surrogate escapes.
"""

from __future__ import annotations

import hashlib
import os
import stat
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

LOCK_FILE = "specbuild.lock"
"""In the root of a tree: names the digest of the tree, and so is no part of it."""

EntryKind = Literal["file", "program", "link", "folder"]


@dataclass(frozen=True, slots=True)
class Entry:
    """One thing in a tree."""

    path: str
    """Relative to the root, `/` between the parts."""
    kind: EntryKind
    """`program` is a file that its owner may execute; `folder` is an empty one, since others show in their files."""
    content: str
    """sha256 of a file, target of a link, nothing for a folder."""


@dataclass(frozen=True, slots=True)
class Tree:
    """All entries of a source tree, `.git` and its lock left out."""

    entries: tuple[Entry, ...]

    @property
    def files(self) -> Mapping[str, str]:
        """Regular files: relative path → sha256."""
        return {entry.path: entry.content for entry in self.entries if entry.kind in {"file", "program"}}

    @property
    def digest(self) -> str:
        """sha256 over paths, kinds and contents, whatever the order, times, owners and the rest of the modes."""
        total = hashlib.sha256(b"specbuild tree 1\n")
        for entry in sorted(self.entries, key=lambda entry: os.fsencode(entry.path)):
            for part in (entry.kind, entry.path, entry.content):
                data = os.fsencode(part)
                total.update(b"%d:%s" % (len(data), data))
        return total.hexdigest()


def _no_tick() -> None: ...


def read_tree(root: Path, tick: Callable[[], None] = _no_tick) -> Tree:
    """Read the tree at `root`. `tick` is called before each entry and may raise to stop.

    Sockets, pipes and devices are no part of a tree and are passed over.
    """
    return Tree(tuple(_entries(os.fspath(root), tick)))


def hash_files(root: Path, paths: Iterable[str], tick: Callable[[], None] = _no_tick) -> dict[str, str]:
    """sha256 of those of `paths` (relative to `root`) that are regular files now."""
    found: dict[str, str] = {}
    for path in paths:
        tick()
        full = os.path.join(os.fspath(root), path)  # noqa: PTH118 - a Path is slow for so many, and loses bytes
        try:
            if stat.S_ISREG(os.lstat(full).st_mode):
                found[path] = hash_file(full)
        except FileNotFoundError:
            continue
    return found


def hash_file(path: str | Path) -> str:
    """sha256 of a file's content, in hexadecimal."""
    with open(path, "rb", buffering=0) as file:  # noqa: PTH123 - names with surrogates
        return hashlib.file_digest(file, "sha256").hexdigest()


def _entries(root: str, tick: Callable[[], None]) -> Iterator[Entry]:
    pending = [(root, "")]
    while pending:
        folder, prefix = pending.pop()
        with os.scandir(folder) as scan:
            children = [child for child in scan if child.name != ".git" and prefix + child.name != LOCK_FILE]
        if not children and prefix:
            yield Entry(prefix.rstrip("/"), "folder", "")
        for child in children:
            tick()
            if child.is_dir(follow_symlinks=False):
                pending.append((child.path, f"{prefix}{child.name}/"))
            elif entry := _leaf(child, prefix + child.name):
                yield entry


def _leaf(child: os.DirEntry[str], path: str) -> Entry | None:
    mode = child.stat(follow_symlinks=False).st_mode
    if stat.S_ISLNK(mode):
        return Entry(path, "link", os.readlink(child.path))  # noqa: PTH115 - names with surrogates
    if stat.S_ISREG(mode):
        return Entry(path, "program" if mode & stat.S_IXUSR else "file", hash_file(child.path))
    return None
