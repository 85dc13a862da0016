"""Where this machine keeps its control groups: v2, v1, or v1 beside a v2 without controllers (hybrid).

Sources: cgroups(7), proc(5), and the kernel's Documentation/admin-guide/cgroup-v2.rst.
"""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

PARENT = "specbuild"
"""Every group of ours is a child of a group with this name."""

ENGINE = "specbuild-engine"
"""Where the processes of a delegated v2 group move to: a group with processes cannot pass controllers on."""


@dataclass(frozen=True, slots=True)
class Hierarchy:
    """One mounted tree of control groups."""

    version: int
    """1 or 2."""
    root: Path
    """Where it is mounted."""
    own: Path
    """The folder of the group that this process is in."""
    controllers: frozenset[str] = frozenset()
    """What a v1 hierarchy controls; empty for v2, where each group has its own `cgroup.controllers`."""


def hierarchies(proc: Path = Path("/proc")) -> tuple[Hierarchy, ...]:
    """The hierarchies that this process sees and has a place in."""
    paths = dict(_own_paths((proc / "self/cgroup").read_text()))
    found: list[Hierarchy] = []
    for root, mount, kind, options in _cgroup_mounts((proc / "self/mountinfo").read_text()):
        controllers = frozenset[str]() if kind == "cgroup2" else frozenset(options) & frozenset(paths)
        name = "" if kind == "cgroup2" else next(iter(controllers), None)
        if name is None or name not in paths:
            continue
        own = _below(Path(mount), root, paths[name])
        if own is not None and own.is_dir():
            found.append(Hierarchy(2 if kind == "cgroup2" else 1, Path(mount), own, controllers))
    return tuple(found)


def _own_paths(text: str) -> Iterator[tuple[str, str]]:
    """Controller (empty for v2) and path of each line of /proc/self/cgroup."""
    for line in text.splitlines():
        _, controllers, path = line.split(":", 2)
        for controller in controllers.split(","):
            yield controller, path


def _cgroup_mounts(mountinfo: str) -> Iterator[tuple[str, str, str, list[str]]]:
    """Root within the hierarchy, mount point, filesystem type and super options of each cgroup mount."""
    for line in mountinfo.splitlines():
        left, _, right = line.partition(" - ")
        kind, _, options = right.split(" ", 2)
        if kind in {"cgroup", "cgroup2"}:
            root, mount = left.split(" ")[3:5]
            yield _unescape(root), _unescape(mount), kind, options.split(",")


def _unescape(text: str) -> str:
    return re.sub(r"\\([0-7]{3})", lambda match: chr(int(match[1], 8)), text)


def _below(mount: Path, root: str, path: str) -> Path | None:
    """The folder of group `path` in a mount that shows the hierarchy from `root`; None when it lies outside of it."""
    relative = os.path.relpath(path, root)
    return None if relative.startswith("..") else (mount / relative)


def v2_parent(hierarchy: Hierarchy, wanted: frozenset[str]) -> tuple[Path, frozenset[str], str]:
    """A v2 group under which ours can be made, the controllers it gives to them, and why it gives no more.

    It is the nearest ancestor that can pass controllers on, so that whatever bounds this process bounds ours too.
    Raises OSError when none may be written to.
    """
    reason = "no control group above this process may be written to"
    fallback: Path | None = None
    for base in _upwards(hierarchy):
        if not _writable(base):
            break
        fallback = fallback or base
        try:
            given = pass_on(base, wanted)
        except OSError as error:
            reason = f"{base} cannot pass controllers on: {error.strerror or error}"
            continue
        if given:
            missing = wanted - given
            return base, given, f"{base} does not have {', '.join(sorted(missing))}" if missing else ""
        reason = f"{base} has no controllers to pass on"
    if fallback is None:
        raise PermissionError(reason)
    return fallback, frozenset(), reason


def _upwards(hierarchy: Hierarchy) -> Iterator[Path]:
    """The own group and its ancestors up to the mount."""
    yield hierarchy.own
    for base in hierarchy.own.parents:
        if not base.is_relative_to(hierarchy.root):
            return
        yield base


def _writable(base: Path) -> bool:
    return os.access(base, os.W_OK) and os.access(base / "cgroup.procs", os.W_OK)


def pass_on(base: Path, wanted: frozenset[str]) -> frozenset[str]:
    """Give `wanted` controllers, as far as the v2 group has them, to its children; those that they then have.

    Raises OSError when the kernel refuses: EBUSY for a group that has processes of its own.
    """
    possible = wanted & frozenset((base / "cgroup.controllers").read_text().split())
    control = base / "cgroup.subtree_control"
    missing = possible - frozenset(control.read_text().split())
    if missing:
        request = " ".join(f"+{name}" for name in sorted(missing))
        try:
            control.write_text(request)
        except OSError:
            if not _delegated(base):
                raise
            _step_aside(base)
            control.write_text(request)
    return possible


def _delegated(base: Path) -> bool:
    """Whether somebody gave this group to us to do with as we like.

    systemd marks such groups with an extended attribute (systemd.resource-control(5), Delegate=) and, for ordinary
    users, gives them away; the root of a cgroup namespace, unlike the real root, has a `cgroup.type`.
    """
    for name in ("user.delegate", "trusted.delegate"):
        with contextlib.suppress(OSError):
            if os.getxattr(base, name) == b"1":
                return True
    info = base.stat()
    at_namespace_root = base.parent.stat().st_dev != info.st_dev and (base / "cgroup.type").exists()
    return at_namespace_root or (os.geteuid() != 0 and info.st_uid == os.geteuid())


def _step_aside(base: Path) -> None:
    """Move the processes of a delegated group into a child of it, as its delegate is meant to do."""
    aside = base / ENGINE
    aside.mkdir(exist_ok=True)
    for pid in (base / "cgroup.procs").read_text().split():
        with contextlib.suppress(ProcessLookupError):
            (aside / "cgroup.procs").write_text(pid)


def groups_anywhere(root: Path) -> Iterator[Path]:
    """Our groups below a mount, wherever earlier sessions made them."""
    for folder, names, _ in os.walk(root, onerror=None):
        if Path(folder).name == PARENT:
            yield from (Path(folder) / name for name in names)
            names.clear()
