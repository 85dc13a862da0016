"""What an overlay store's sessions may have left on the machine: processes, mounts, control groups, folders."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from specbuild.sandbox.cgroups import groups_anywhere, hierarchies
from specbuild.sandbox.limits import engine_is_gone

_SETTLED = 5.0
"""Seconds for which something may still be seen that is already on its way out, in other sessions of this machine."""


def leftovers(store: Path) -> list[str]:
    """What is left of sessions on `store` while none is open, in words; empty when nothing is."""
    deadline = time.monotonic() + _SETTLED
    while (
        found := [*_processes(store), *_mounts(store), *_groups(), *_folders(store)]
    ) and time.monotonic() < deadline:
        time.sleep(0.02)
    return found


def descendants(pid: int) -> list[int]:
    """All processes that descend from `pid`."""
    parents = dict(_parents())
    found: list[int] = []
    while new := [child for child, parent in parents.items() if parent in {pid, *found} and child not in found]:
        found += new
    return found


def stray_processes() -> list[int]:
    """Processes in a sandbox whose engine is gone: an overlay of ours in their mounts, no helper above them."""
    parents = dict(_parents())
    return [pid for pid in parents if _in_sandbox(pid) and not any(_is_helper(above) for above in _above(pid, parents))]


def _above(pid: int, parents: dict[int, int]) -> Iterator[int]:
    while (pid := parents.get(pid, 0)) > 1:
        yield pid


def _in_sandbox(pid: int) -> bool:
    """Whether the root of the process is an overlay of ours, as `specbuild.sandbox.overlay.stage` names its source."""
    fields = (line.split(" ") for line in _text(f"/proc/{pid}/mountinfo").splitlines())
    return any(line[4] == "/" and line[-3:-1] == ["overlay", "specbuild"] for line in fields if len(line) > 6)


def _is_helper(pid: int) -> bool:
    return "specbuild" in _text(f"/proc/{pid}/cmdline")


def _processes(store: Path) -> list[str]:
    engines = [pid for pid, _ in _parents() if pid != os.getpid() and _works_on(pid, store)]
    found = {*engines, *(child for pid in engines for child in descendants(pid)), *stray_processes()}
    return [f"process {pid}: {_text(f'/proc/{pid}/cmdline')!r}" for pid in found]


def _works_on(pid: int, store: Path) -> bool:
    """Whether it is a helper, which works in its store's folder, or an engine that was started for the store."""
    try:
        folder = Path(f"/proc/{pid}/cwd").readlink()
    except OSError:  # it has ended meanwhile
        return False
    return folder.is_relative_to(store) or f"\0{store}\0" in _text(f"/proc/{pid}/cmdline")


def _parents() -> Iterator[tuple[int, int]]:
    for folder in Path("/proc").iterdir():
        if folder.name.isdigit():
            after_name = _text(f"{folder}/stat").rpartition(")")[2].split()
            if after_name:
                yield int(folder.name), int(after_name[1])


def _mounts(store: Path) -> list[str]:
    found = _text("/proc/self/mountinfo").splitlines()
    return [f"mount {line}" for line in found if str(store) in line or " overlay specbuild " in line]


def _groups() -> list[str]:
    """Groups of this process, and those of an engine that is gone."""
    folders = {path for hierarchy in hierarchies() for path in groups_anywhere(hierarchy.root)}
    return [f"control group {path}" for path in sorted(folders) if _is_left(path.name.partition("@")[2])]


def _is_left(engine: str) -> bool:
    return engine_is_gone(engine) or engine.split("-")[1:2] == [str(os.getpid())]


def _folders(store: Path) -> list[str]:
    places = [place for part in ("live", "trash") for place in store.glob(f"*/{part}")]
    places += [store / "sessions", store / "leases"]
    return [f"folder {entry}" for place in places for entry in _entries(place)]


def _entries(folder: Path) -> list[Path]:
    try:
        return list(folder.iterdir())
    except FileNotFoundError:
        return []


def _text(path: str) -> str:
    try:
        return Path(path).read_text("utf-8", "replace")
    except OSError:
        return ""


def checker(store: Path) -> Callable[[], list[str]]:
    """`leftovers` of one store, for a `Trial`."""
    return lambda: leftovers(store)
