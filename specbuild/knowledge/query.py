"""Questions to the knowledge that lies on this machine. Nothing here fetches: see `refresh`."""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Generator, Iterable, Sequence
from contextlib import closing, contextmanager
from pathlib import Path

import anyio.to_thread
from packaging.utils import canonicalize_name

from specbuild.errors import StoreError
from specbuild.knowledge.index_file import SCHEMA_VERSION
from specbuild.knowledge.kinds import BuildNeeds, Ecosystem, Owner, Package, PathKind
from specbuild.knowledge.projects import ECOSYSTEM_SECTIONS, source_names
from specbuild.knowledge.ranking import rank

FOLDER = "knowledge"
"""Of the cache folder."""

_TOOLS = frozenset({"devel", "interpreters", "oldlibs"})
"""Sections of what builds; the last has packages that were renamed, as `pkg-config` was."""

_PACKAGING = re.compile(r"debhelper|dh-|dpkg-|libdebhelper|cdbs|quilt|po-debconf")
"""Debian's own tools for packaging."""

_VERSIONED = re.compile(r"-?\d+(?:\.\d+)*")
_MINOR = re.compile(r"(?<=\d)\.\d+(?:\.\d+)*")
"""Versions in names of packages: `libclang-14-dev`, `libboost1.74-dev`; `python3.11-venv` has one after the major."""

_NEEDS = """
SELECT name, section, section LIKE '%rust' AND EXISTS (
    SELECT 1 FROM paths WHERE kind = ? AND paths.name = packages.name AND package = packages.id)
FROM packages WHERE name IN ({marks})
"""
"""Cargo and rustc stand in the section of the crates: a tool is what has a program of its own name."""

_Row = tuple[str, str, str, int, int]
"""Package, folder, section, uses, own uses."""

_OWNERS = """
SELECT packages.name, folders.path, packages.section, coalesce(max(packages.uses, sources.uses), packages.uses),
    packages.uses
FROM paths JOIN folders ON folders.id = folder JOIN packages ON packages.id = package
LEFT JOIN sources ON sources.id = packages.source WHERE kind = ? AND paths.name = ?
"""
_SIBLINGS = """
SELECT DISTINCT other.name FROM paths AS mine JOIN paths AS other ON other.package = mine.package
WHERE mine.kind = ? AND mine.name = ? AND other.kind = ?
"""
_COUSINS = """
SELECT DISTINCT other.name FROM paths AS mine JOIN packages AS own ON own.id = mine.package
JOIN packages AS beside ON beside.source = own.source JOIN paths AS other ON other.package = beside.id
WHERE mine.kind = ? AND mine.name = ? AND other.kind = ?
"""
_PACKAGES = """
SELECT packages.name, section, coalesce(sources.name, ''), coalesce(version, '')
FROM packages LEFT JOIN sources ON sources.id = packages.source WHERE packages.name IN ({marks})
"""
_EMPTY = """
SELECT id, name FROM packages WHERE name IN ({marks}) AND id NOT IN (
    SELECT package FROM paths WHERE package IN (SELECT id FROM packages WHERE name IN ({marks})))
"""
_DEVELOPMENT = """
SELECT packages.name FROM sources JOIN packages ON packages.source = sources.id
WHERE {sources} AND (packages.section LIKE '%libdevel' OR packages.name GLOB 'default-lib*-dev')
ORDER BY packages.uses DESC, length(packages.name)
"""
_NAMED = _DEVELOPMENT.format(sources="sources.name = ?")
_NUMBERED = _DEVELOPMENT.format(sources="(sources.name GLOB ? || '-[0-9]*' OR sources.name GLOB ? || '[0-9]*')")
"""Of several versions that are packaged beside each other, as PostgreSQL's and Lua's are."""


