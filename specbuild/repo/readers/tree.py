"""A bounded view of a source tree: its file list, and text that is safe to read."""

from __future__ import annotations

import fnmatch
import os
import stat
import time
from collections.abc import Iterator
from functools import cached_property
from pathlib import Path

from specbuild.repo.facts import Evidence, Fact

MAX_FILES = 50_000
"""Files listed at most. The walk is breadth first, so that what is left out lies deepest."""
MAX_WALK_SECONDS = 10.0
MAX_TEXT_BYTES = 2 * 1024 * 1024
"""The largest manifest that is read; real ones, locks apart, stay below a tenth of it."""
MAX_WARNINGS = 100
EVIDENCE_WIDTH = 200

SKIPPED_FOLDERS = frozenset(
    {
        ".git", ".hg", ".svn", ".bzr", ".tox", ".nox", ".venv", "venv", ".eggs", "node_modules", "bower_components",
        "__pycache__", ".mypy_cache", ".pytest_cache", ".ruff_cache", ".hypothesis", "site-packages", ".cache",
    }
)  # fmt: skip


class Tree:
    """The files of a Repo, read at most once each, never through a link that leaves the tree."""

    def __init__(self, root: Path, *, max_files: int = MAX_FILES) -> None:
        self.root = root
        self.warnings: list[Fact[str]] = []
        self._real_root = os.path.realpath(root)
        self._max_files = max_files
        self._texts: dict[str, str | None] = {}

    @cached_property
    def files(self) -> tuple[str, ...]:
        """Relative POSIX paths of the regular files (and of links to such inside the tree), shallow ones first."""
        found: list[str] = []
        deadline = time.monotonic() + MAX_WALK_SECONDS
        for path in self._walk():
            if len(found) >= self._max_files or time.monotonic() > deadline:
                self.warn("", f"the tree is very large: only its first {len(found)} files were looked at")
                break
            found.append(path)
        return tuple(found)

    @cached_property
    def _file_set(self) -> frozenset[str]:
        return frozenset(self.files)

    @cached_property
    def folders(self) -> frozenset[str]:
        """Relative paths of all folders that hold a listed file."""
        found: set[str] = set()
        for path in self.files:
            parent = path.rpartition("/")[0]
            while parent and parent not in found:
                found.add(parent)
                parent = parent.rpartition("/")[0]
        return frozenset(found)

    def _walk(self) -> Iterator[str]:
        level = [""]
        while level:
            deeper: list[str] = []
            for folder in level:
                for name, path, kind in self._entries(folder):
                    if kind == "folder" and name not in SKIPPED_FOLDERS:
                        deeper.append(path)
                    elif kind == "file":
                        yield path
            level = deeper

    def _entries(self, folder: str) -> list[tuple[str, str, str]]:
        """Name, relative path and kind of what a folder holds, by name; folders that cannot be read are empty."""
        found: list[tuple[str, str, str]] = []
        try:
            with os.scandir(self.root / folder) as entries:
                for entry in entries:
                    if not _is_printable(entry.name):
                        continue
                    path = f"{folder}/{entry.name}" if folder else entry.name
                    if entry.is_dir(follow_symlinks=False):
                        found.append((entry.name, path, "folder"))
                    elif entry.is_file(follow_symlinks=False) or (entry.is_symlink() and self._is_inside_file(path)):
                        found.append((entry.name, path, "file"))
        except (OSError, ValueError) as error:
            self.warn(folder, f"cannot be listed: {error}")
        return sorted(found)

    def _is_inside_file(self, path: str) -> bool:
        try:
            real = os.path.realpath(self.root / path, strict=True)
            return real.startswith(self._real_root + os.sep) and stat.S_ISREG(os.lstat(real).st_mode)
        except (OSError, ValueError):
            return False

    def has(self, path: str) -> bool:
        """Whether that regular file is there."""
        return path in self._file_set

    def match(self, *patterns: str) -> tuple[str, ...]:
        """Listed files whose whole path matches one of the shell patterns (`*` crosses slashes)."""
        return tuple(path for path in self.files if any(fnmatch.fnmatchcase(path, pattern) for pattern in patterns))

    def top(self, *patterns: str) -> tuple[str, ...]:
        """Listed files at the root whose name matches one of the shell patterns, without regard to case."""
        names = (path for path in self.files if "/" not in path)
        return tuple(name for name in names if any(fnmatch.fnmatchcase(name.lower(), p.lower()) for p in patterns))

    def text(self, path: str, *, limit: int = MAX_TEXT_BYTES) -> str | None:
        """The decoded text of a listed file; None, with a warning, for what is absent, binary or too large."""
        if not self.has(path):
            return None
        if path not in self._texts:
            self._texts[path] = self._read(path, limit)
        return self._texts[path]

    def lines(self, path: str) -> tuple[str, ...]:
        """The lines of a listed file, without their ends; nothing if it cannot be read."""
        return tuple((self.text(path) or "").split("\n"))

    def _read(self, path: str, limit: int) -> str | None:
        try:
            data = self._bytes(path, limit)
        except (OSError, ValueError) as error:
            self.warn(path, f"cannot be read: {error}")
            return None
        if len(data) > limit:
            self.warn(path, f"is larger than {limit} bytes and was not read")
            return None
        return self._decode(path, data)

    def _bytes(self, path: str, limit: int) -> bytes:
        real = os.path.realpath(self.root / path, strict=True)
        if not real.startswith(self._real_root + os.sep):
            raise ValueError("a link leads out of the tree")
        # Non-blocking, because the file may have become a FIFO since it was listed.
        descriptor = os.open(real, os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC)
        with os.fdopen(descriptor, "rb") as file:
            if not stat.S_ISREG(os.fstat(descriptor).st_mode):
                raise ValueError("not a regular file")
            return file.read(limit + 1)

    def _decode(self, path: str, data: bytes) -> str | None:
        encoding = "utf-16" if data[:2] in (b"\xff\xfe", b"\xfe\xff") else "utf-8-sig"
        try:
            text = data.decode(encoding)
        except UnicodeDecodeError:
            text = data.decode("latin-1")
        if "\0" in text:
            self.warn(path, "is binary and was not read")
            return None
        return text.replace("\r\n", "\n").replace("\r", "\n")

    def evidence(self, file: str, line: int | None = None) -> Evidence:
        """Evidence for a line of a file, counted from 1, with the line's text."""
        if line is None:
            return Evidence(file=file)
        lines = self.lines(file)
        text = lines[line - 1].strip() if 0 < line <= len(lines) else ""
        return Evidence(file=file, line=line, text=shorten(text))

    def warn(self, file: str, message: str, line: int | None = None) -> None:
        """Record that something could not be read, and why."""
        # Not `self.evidence`: that would read the very file that cannot be read.
        warning = Fact(value=shorten(clean(message)), evidence=Evidence(file=file, line=line))
        if len(self.warnings) < MAX_WARNINGS and warning not in self.warnings:
            self.warnings.append(warning)


def clean(text: str) -> str:
    """The text with lone surrogates, which no JSON or UTF-8 file can hold, replaced."""
    return text.encode("utf-8", "replace").decode()


def shorten(text: str, width: int = EVIDENCE_WIDTH) -> str:
    """The text, cut to `width` characters."""
    return text if len(text) <= width else text[: width - 1] + "…"


def _is_printable(name: str) -> bool:
    """Whether a file's name is Unicode text: others cannot stand in JSON."""
    try:
        name.encode()
    except UnicodeEncodeError:
        return False
    return True
