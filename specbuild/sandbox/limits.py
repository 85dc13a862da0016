"""Bounds on what a Sandbox uses: control groups of any version, and rlimits where there are none to be had.

A Controller is found once; it makes a Group for each Command. A process enters a Group by writing "0" into each of
its `join_files` before it executes anything else and while it has one thread. All calls are short and synchronous,
and may come from any thread.

    controller = detect()
    group = controller.create(f"{session}.{sandbox}", limits)
    ...
    group.kill()
    group.remove()

What each version offers is in the kernel's Documentation/admin-guide/cgroup-v2.rst and cgroup-v1/{memory,pids}.rst.
"""

from __future__ import annotations

import contextlib
import errno
import os
import resource
import signal
import subprocess
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from specbuild.errors import SandboxError
from specbuild.sandbox.cgroups import PARENT, Hierarchy, groups_anywhere, hierarchies, pass_on, v2_parent
from specbuild.sandbox.contract import End, Limits

_V2_CONTROLLERS = frozenset({"memory", "pids", "cpu"})
_V1_ROLES = frozenset({"memory", "pids", "cpu", "cpuacct", "freezer"})
CORE = "core"
"""The role of the v2 hierarchy itself, which counts CPU, freezes and kills; left alone where v1 has all controllers,
since entering it costs more than all others together."""

_NAMES = {"memory": "memory", "pids": "processes", "cpu": "cpu"}
_PROBE = "probe"
"""The session of a group that `detect` makes."""

MOST_WEIGHT = 10_000
"""The largest `cpu.weight`."""

_GONE_WITHIN = 5.0
"""Seconds after which a group that is still busy is reported instead of waited for."""


@dataclass(frozen=True, slots=True)
class Usage:
    """What the processes of a Group have used so far; None where it is not counted."""

    cpu_seconds: float | None
    peak_memory_bytes: int | None
    """The highest sum of anonymous memory, page cache and kernel memory charged to the group."""


@dataclass(frozen=True, slots=True)
class Hit:
    """A limit that was run into."""

    end: End
    note: str


@dataclass(frozen=True, slots=True)
class Place:
    """A folder in a hierarchy: that of a group, or of the parent of groups."""

    version: int
    path: Path
    controllers: frozenset[str] = frozenset()
    """What the children of a v2 parent are to have."""