class Knowledge:
    """Answers from the indexes below `cache_dir`; empty answers for releases whose index is not there.

    Every call opens the file anew (0.2 ms), so that a refreshed index is seen, from whatever thread. The `a…` twins do
    the same in a worker thread. Raises StoreError for an index that cannot be read.
    """

    def __init__(self, cache_dir: Path, *, architecture: str) -> None:
        """`architecture` is Debian's name of it (`amd64`)."""
        self._folder = cache_dir / FOLDER
        self._architecture = architecture

    def index(self, release: str) -> Path:
        """Where the index of a release lies, or would lie."""
        return index_path(self._folder, release, self._architecture)

    def has(self, release: str) -> bool:
        """Whether there are answers for that release."""
        return self.index(release).is_file()

    def owner(self, kind: PathKind, name: str, *, release: str) -> tuple[Owner, ...]:
        """The packages that own what is asked for, likeliest first. `PathKind` says how each kind is named."""
        key, parents = _key(kind, name)
        with self._open(release) as db:
            rows = db.execute(_OWNERS, (kind.value, key)).fetchall() if db else []
            if db and not rows:
                rows = _like(db, kind, key)
        return rank(
            kind,
            [
                Owner(package, folder.removesuffix(parents), section, uses, own_uses)
                for package, folder, section, uses, own_uses in rows
                if folder.endswith(parents)
            ],
        )

    def build_needs(self, ecosystem: Ecosystem, project: str, *, release: str) -> BuildNeeds | None:
        """What Debian builds an upstream project with; None if it has no source package of it."""
        with self._open(release) as db:
            if db is None:
                return None
            for name in self._source_names(db, ecosystem, project):
                row = db.execute(
                    "SELECT name, version, needs, homepage FROM sources WHERE name = ?", (name,)
                ).fetchone()
                if row:
                    needs = tuple(row[2].split())
                    return BuildNeeds(row[0], row[1], needs, *_sorted_needs(db, needs), row[3])
        return None

    def development(self, library: str, *, release: str) -> tuple[str, ...]:
        """The packages to build against a library that is known only by its name (`OpenSSL`, `HDF5`, `libxslt`).

        Likeliest first, by how many of these agree: pkg-config modules, libraries and source packages of that name.
        Debian's choice among several (`boost-defaults`) is such a source package.
        """
        name = library.lower()
        spellings = tuple(dict.fromkeys((name, f"lib{name}", name.removeprefix("lib"), f"{name}-defaults")))
        votes: dict[str, float] = {}
        with self._open(release) as db:
            for spelling in spellings if db else ():
                by_source = [row[0] for row in db.execute(_NAMED, (spelling,))] if db else []
                by_module = [o.package for o in self.owner(PathKind.PKG_CONFIG, spelling, release=release)]
                by_link = [o.package for o in self.owner(PathKind.LINK_LIBRARY, spelling, release=release)]
                for found in (by_source, by_module, by_link):
                    for place, package in enumerate(found):
                        votes[package] = votes.get(package, 0.0) + 1 / (1 + place)
            if db and not votes:
                numbered = db.execute(_NUMBERED, (name, name)).fetchall()
                votes = {row[0]: 1 / (1 + place) for place, row in reversed([*enumerate(numbered)])}
        return tuple(sorted(votes, key=lambda package: (-votes[package], len(package), package)))

    def packages(self, names: Iterable[str], *, release: str) -> dict[str, Package]:
        """Those of the names that are packages of the release."""
        asked = tuple(dict.fromkeys(names))
        with self._open(release) as db:
            query = _PACKAGES.format(marks=",".join("?" * len(asked)))
            return {row[0]: Package(*row) for row in db.execute(query, asked)} if db else {}

    def empty(self, names: Iterable[str], *, release: str) -> frozenset[str]:
        """Those of the names that are packages without any file that is kept here: they only depend on others.

        That is what becomes of a name when a package is renamed. Reads all paths: 80 ms.
        """
        asked = tuple(dict.fromkeys(names))
        with self._open(release) as db:
            query = _EMPTY.format(marks=",".join("?" * len(asked)))
            return frozenset(row[1] for row in db.execute(query, (*asked, *asked))) if db and asked else frozenset()

    def version(self, source: str, *, release: str) -> str:
        """The upstream version of a source package, as far as Debian's tells it (`1.85.0`); empty if there is none."""
        with self._open(release) as db:
            row = db.execute("SELECT version FROM sources WHERE name = ?", (source,)).fetchone() if db else None
        found = re.match(r"(?:\d+:)?(\d+(?:\.\d+)*)", row[0]) if row else None
        return found[1] if found else ""

    def default(self, package: str, *, release: str) -> str:
        """The package by which Debian names its choice among versions (`libclang-dev` for `libclang-14-dev`).

        It is of a source like `llvm-defaults`; where there is no such package, the answer is `package` itself.
        """
        plain = [form.sub("", package, count=1) for form in (_MINOR, _VERSIONED)]
        plain.append(f"default-{package.removeprefix('openjdk-').lstrip('0123456789-')}")
        found = self.packages(plain, release=release)
        return next((name for name in plain if name in found and _is_choice(found[name].source)), package)

    def distributions(self, import_name: str, *, release: str) -> tuple[str, ...]:
        """The Python distributions (normalised names) that bring an import, likeliest first.

        From the metadata folders and modules of the same Debian package; of an unknown `a.b`, what brings `a`.
        """
        while import_name:
            found = self._siblings(PathKind.PYTHON_MODULE, import_name, PathKind.DISTRIBUTION, release)
            if found:
                return found
            import_name = import_name.rpartition(".")[0]
        return ()

    def imports(self, distribution: str, *, release: str) -> tuple[str, ...]:
        """The import names that a distribution brings, likeliest first."""
        name = canonicalize_name(distribution)
        return self._siblings(PathKind.DISTRIBUTION, name, PathKind.PYTHON_MODULE, release)

    def python_package(self, distribution: str, *, release: str) -> tuple[str, ...]:
        """The Debian packages of a Python distribution: by their metadata, then by Debian's own pydist data."""
        name = canonicalize_name(distribution)
        owners = [owner.package for owner in self.owner(PathKind.DISTRIBUTION, name, release=release)]
        with self._open(release) as db:
            rows = db.execute("SELECT package FROM pydist WHERE distribution = ?", (name,)).fetchall() if db else []
        return tuple(dict.fromkeys([*owners, *(row[0] for row in rows)]))

    async def adevelopment(self, library: str, *, release: str) -> tuple[str, ...]:
        """`development` in a worker thread."""
        return await anyio.to_thread.run_sync(lambda: self.development(library, release=release))

    async def aowner(self, kind: PathKind, name: str, *, release: str) -> tuple[Owner, ...]:
        """`owner` in a worker thread."""
        return await anyio.to_thread.run_sync(lambda: self.owner(kind, name, release=release))

    async def abuild_needs(self, ecosystem: Ecosystem, project: str, *, release: str) -> BuildNeeds | None:
        """`build_needs` in a worker thread."""
        return await anyio.to_thread.run_sync(lambda: self.build_needs(ecosystem, project, release=release))

    async def adistributions(self, import_name: str, *, release: str) -> tuple[str, ...]:
        """`distributions` in a worker thread."""
        return await anyio.to_thread.run_sync(lambda: self.distributions(import_name, release=release))

    async def aimports(self, distribution: str, *, release: str) -> tuple[str, ...]:
        """`imports` in a worker thread."""
        return await anyio.to_thread.run_sync(lambda: self.imports(distribution, release=release))

    def _source_names(self, db: sqlite3.Connection, ecosystem: Ecosystem, project: str) -> list[str]:
        """First what the index itself tells of the project, then what its name would be by the rules."""
        found: list[str] = []
        if ecosystem is Ecosystem.PYTHON:
            rows = db.execute(
                "SELECT sources.name FROM paths JOIN packages ON packages.id = package"
                " JOIN sources ON sources.id = packages.source WHERE kind = ? AND paths.name = ?"
                " ORDER BY sources.uses DESC",
                (PathKind.DISTRIBUTION.value, canonicalize_name(project)),
            )
            found += [row[0] for row in rows]
        elif ecosystem is Ecosystem.GO:
            rows = db.execute("SELECT name FROM sources WHERE go_path = ?", (project,))
            found += [row[0] for row in rows]
        return [*found, *source_names(ecosystem, project)]

    def _siblings(self, kind: PathKind, name: str, wanted: PathKind, release: str) -> tuple[str, ...]:
        """Names of one kind in the packages that have `name` of another: those that look like it first.

        Where such a package has none, others of its source may: `pkg_resources` is packaged beside `setuptools`.
        """
        asked = (kind.value, name, wanted.value)
        with self._open(release) as db:
            rows = (db.execute(_SIBLINGS, asked).fetchall() or db.execute(_COUSINS, asked).fetchall()) if db else []
        return tuple(sorted(dict.fromkeys(row[0] for row in rows), key=lambda other: _unlikeness(other, name)))

    @contextmanager
    def _open(self, release: str) -> Generator[sqlite3.Connection | None]:
        path = self.index(release)
        if not path.is_file():
            yield None
            return
        try:
            with closing(sqlite3.connect(f"{path.as_uri()}?mode=ro&immutable=1", uri=True)) as db:
                yield db
        except sqlite3.DatabaseError as error:
            raise StoreError(
                f"the package index {path} cannot be read: {error}", hint="remove that file: it will be made anew"
            ) from error


