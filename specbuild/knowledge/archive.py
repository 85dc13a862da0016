"""Fetches a release's indexes from a Debian mirror, each checked against the Release file."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote

import anyio.to_thread

from specbuild.errors import DownloadError, IntegrityError, OversizeError, RequestRefusedError
from specbuild.http import Client
from specbuild.knowledge.index_file import open_text
from specbuild.knowledge.pydist import SOURCE, read_tarball, tarball_of
from specbuild.knowledge.release_file import Listed, ReleaseFile, read_release_file
from specbuild.knowledge.sources import SourcePackage, read_sources
from specbuild.urls import without_credentials

_COMPONENT = "main"
_GONE = frozenset({403, 404, 410})


@dataclass(frozen=True, slots=True)
class Fetched:
    """The indexes of a release, as files."""

    contents: tuple[Path, ...]
    sources: tuple[Path, ...]
    pydist: tuple[tuple[str, str], ...]
    """Distribution and Debian package."""


class Archive:
    """One release on one mirror."""

    def __init__(self, client: Client, mirror: str, release: str, architecture: str, *, suite: str = "") -> None:
        """`mirror` is the address of an archive, as in sources.list; `suite` another name of the release (`stable`)."""
        self._client = client
        self._mirror = mirror.rstrip("/")
        self._release = release
        self._suite = suite or release
        self._root = f"{self._mirror}/dists/{self._suite}"
        self._architecture = architecture

    async def release_file(self) -> ReleaseFile:
        """What the mirror has now. Raises DownloadError or TransientError."""
        try:
            answer = await self._client.get(f"{self._root}/InRelease")
        except RequestRefusedError as error:
            if error.status not in _GONE:
                raise
            answer = await self._client.get(f"{self._root}/Release")
        found = read_release_file(answer.body.decode("utf-8", errors="replace"))
        if self._suite != self._release and found.codename != self._release:
            raise DownloadError(f"{without_credentials(self._root)} is of {found.codename or '?'}, not {self._release}")
        return found

    def wanted(self, release: ReleaseFile) -> tuple[str, ...]:
        """The paths of the indexes that are read; that of all architectures is apart since bullseye."""
        names = (f"Contents-{self._architecture}", "Contents-all", "source/Sources")
        return tuple(path for name in names if any(release.find(path := f"{_COMPONENT}/{name}")))

    async def fetch(self, release: ReleaseFile, folder: Path) -> Fetched:
        """Download the indexes into `folder`: 60 MB. Raises DownloadError, IntegrityError or TransientError."""
        files = {path: await self._index(release, path, folder) for path in self.wanted(release)}
        contents = tuple(file for path, file in files.items() if "Contents" in path)
        sources = tuple(file for path, file in files.items() if "Sources" in path)
        if not contents or not sources:
            raise DownloadError(
                f"{without_credentials(self._root)} has no Contents or no Sources for {self._architecture}",
                hint="check `debian_mirror`: a partial mirror may leave them out",
            )
        return Fetched(contents, sources, await self._pydist(sources, folder))

    async def _index(self, release: ReleaseFile, path: str, folder: Path) -> Path:
        refused: DownloadError | None = None
        for listed, address in _addresses(release, path):
            target = folder / listed.path.replace("/", "_")
            try:
                await self._download(f"{self._root}/{address}", target, listed.sha256, listed.size)
            except (IntegrityError, OversizeError, RequestRefusedError) as error:
                # Mirrors in the midst of a sync have other content under the plain name; caches, an older one.
                refused = error if refused is None or isinstance(refused, RequestRefusedError) else refused
            else:
                return target
        raise refused or DownloadError(f"{without_credentials(self._root)} lists no {path}")

    async def _pydist(self, sources: tuple[Path, ...], folder: Path) -> tuple[tuple[str, str], ...]:
        """Debian's list of Python distributions; empty where the mirror has no source packages."""
        found = await anyio.to_thread.run_sync(_find_source, sources, SOURCE)
        name = tarball_of(found) if found else None
        if not found or not name:
            return ()
        target = folder / "pydist.tar"
        try:
            await self._download(f"{self._mirror}/{quote(found.directory)}/{quote(name)}", target, found.files[name])
        except RequestRefusedError:
            return ()
        return await anyio.to_thread.run_sync(read_tarball, target)

    async def _download(self, url: str, target: Path, sha256: str, size: int = 64 << 20) -> None:
        await self._client.download(url, target, hashes={"sha256": sha256}, max_bytes=size)


def _addresses(release: ReleaseFile, path: str) -> Iterator[tuple[Listed, str]]:
    for listed in release.find(path):
        for address in listed.addresses:
            yield listed, address


def _find_source(files: tuple[Path, ...], name: str) -> SourcePackage | None:
    for path in files:
        with open_text(path) as text:
            if found := next((each for each in read_sources(text) if each.name == name), None):
                return found
    return None