class Group:
    """The control group of one Sandbox: one folder in each hierarchy that has something to say about it."""

    def __init__(self, name: str, places: Mapping[str, Place], limits: Limits | None = None) -> None:
        self.name = name
        self._places = dict(places)
        self._limits = limits
        self._hastened = False

    @property
    def folders(self) -> tuple[Path, ...]:
        """Its folders; none where nothing can be controlled."""
        return tuple(dict.fromkeys(place.path for place in self._places.values()))

    @property
    def join_files(self) -> tuple[Path, ...]:
        """The files into which a process of one thread writes "0" to enter.

        In v1 its thread does: the kernel lets one thread move itself at once, while for whole processes it waits until
        no other process of the machine can be forking or ending (cgroup_procs_write_start, Linux 5.5), 10 to 80 ms.
        """
        places = dict.fromkeys(self._places.values())
        return tuple(place.path / _pick(place, "tasks", "cgroup.procs") for place in places)

    def usage(self) -> Usage:
        """What has been used so far, processes that have ended included."""
        return Usage(self._cpu_seconds(), self._peak_memory())

    def hit(self) -> Hit | None:
        """The limit that was run into, if one was.

        A process that was killed or could not be made does not have to bring its Command down: ask only about
        Commands that failed.
        """
        memory, pids = self._places.get("memory"), self._places.get("pids")
        if memory and _counter(memory.path / _pick(memory, "memory.oom_control", "memory.events"), "oom_kill"):
            allowed = self._limits and self._limits.memory_bytes
            bound = f"the limit of {allowed / (1 << 20):,.0f} MiB" if allowed else "a limit above it"
            return Hit(End.OUT_OF_MEMORY, f"the kernel killed a process because memory ran into {bound}")
        if pids and _counter(pids.path / "pids.events", "max"):
            allowed = self._limits and self._limits.processes
            bound = f"the limit of {allowed:,}" if allowed else "a limit above it"
            return Hit(End.OUT_OF_PROCESSES, f"a process or thread could not be made: their number ran into {bound}")
        return None

    def set_cpu_weight(self, weight: int) -> None:
        """Change the share of a busy CPU: 1 to 10,000, 100 by default; not once hastened. Raises SandboxError."""
        place = self._places.get("cpu")
        if place and not self._hastened:
            _set(*_share(place, weight))

    def hasten(self) -> None:
        """Give it the largest share of a busy CPU for good, because it is to end: dying takes time on a CPU as well.

        With the least share beside Sandboxes that keep all cores busy, killed processes were there for 20 seconds more.
        """
        self._hastened = True
        if place := self._places.get("cpu"):
            _try_set(*_share(place, MOST_WEIGHT))

    def freeze(self) -> None:
        """Stop all processes where they are. Raises SandboxError where that cannot be done."""
        self._set_frozen(True)

    def thaw(self) -> None:
        """Let frozen processes go on."""
        self._set_frozen(False)

    def pids(self) -> frozenset[int]:
        """The processes in it, as numbered in this process's namespace."""
        return frozenset(pid for folder in self.folders for pid in _members(folder / "cgroup.procs"))

    def kill(self) -> None:
        """SIGKILL every process in it, new ones too, and return when none is left or they are past killing."""
        deadline = time.monotonic() + _GONE_WITHIN
        self.hasten()
        core, freezer = self._places.get(CORE), self._places.get("freezer")
        while members := self.pids():
            if not (core and _try_set(core.path / "cgroup.kill", 1)):  # since Linux 5.14
                if freezer:  # a process that is being frozen makes no other
                    _try_set(freezer.path / "freezer.state", "FROZEN")
                _signal_all(members | self.pids())
            if freezer:  # a v1 frozen process does not die
                _try_set(freezer.path / "freezer.state", "THAWED")
            if time.monotonic() > deadline:
                return
            time.sleep(0.002)

    def remove(self) -> None:
        """Remove its folders. Raises SandboxError when a process is still in one after five seconds."""
        deadline = time.monotonic() + _GONE_WITHIN
        for folder in self.folders:
            while not _removed(folder):
                if time.monotonic() > deadline:
                    left = ", ".join(map(str, sorted(self.pids()))) or "none"
                    raise SandboxError(f"control group {folder} is still busy; processes in it: {left}")
                time.sleep(0.005)
            with contextlib.suppress(OSError):  # goes with the last of ours
                folder.parent.rmdir()

    def _cpu_seconds(self) -> float | None:
        if place := self._places.get("cpuacct"):
            nanoseconds = _number(place.path / "cpuacct.usage")
            return None if nanoseconds is None else nanoseconds / 1e9
        if place := self._places.get(CORE):
            return _counter(place.path / "cpu.stat", "usage_usec") / 1e6
        return None

    def _peak_memory(self) -> int | None:
        if place := self._places.get("memory"):
            return _number(place.path / _pick(place, "memory.max_usage_in_bytes", "memory.peak"))
        return None

    def _set_frozen(self, frozen: bool) -> None:
        if core := self._places.get(CORE):
            _set(core.path / "cgroup.freeze", int(frozen))
        elif freezer := self._places.get("freezer"):
            _set(freezer.path / "freezer.state", "FROZEN" if frozen else "THAWED")
        else:
            raise SandboxError("processes cannot be frozen here: no control group that could do it may be written to")


@dataclass(frozen=True, slots=True)
class Controller:
    """What can be controlled on this machine, and why the rest cannot."""

    places: Mapping[str, Place] = field(default_factory=dict[str, Place])
    reasons: Mapping[str, str] = field(default_factory=dict[str, str])
    """Why not, by what cannot be bounded: `memory`, `processes`, `cpu`."""

    def controls(self, what: str) -> bool:
        """Whether `memory`, `processes` or `cpu` is bounded."""
        return what not in self.reasons

    def create(self, name: str, limits: Limits) -> Group:
        """A Group named `SESSION.ANYTHING`, so that `leftovers` can tell whose it was. Raises SandboxError."""
        folder = f"{name}@{_engine()}"
        places = {
            role: Place(place.version, place.path / folder, place.controllers) for role, place in self.places.items()
        }
        group = Group(name, places, limits)
        try:
            for place in dict.fromkeys(places.values()):
                _make(place)
            _apply(group, places, limits)
        except OSError as error:
            group.remove()
            raise SandboxError(f"control group {name} could not be made: {error}") from error
        except SandboxError:
            group.remove()
            raise
        return group