NOTHING = Knowledge(Path("/nonexistent"), architecture="none")
"""Has no index of any release."""


def _key(kind: PathKind, name: str) -> tuple[str, str]:
    """Under what a name is kept, and the folders of its own that must come before that: `openssl/ssl.h` has one."""
    match kind:
        case PathKind.HEADER:
            parts = [part for part in name.split("/") if part not in {"", ".", ".."}] or [name]
            return parts[-1], "".join(f"/{part}" for part in parts[:-1])
        case PathKind.PROGRAM:
            return name.rpartition("/")[2], ""
        case PathKind.CMAKE:
            return name.lower(), ""
        case PathKind.PERL_MODULE:
            return name.removesuffix(".pm").replace("::", "/"), ""
        case PathKind.DISTRIBUTION:
            return canonicalize_name(name), ""
        case _:
            return name, ""


def _like(db: sqlite3.Connection, kind: PathKind, name: str) -> list[_Row]:
    """Owners of what is named nearly so, where nothing is named exactly so.

    Of programs `name-1.16` and the like, which alternatives make into `name` (`aclocal`, `lua`); of shared libraries
    whatever version there is, of the file's name as well as of its stem (`enchant` → `libenchant-2.so.2`); of
    namespaces of introspection (`Gtk`) every version.
    """
    if kind is PathKind.PROGRAM:
        start, form = name, re.compile(re.escape(name) + r"-?\d[\d.]*")
    elif kind is PathKind.SHARED_LIBRARY and not re.search(r"\.so\.\d", name):
        stem = name.removeprefix("lib").removesuffix(".so")
        start, form = f"lib{stem}", re.compile(rf"lib{re.escape(stem)}(-\d[\d.]*)?\.so\.\d+")
    elif kind is PathKind.TYPELIB and "-" not in name:
        start, form = f"{name}-", re.compile(rf"{re.escape(name)}-\d+(?:\.\d+)*")
    else:
        return []
    query = "SELECT DISTINCT name FROM paths WHERE kind = ? AND name >= ? AND name < ?"
    names = [row[0] for row in db.execute(query, (kind.value, start, f"{start}:"))]
    fitting = [other for other in names if form.fullmatch(other)]
    return [row for other in fitting for row in db.execute(_OWNERS, (kind.value, other))]


