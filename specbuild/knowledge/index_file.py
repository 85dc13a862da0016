"""The SQLite file of one release: written once from the archive's indexes, then only read."""

from __future__ import annotations

import gzip
import lzma
import sqlite3
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from io import TextIOWrapper
from pathlib import Path
from typing import BinaryIO, cast

from specbuild.knowledge.contents import candidates
from specbuild.knowledge.kinds import PathKind
from specbuild.knowledge.paths import classify
from specbuild.knowledge.sources import SourcePackage, read_sources

SCHEMA_VERSION = 1

_SCHEMA = """
CREATE TABLE meta (key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE sources (
    id INTEGER PRIMARY KEY, name TEXT NOT NULL, version TEXT NOT NULL, needs TEXT NOT NULL, homepage TEXT NOT NULL,
    go_path TEXT NOT NULL, uses INTEGER NOT NULL DEFAULT 0);
CREATE TABLE packages (
    id INTEGER PRIMARY KEY, name TEXT NOT NULL, section TEXT NOT NULL, source INTEGER, uses INTEGER NOT NULL DEFAULT 0);
CREATE TABLE folders (id INTEGER PRIMARY KEY, path TEXT NOT NULL);
CREATE TABLE pydist (
    distribution TEXT NOT NULL, package TEXT NOT NULL, PRIMARY KEY (distribution, package)) WITHOUT ROWID;
CREATE TEMP TABLE raw (kind INTEGER, name TEXT, folder INTEGER, package INTEGER);
CREATE TABLE paths (
    kind INTEGER NOT NULL, name TEXT NOT NULL, folder INTEGER NOT NULL, package INTEGER NOT NULL,
    PRIMARY KEY (kind, name, folder, package)) WITHOUT ROWID;
"""

_FINISH = f"""
INSERT OR IGNORE INTO paths SELECT kind, name, folder, package FROM raw ORDER BY kind, name, folder, package;
DELETE FROM paths WHERE kind = {PathKind.PYTHON_MODULE.value} AND instr(name, '.') AND EXISTS (
    SELECT 1 FROM paths AS top WHERE top.kind = {PathKind.PYTHON_MODULE.value} AND top.package = paths.package
    AND top.name = substr(paths.name, 1, instr(paths.name, '.') - 1));
DELETE FROM folders WHERE id NOT IN (SELECT folder FROM paths);
CREATE UNIQUE INDEX packages_by_name ON packages (name);
CREATE UNIQUE INDEX sources_by_name ON sources (name);
CREATE INDEX sources_by_go_path ON sources (go_path) WHERE go_path <> '';
CREATE INDEX packages_by_source ON packages (source);
CREATE INDEX names_of_packages ON paths (package) WHERE kind IN (
    {PathKind.PYTHON_MODULE.value}, {PathKind.DISTRIBUTION.value});
ANALYZE;
"""  # noqa: S608 - numbers of our own
"""Second-level modules stand for parts of namespaces only: the first level is not the same package's own."""


def write_index(
    target: Path,
    contents: Sequence[Path],
    sources: Sequence[Path],
    *,
    pydist: Iterable[tuple[str, str]] = (),
    meta: Mapping[str, str] | None = None,
    interrupt: Callable[[], None] = lambda: None,
) -> None:
    """Write the index at `target`, which must not exist, from files as the archive has them (`.xz`, `.gz`, or plain).

    `pydist` are pairs of distribution and Debian package; `meta` is kept with it. Takes some ten
    seconds of one core and 170 MB; `interrupt` is called all the while and may raise to end it.
    """
    with closing(sqlite3.connect(target, isolation_level=None)) as db:
        db.executescript("PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF; PRAGMA cache_size = -65536;")
        db.executescript(_SCHEMA)
        db.execute("BEGIN")
        _Writer(db, interrupt).write(contents, sources)
        db.executemany("INSERT OR IGNORE INTO pydist VALUES (?, ?)", pydist)
        values = {**(meta or {}), "schema_version": str(SCHEMA_VERSION)}
        db.executemany("INSERT INTO meta VALUES (?, ?)", values.items())
        db.execute("COMMIT")
        db.executescript(f"BEGIN; {_FINISH} COMMIT; VACUUM;")


_TURNS = 10_000
"""Paths between two looks at whether to go on: some 50 ms."""


class _Writer:
    """Numbers packages and folders while it reads."""

    def __init__(self, db: sqlite3.Connection, interrupt: Callable[[], None]) -> None:
        self._db = db
        self._interrupt = interrupt
        self._packages: dict[str, int] = {}
        self._folders: dict[str, int] = {}
        self._sections: dict[str, str] = {}

    def write(self, contents: Sequence[Path], sources: Sequence[Path]) -> None:
        for path in contents:
            with open_packed(path) as stream:
                self._db.executemany("INSERT INTO raw VALUES (?, ?, ?, ?)", self._paths(stream))
        found: dict[str, SourcePackage] = {}
        for path in sources:
            with open_text(path) as text:
                found |= {each.name: each for each in read_sources(text)}
        self._write_sources(list(found.values()))
        self._db.executemany("INSERT INTO folders VALUES (?, ?)", ((n, path) for path, n in self._folders.items()))

    def _paths(self, stream: BinaryIO) -> Iterator[tuple[int, str, int, int]]:
        for turn, (path, owners) in enumerate(candidates(stream)):
            if turn % _TURNS == 0:
                self._interrupt()
            for kept in classify(path):
                folder = self._folders.setdefault(kept.folder, len(self._folders))
                for owner in owners:
                    section, _, package = owner.rpartition("/")
                    if section != "debian-installer":
                        yield kept.kind.value, kept.name, folder, self._package(package, section)

    def _package(self, name: str, section: str) -> int:
        self._sections.setdefault(name, section)
        return self._packages.setdefault(name, len(self._packages))

    def _write_sources(self, found: Sequence[SourcePackage]) -> None:
        of_package: dict[str, int] = {}
        for number, source in enumerate(found):
            for package, section in source.binaries.items():
                self._package(package, section)
                of_package[package] = number
        uses: dict[str, int] = {}
        of_source = [0] * len(found)
        for number, source in enumerate(found):
            for name in source.needs:
                uses[name] = uses.get(name, 0) + 1
            for used in {of_package[name] for name in source.needs if name in of_package} - {number}:
                of_source[used] += 1
        self._db.executemany(
            "INSERT INTO sources VALUES (?, ?, ?, ?, ?, ?, ?)",
            (
                (n, s.name, s.version, " ".join(s.needs), s.homepage, s.go_path, of_source[n])
                for n, s in enumerate(found)
            ),
        )
        self._db.executemany(
            "INSERT INTO packages VALUES (?, ?, ?, ?, ?)",
            (
                (n, name, self._sections[name], of_package.get(name), uses.get(name, 0))
                for name, n in self._packages.items()
            ),
        )


def open_packed(path: Path) -> BinaryIO:
    """A stream of what is packed in `path`, unpacked while it is read."""
    if path.suffix == ".gz":
        return cast("BinaryIO", gzip.open(path, "rb"))
    if path.suffix == ".xz":
        return cast("BinaryIO", lzma.open(path, "rb"))
    return path.open("rb")


def open_text(path: Path) -> TextIOWrapper:
    """The same as text, to be closed by whoever asks."""
    return TextIOWrapper(open_packed(path), "utf-8", errors="replace")
