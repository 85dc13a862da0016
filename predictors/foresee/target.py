"""The interpreter and the platform that a Recipe installs for, and which wheels run there."""

from __future__ import annotations

import platform
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cache

from packaging.requirements import Requirement
from packaging.specifiers import InvalidSpecifier, SpecifierSet
from packaging.tags import Tag, compatible_tags, cpython_tags
from packaging.utils import InvalidWheelFilename, parse_wheel_filename

from specbuild.recipe import BaseRef
from specbuild.repo.index_page import IndexFile

GLIBC = {
    "stretch": 24,
    "buster": 28,
    "bullseye": 31,
    "bookworm": 36,
    "trixie": 41,
    "bionic": 27,
    "focal": 31,
    "jammy": 35,
    "noble": 39,
}
"""Release of Debian or Ubuntu → minor version of its glibc 2, as the package `libc6` of each has it."""

_OTHER_GLIBC = 28
"""Of releases that are not known: manylinux_2_28 is the newest that most projects build for."""

_LEGACY = {17: "manylinux2014", 12: "manylinux2010", 5: "manylinux1"}
"""Names that some minor versions of glibc 2 had before PEP 600."""

_LATEST_PATCH = 99
"""A bare minor version stands for some late patch release."""


@dataclass(frozen=True, slots=True)
class Target:
    """An interpreter on a platform."""

    python: str
    """Minor version: `3.11`."""
    glibc: int
    """Minor version of glibc 2."""
    machine: str = "x86_64"
    """As the kernel names it."""

    @classmethod
    def of(cls, base: BaseRef) -> Target | None:
        """That of a base; None if its interpreter is not known."""
        parts = (base.python or "").split(".")
        if len(parts) < 2:
            return None
        return cls(".".join(parts[:2]), GLIBC.get(base.release or "", _OTHER_GLIBC), platform.machine())

    @property
    def version(self) -> tuple[int, int]:
        """Of the interpreter."""
        major, minor = self.python.split(".")
        return int(major), int(minor)

    def runs(self, wheel: IndexFile) -> bool:
        """Whether the interpreter takes a wheel."""
        try:
            tags = parse_wheel_filename(wheel.name)[3]
        except InvalidWheelFilename:
            return False
        return not tags.isdisjoint(_tags(self))

    def allowed_by(self, requires_python: str) -> bool:
        """Whether a specifier of interpreters admits this one; one that makes no sense admits all, as for uv."""
        try:
            return _admits(requires_python, f"{self.python}.{_LATEST_PATCH}")
        except InvalidSpecifier:
            return True

    def applies(self, requirement: Requirement, extras: Iterable[str] = ()) -> bool:
        """Whether a requirement's marker holds here, with one of the extras or none."""
        if requirement.marker is None:
            return True
        environment = {
            "python_version": self.python,
            "python_full_version": f"{self.python}.{_LATEST_PATCH}",
            "implementation_name": "cpython",
            "implementation_version": f"{self.python}.{_LATEST_PATCH}",
            "platform_python_implementation": "CPython",
            "os_name": "posix",
            "sys_platform": "linux",
            "platform_system": "Linux",
            "platform_machine": self.machine,
        }
        marker = requirement.marker
        try:
            return any(marker.evaluate({**environment, "extra": extra}) for extra in ("", *extras))
        except ValueError:  # it compares what cannot be compared
            return True


@cache
def _admits(requires_python: str, version: str) -> bool:
    return SpecifierSet(requires_python).contains(version, prereleases=True)


@cache
def _tags(target: Target) -> frozenset[Tag]:
    platforms = list(_platforms(target))
    interpreter = "cp" + target.python.replace(".", "")
    return frozenset(cpython_tags(target.version, platforms=platforms)) | frozenset(
        compatible_tags(target.version, interpreter, platforms)
    )


def _platforms(target: Target) -> Iterator[str]:
    """PEP 600: whatever was built for an older glibc 2, down to 2.5."""
    for minor in range(target.glibc, 4, -1):
        yield f"manylinux_2_{minor}_{target.machine}"
        if minor in _LEGACY:
            yield f"{_LEGACY[minor]}_{target.machine}"
    yield f"linux_{target.machine}"
