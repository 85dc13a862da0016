"""Which file of the user's package index an installed distribution can be of, and its hash."""

from __future__ import annotations

from collections.abc import Sequence

from packaging.utils import InvalidWheelFilename, parse_wheel_filename
from packaging.version import InvalidVersion, Version

from specbuild.knowledge.releases import Release
from specbuild.knowledge.wheels import PackageIndex
from specbuild.repo.index_page import IndexFile


class IndexArtifacts:
    """See `export.lock.Artifacts`."""

    def __init__(self, index: PackageIndex) -> None:
        self._index = index

    async def hashes(self, name: str, version: str, tags: Sequence[str]) -> tuple[str, ...]:
        """`sha256:…` of the wheel with these tags, else of the source distribution that one was built from."""
        try:
            wanted = Version(version)
        except InvalidVersion:
            return ()
        release = next((found for found in await self._index.releases(name) if found.version == wanted), None)
        files = _files(release, frozenset(tags)) if release else []
        return tuple(f"sha256:{file.hashes['sha256']}" for file in files if "sha256" in file.hashes)


def _files(release: Release, tags: frozenset[str]) -> list[IndexFile]:
    """The tags of a wheel that was built on this machine name no platform that an index would take."""
    wheels = [wheel for wheel in release.wheels if tags and _tags(wheel.name) == tags]
    return wheels or ([release.sdist] if release.sdist else [])


def _tags(name: str) -> frozenset[str]:
    try:
        _, _, _, tags = parse_wheel_filename(name)
    except InvalidWheelFilename:
        return frozenset()
    return frozenset(map(str, tags))
