"""A package index in memory, for tests of what depends on the releases of distributions."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime

from packaging.utils import canonicalize_name

from specbuild.knowledge.releases import Release, releases_of
from specbuild.repo.index_page import IndexFile

LONG_AGO = datetime(2015, 1, 1, tzinfo=UTC)
"""When files came, unless something else is said."""


def wheel(
    name: str,
    version: str,
    tag: str = "py3-none-any",
    *,
    uploaded: datetime | None = LONG_AGO,
    requires_python: str = "",
    yanked: str | None = None,
) -> IndexFile:
    """A wheel, whose metadata the index may have."""
    file = f"{name.replace('-', '_')}-{version}-{tag}.whl"
    return IndexFile(file, f"memory:{file}", uploaded=uploaded, requires_python=requires_python, yanked=yanked)


def sdist(name: str, version: str, *, uploaded: datetime | None = LONG_AGO, requires_python: str = "") -> IndexFile:
    """A source distribution."""
    file = f"{name}-{version}.tar.gz"
    return IndexFile(file, f"memory:{file}", uploaded=uploaded, requires_python=requires_python, metadata=False)


class FakeReleases:
    """Answers from what it was made with, and keeps what it was asked."""

    def __init__(self, files: Iterable[IndexFile] = (), requires: Mapping[str, Sequence[str]] | None = None) -> None:
        """`requires` are the requirements of wheels, by the beginning of their file's name: `flask-3`."""
        self._files = tuple(files)
        self._requires = requires or {}
        self.asked: list[str] = []
        """Projects, and names of files of which the metadata were asked for."""

    async def releases(self, project: str) -> Sequence[Release]:
        """Those of the files whose name begins with the project's."""
        self.asked.append(project)
        return releases_of(self._files, canonicalize_name(project))

    async def metadata(self, file: IndexFile) -> str | None:
        """The requirements of a wheel."""
        self.asked.append(file.name)
        found = next((texts for start, texts in self._requires.items() if file.name.startswith(start)), None)
        if found is None:
            return None
        return "Metadata-Version: 2.1\n" + "".join(f"Requires-Dist: {text}\n" for text in found) + "\nWords.\n"
