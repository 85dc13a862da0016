"""Releases of a Python distribution, put together from the files that an index lists."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime

from packaging.utils import canonicalize_name
from packaging.version import InvalidVersion, Version

from specbuild.repo.index_page import SDIST_SUFFIXES, IndexFile


@dataclass(frozen=True, slots=True)
class Release:
    """One version of a distribution, with its files."""

    version: Version
    wheels: tuple[IndexFile, ...] = ()
    sdist: IndexFile | None = None
    """The one that installers prefer."""

    @property
    def files(self) -> tuple[IndexFile, ...]:
        """All of them."""
        return self.wheels if self.sdist is None else (*self.wheels, self.sdist)

    @property
    def uploaded(self) -> datetime | None:
        """When the first of its files came; None where the index does not tell."""
        return min((file.uploaded for file in self.files if file.uploaded), default=None)

    @property
    def native(self) -> bool | None:
        """Whether it holds compiled code, as its wheels tell; None where it has none."""
        return any(not is_universal(wheel) for wheel in self.wheels) if self.wheels else None


def is_universal(wheel: IndexFile) -> bool:
    """Whether a wheel is for every platform and ABI."""
    return wheel.name.endswith("-none-any.whl")


def releases_of(files: Iterable[IndexFile], project: str) -> tuple[Release, ...]:
    """The releases of a project among the files of its page, newest first; versions from before PEP 440 are dropped."""
    name = canonicalize_name(project)
    wheels: dict[Version, list[IndexFile]] = {}
    sdists: dict[Version, list[IndexFile]] = {}
    for file in files:
        is_wheel = file.name.endswith(".whl")
        text = file.wheel_version(name) if is_wheel else file.version(name)
        try:
            version = Version(text or "")
        except InvalidVersion:
            continue
        (wheels if is_wheel else sdists).setdefault(version, []).append(file)
    return tuple(
        Release(version, tuple(wheels.get(version, ())), min(sdists.get(version, ()), key=_rank, default=None))
        for version in sorted({*wheels, *sdists}, reverse=True)
    )


def _rank(file: IndexFile) -> int:
    return next((at for at, end in enumerate(SDIST_SUFFIXES) if file.name.lower().endswith(end)), len(SDIST_SUFFIXES))