def _sorted_needs(db: sqlite3.Connection, needs: Sequence[str]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Libraries and tools among the needs; virtual packages are neither."""
    marks = ",".join("?" * len(needs))
    rows = db.execute(_NEEDS.format(marks=marks), (PathKind.PROGRAM.value, *needs))
    found = {name: (section.rpartition("/")[2], program) for name, section, program in rows}
    libraries = {name for name, (section, _) in found.items() if _is_library(name, section)}
    tools = {name for name, (section, program) in found.items() if section in _TOOLS or program} - libraries
    return (
        tuple(name for name in needs if name in libraries),
        tuple(name for name in needs if name in tools and not _PACKAGING.match(name)),
    )


def _is_library(name: str, section: str) -> bool:
    if name.startswith("libpython") or _PACKAGING.match(name):
        return False
    return section == "libdevel" or (name.endswith("-dev") and section not in ECOSYSTEM_SECTIONS)


def _is_choice(source: str) -> bool:
    return source.endswith("-defaults") or source == "java-common"


def _unlikeness(name: str, other: str) -> tuple[bool, bool, bool, int, str]:
    """Small for names that look alike; private modules last."""
    plain, wanted = (re.sub(r"[^a-z0-9]", "", each.lower()) for each in (name, other))
    return name.startswith("_"), plain != wanted, plain not in wanted and wanted not in plain, len(name), name


def index_path(folder: Path, release: str, architecture: str) -> Path:
    """The version of the schema is part of the name: another release of SpecBuild makes its own."""
    return folder / f"debian-{release}-{architecture}.v{SCHEMA_VERSION}.sqlite"