def detect(found: tuple[Hierarchy, ...] | None = None) -> Controller:
    """Find out, by making a group and entering it, what can be controlled. Never raises for want of rights."""
    places: dict[str, Place] = {}
    reasons = dict.fromkeys(_NAMES.values(), "no control group hierarchy for it is mounted")
    for hierarchy in hierarchies() if found is None else found:
        more, why = _look_v2(hierarchy) if hierarchy.version == 2 else _look_v1(hierarchy)
        places |= more
        if why:
            reasons |= {name: why for role, name in _NAMES.items() if _concerns(hierarchy, role) and role not in places}
    if places.keys() >= _V1_ROLES and all(places[role].version == 1 for role in _V1_ROLES):
        places.pop(CORE, None)
    controller = Controller(places, {name: reasons[name] for role, name in _NAMES.items() if role not in places})
    problem = _prove(controller)
    return controller if problem is None else Controller(reasons=dict.fromkeys(_NAMES.values(), problem))


def cpu_shares(weight: int) -> int:
    """The v1 `cpu.shares` of a v2 `cpu.weight`: both are proportions, with defaults 1024 and 100.

    The kernel's own conversion, `sched_weight_from_cgroup` in kernel/sched/sched.h. The older one of runc and crun
    (1 + (shares - 2) * 9999 / 262142) maps default 100 to 2597 and so would favour Sandboxes over everything else.
    """
    return max(2, round(weight * 1024 / 100))


def rlimits(limits: Limits) -> dict[int, tuple[int, int]]:
    """What `setrlimit` can do in place of a Controller: soft and hard limit by `resource.RLIMIT_*`.

    Disk space is not among it: the size of one file says little, and sparse files are larger than what they take.

    They count for each process, not for the Sandbox. RLIMIT_DATA and not RLIMIT_AS, because programs such as the JVM
    reserve far more address space than they use. RLIMIT_NPROC counts all processes of the user id in its namespace.
    """
    bounds = {
        resource.RLIMIT_CORE: 0,
        resource.RLIMIT_DATA: limits.memory_bytes,
        resource.RLIMIT_NPROC: limits.processes,
    }
    return {what: _within_hard(what, bound) for what, bound in bounds.items() if bound is not None}


def leftovers(alive: Callable[[str], bool]) -> list[Group]:
    """Groups of sessions that are not alive, or whose engine is gone, in whatever place they made them."""
    folders: dict[str, dict[str, Place]] = {}
    for hierarchy in hierarchies():
        for path in groups_anywhere(hierarchy.root):
            roles = hierarchy.controllers & _V1_ROLES or {CORE}
            places = folders.setdefault(path.name, {})
            places |= {role if hierarchy.version == 1 else CORE: Place(hierarchy.version, path) for role in roles}
    return [Group(name.partition("@")[0], places) for name, places in folders.items() if not _in_use(name, alive)]


def _in_use(name: str, alive: Callable[[str], bool]) -> bool:
    label, _, engine = name.partition("@")
    session = label.partition(".")[0]
    return not engine_is_gone(engine) and (session == _PROBE or alive(session))


def _engine() -> str:
    """Names this process for all time: its pid namespace, its number there, and when it began (proc_pid_stat(5))."""
    return f"{_pid_namespace()}-{os.getpid()}-{_began(os.getpid())}"


def engine_is_gone(engine: str) -> bool:
    """Whether the process that made a group is known to have ended: not for those of other pid namespaces."""
    namespace, _, process = engine.partition("-")
    pid, _, began = process.partition("-")
    return namespace == _pid_namespace() and _began(int(pid)) != began


def _pid_namespace() -> str:
    return str(Path("/proc/self/ns/pid").stat().st_ino)


