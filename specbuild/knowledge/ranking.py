"""Which of several owners of a path is meant."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence

from specbuild.knowledge.kinds import Owner, PathKind

_DEVELOPMENT = frozenset({PathKind.HEADER, PathKind.PKG_CONFIG, PathKind.LINK_LIBRARY, PathKind.CMAKE})
_ROOTS = {
    PathKind.HEADER: ("usr/include",),
    PathKind.PROGRAM: ("usr/bin", "bin", "usr/sbin", "sbin", "usr/games"),
    PathKind.SHARED_LIBRARY: ("usr/lib", "lib"),
    PathKind.LINK_LIBRARY: ("usr/lib", "lib"),
}
_HOMES = re.compile(
    r"usr/include/(?:c\+\+/\d+|python3\.\d+|ruby-[\d.]+)|usr/lib/(?:gcc/\d+|jvm/java-[^/]+|ruby)/include"
)
"""Where the toolchain of a language keeps its own headers: found without a folder, they are meant before all others."""
_JAVA = "usr/lib/jvm/"
"""Its headers come with the compiler, not in a package of their own."""
_VARIANTS = ("-dbg", "-dbgsym", "-doc", "-cross", "-examples", "-tests", "-debug")
_FOLDER = 3.0
"""What one folder of distance costs: as much as eight times the uses."""


def rank(kind: PathKind, owners: Sequence[Owner]) -> tuple[Owner, ...]:
    """The owners, likeliest first, each package once with the folder that speaks most for it."""
    found: dict[str, Owner] = {}
    at_home = any(_is_home(kind, owner) for owner in owners)
    for owner in sorted(owners, key=lambda owner: (at_home and _distance(kind, owner.folder) > 0, *_key(kind, owner))):
        found.setdefault(owner.package, owner)
    return tuple(found.values())


def weight(kind: PathKind, owner: Owner) -> float:
    """Nearness weighed against uses, in powers of two: one more is twice as likely."""
    return math.log2(1 + owner.uses) - _FOLDER * _distance(kind, owner.folder)


def fits(kind: PathKind, owner: Owner) -> bool:
    """Whether the package is of main, and of the role that brings such files: for headers, a development package."""
    return "/" not in owner.section and (_fits(kind, owner) or owner.folder.startswith(_JAVA))


def _key(kind: PathKind, owner: Owner) -> tuple[bool, bool, float, int, int, str]:
    """Main before other components, the right role before others, nearness weighed against uses, short names."""
    other, misfit = "/" in owner.section, not fits(kind, owner)
    return other, misfit, -weight(kind, owner), -owner.own_uses, len(owner.package), owner.package


def _is_home(kind: PathKind, owner: Owner) -> bool:
    return kind is PathKind.HEADER and _HOMES.fullmatch(owner.folder) is not None


def _fits(kind: PathKind, owner: Owner) -> bool:
    if owner.package.endswith(_VARIANTS) or "-cross" in owner.package:
        return False
    development = owner.package.endswith("-dev") or owner.section.endswith("libdevel")
    if kind in _DEVELOPMENT:
        return development
    return kind is not PathKind.SHARED_LIBRARY or not development


def _distance(kind: PathKind, folder: str) -> int:
    """How many folders lie between where compilers, linkers and shells look and what was asked for."""
    roots = _ROOTS.get(kind)
    if roots is None or folder in roots or (kind is PathKind.HEADER and _HOMES.fullmatch(folder)):
        return 0
    root = next((root for root in roots if folder.startswith(f"{root}/")), "usr")
    return folder.removeprefix(root).count("/")