def _began(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[19]
    except (FileNotFoundError, ProcessLookupError):
        return ""


def _look_v1(hierarchy: Hierarchy) -> tuple[dict[str, Place], str]:
    if not (os.access(hierarchy.own, os.W_OK) and os.access(hierarchy.own / "cgroup.procs", os.W_OK)):
        return {}, f"{hierarchy.own} may not be written to; control groups v1 need root"
    place = Place(1, hierarchy.own / PARENT)
    return dict.fromkeys(hierarchy.controllers & _V1_ROLES, place), ""


def _look_v2(hierarchy: Hierarchy) -> tuple[dict[str, Place], str]:
    try:
        base, given, why = v2_parent(hierarchy, _V2_CONTROLLERS)
    except OSError as error:
        advice = "systemd-run --user --scope -p Delegate=yes COMMAND gives you one"
        return {}, f"{error}; {advice}" if os.geteuid() else str(error)
    place = Place(2, base / PARENT, given)
    return dict.fromkeys([CORE, *given], place), why


def _concerns(hierarchy: Hierarchy, role: str) -> bool:
    """Whether that hierarchy is where `role` is controlled, or ought to be."""
    if hierarchy.version == 1:
        return role in hierarchy.controllers
    return role in (hierarchy.root / "cgroup.controllers").read_text().split()


def _prove(controller: Controller) -> str | None:
    """Why no process can enter a group of this Controller, or None when one could."""
    try:
        group = controller.create(f"{_PROBE}.{time.monotonic_ns()}", Limits(memory_bytes=64 << 20))
    except SandboxError as error:
        return error.message
    try:
        files = [str(file) for file in group.join_files]
        enter = subprocess.run(
            ["/bin/sh", "-c", 'for file; do echo 0 > "$file" || exit 1; done', "sh", *files],
            capture_output=True,
            text=True,
            check=False,
            timeout=30,
        )
        return None if enter.returncode == 0 else f"a process cannot enter a control group: {enter.stderr.strip()}"
    finally:
        group.remove()


def _make(place: Place) -> None:
    """Make the folder, and its parent, which others remove when it is empty."""
    for attempt in range(100):
        with contextlib.suppress(FileExistsError):
            place.path.parent.mkdir()
        try:
            if place.version == 2:
                pass_on(place.path.parent, place.controllers)
            place.path.mkdir()
            return
        except OSError as error:  # ENODEV: the parent is being removed at this moment
            if attempt == 99 or error.errno not in {errno.ENOENT, errno.ENODEV}:
                raise


def _apply(group: Group, places: Mapping[str, Place], limits: Limits) -> None:
    if (memory := places.get("memory")) and limits.memory_bytes is not None:
        if memory.version == 2:
            _set(memory.path / "memory.max", limits.memory_bytes)
            _try_set(memory.path / "memory.swap.max", 0)  # absent in kernels without swap
        else:
            _set(memory.path / "memory.limit_in_bytes", limits.memory_bytes)
            _try_set(memory.path / "memory.memsw.limit_in_bytes", limits.memory_bytes)  # with swapaccount only
    if (pids := places.get("pids")) and limits.processes is not None:
        _set(pids.path / "pids.max", limits.processes)
    group.set_cpu_weight(limits.cpu_weight)


def _pick(place: Place, v1: str, v2: str) -> str:
    return v1 if place.version == 1 else v2


def _set(file: Path, value: object) -> None:
    try:
        file.write_text(str(value))
    except OSError as error:
        raise SandboxError(f"{value} could not be written to {file}: {error.strerror or error}") from error


def _share(place: Place, weight: int) -> tuple[Path, int]:
    """The file that says how large the share of a busy CPU is, and what to write into it."""
    if place.version == 2:
        return place.path / "cpu.weight", weight
    return place.path / "cpu.shares", cpu_shares(weight)


def _try_set(file: Path, value: object) -> bool:
    try:
        file.write_text(str(value))
    except OSError:
        return False
    return True


def _number(file: Path) -> int | None:
    try:
        return int(file.read_text())
    except (OSError, ValueError):
        return None


def _counter(file: Path, key: str) -> int:
    """The number after `key` in a flat keyed file; 0 where the kernel does not have it."""
    with contextlib.suppress(OSError):
        for line in file.read_text().splitlines():
            name, _, value = line.partition(" ")
            if name == key:
                return int(value)
    return 0


def _members(file: Path) -> list[int]:
    try:
        return [int(pid) for pid in file.read_text().split()]
    except OSError:
        return []


def _signal_all(pids: frozenset[int]) -> None:
    for pid in pids - {0}:  # 0 is a process of an outer namespace
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)


def _removed(folder: Path) -> bool:
    """Remove a group and the groups in it; whether it is gone. The files in it are the kernel's and go with it."""
    with contextlib.suppress(OSError):
        folder.rmdir()
        return True
    try:
        for inner in sorted((path for path in folder.rglob("*") if path.is_dir()), reverse=True):
            inner.rmdir()
        folder.rmdir()
    except FileNotFoundError:
        return True
    except OSError:
        return False
    return True


def _within_hard(what: int, bound: int) -> tuple[int, int]:
    hard = resource.getrlimit(what)[1]
    bound = bound if hard == resource.RLIM_INFINITY else min(bound, hard)
    return bound, bound
