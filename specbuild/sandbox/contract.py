"""What every sandbox backend does, whatever it is made of.

A Backend keeps immutable Checkpoints and forks each of them into any number of writable Sandboxes, which run
Commands and are then frozen into a new Checkpoint or discarded. `specbuild.testing.conformance` holds the semantics
as tests:

- Only files survive between two Commands; when the first process of a Command ends, all its processes are gone.
- A Checkpoint never changes. Forking one copies nothing.
- Leaving the `async with` of a fork, by whatever way, leaves no process, mount, cgroup or directory of it.
- What the user's command did is data (`Completed`); a failure of the machinery is a `SandboxError`.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Protocol, runtime_checkable

LineSink = Callable[[str], None]
"""Called with each line of output as it comes, without its line end; must return at once."""


class End(StrEnum):
    """Why a Command ended."""

    EXITED = "exited"
    SIGNALLED = "signalled"
    TIMEOUT = "timeout"
    SILENT = "silent"
    OUT_OF_MEMORY = "out of memory"
    OUT_OF_PROCESSES = "out of processes"
    OUT_OF_DISK = "out of disk"


@dataclass(frozen=True, slots=True)
class Limits:
    """What a Sandbox may use; None means no bound of ours."""

    memory_bytes: int | None = None
    processes: int | None = 4096
    disk_bytes: int | None = None
    """Bytes that may be written to the Sandbox's own layer; checked while Commands run."""
    cpu_weight: int = 100
    """1 to 10,000 as in cgroup v2's `cpu.weight`: the share of a busy CPU relative to other Sandboxes."""


@dataclass(frozen=True, slots=True)
class Bind:
    """A host path shown in the Sandbox for one Command; nothing of it enters the layer.

    Targets lie under `/dev/specbuild/` (a fresh tmpfs of each Command), so that no mount point is left in the files.
    """

    source: Path
    target: str
    writable: bool = False


@dataclass(frozen=True, slots=True)
class Command:
    """One program run to its end. Frozen; the environment is exactly `env`, nothing is inherited."""

    argv: Sequence[str]
    cwd: str = "/"
    env: Mapping[str, str] = field(default_factory=dict[str, str])
    stdin: bytes = b""
    network: bool = True
    timeout: float | None = None
    """Seconds of wall time after which everything in the Command is killed."""
    silence: float | None = None
    """Seconds without any output after which everything in the Command is killed."""
    binds: Sequence[Bind] = ()


@dataclass(frozen=True, slots=True)
class Completed:
    """How a Command ended. Never raised, whatever the command did."""

    end: End
    exit_code: int
    """The exit status, or 128 + signal number."""
    seconds: float
    cpu_seconds: float
    peak_memory_bytes: int | None
    written_bytes: int
    """Growth of the Sandbox's layer, in bytes."""
    tail: str
    """The last lines of output (at most 64 KiB), stdout and stderr as they came."""
    log: Path | None
    """The whole output, when a path was asked for."""
    note: str = ""
    """Which limit was hit, in words, when one was."""

    @property
    def ok(self) -> bool:
        """Whether the command exited with status 0."""
        return self.end is End.EXITED and self.exit_code == 0


@dataclass(frozen=True, slots=True)
class Spent:
    """What the Commands of a Sandbox have used."""

    cpu_seconds: float = 0.0
    written_bytes: int = 0
    """Growth of the Sandbox's layer by Commands, in bytes; what they have removed again is not counted."""
    peak_memory_bytes: int | None = None
    """The highest of any Command; None where it is not counted."""

    def plus(self, cpu_seconds: float, written_bytes: int, peak_memory_bytes: int | None) -> Spent:
        """With one Command more."""
        peaks = [peak for peak in (self.peak_memory_bytes, peak_memory_bytes) if peak is not None]
        return Spent(
            self.cpu_seconds + cpu_seconds, self.written_bytes + max(0, written_bytes), max(peaks, default=None)
        )


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """An immutable filesystem state in a backend's store."""

    key: str
    """The name it was frozen under (`recipe.checkpoint_key`)."""
    parent: str | None
    """The key of the state it was forked from; None for bases."""
    depth: int
    """Layers below and including this one."""
    size_bytes: int
    """Bytes of its own layer."""


@dataclass(frozen=True, slots=True)
class RootfsTar:
    """A base as a tar archive of a root filesystem (numeric owners, xattrs kept)."""

    path: Path


@dataclass(frozen=True, slots=True)
class HostRoot:
    """The running system as a base: `masked` paths show as empty folders or files."""

    masked: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class ImageLayer:
    """One layer of an image, as the OCI image specification has it: a tar archive with whiteouts."""

    diff_id: str
    """`sha256:…` of the archive before compression; what `fetch` gives is checked against it."""
    fetch: Callable[[], Awaitable[Path]]
    """Brings the archive to this machine, plain or compressed by gzip or zstd, if a backend lacks the layer.

    All that are wanted are asked for at once; how many come at once is its own matter.
    Raises TransientError or DownloadError.
    """


@dataclass(frozen=True, slots=True)
class ImageLayers:
    """A base as the layers of an image, lowest first. A backend keeps each once, for all images that begin alike."""

    layers: tuple[ImageLayer, ...]


BaseSource = RootfsTar | HostRoot | ImageLayers


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that a probe looked at."""

    name: str
    ok: bool
    detail: str
    hint: str = ""
    """What to do about it, when it is not ok."""


@dataclass(frozen=True, slots=True)
class Probe:
    """Whether a backend works on this machine, found by a real fork."""

    backend: str
    findings: tuple[Finding, ...]

    @property
    def ok(self) -> bool:
        """Whether a Sandbox was forked, run, frozen and discarded."""
        return all(finding.ok for finding in self.findings)


class Inside(Protocol):
    """What it takes to run a Check: Commands, and the files that they leave."""

    async def run(self, command: Command, *, on_line: LineSink | None = None, log: Path | None = None) -> Completed:
        """See `Sandbox.run`."""
        ...

    async def read_file(self, path: str, *, limit: int = 64 << 20) -> bytes:
        """See `Sandbox.read_file`."""
        ...


class Sandbox(Protocol):
    """A writable fork of a Checkpoint. Valid inside the `async with` that made it."""

    @property
    def id(self) -> str:
        """Unique on this machine."""
        ...

    @property
    def parent(self) -> Checkpoint:
        """The state it was forked from."""
        ...

    @property
    def spent(self) -> Spent:
        """What its Commands have used, however they ended: by themselves, at a limit, or cancelled.

        A Command counts from its end on. Can be asked for after the `async with`, too. Without control groups, CPU time
        of processes that were killed may be missing.
        """
        ...

    async def run(self, command: Command, *, on_line: LineSink | None = None, log: Path | None = None) -> Completed:
        """Run one Command to its end; one at a time. Cancelling kills all its processes before this returns.

        Raises SandboxError if it could not be started or watched.
        """
        ...

    async def read_file(self, path: str, *, limit: int = 64 << 20) -> bytes:
        """The bytes of a regular file, symbolic links followed inside the sandbox only.

        Raises FileNotFoundError, IsADirectoryError, or SandboxError for a file above `limit` bytes.
        """
        ...

    async def write_file(self, path: str, data: bytes, *, mode: int = 0o644) -> None:
        """Write a file owned by the sandbox's root, making missing parent folders."""
        ...

    async def copy_in(self, source: Path, target: str) -> None:
        """Copy a host folder's content to `target`, owned by the sandbox's root, modes and links kept."""
        ...

    async def set_cpu_weight(self, weight: int) -> None:
        """Change the share of CPU, also while a Command runs."""
        ...

    async def freeze(self, key: str) -> Checkpoint:
        """Make the present files an immutable Checkpoint. The Sandbox is used up by it.

        A key that exists already keeps its first content, and that Checkpoint is returned.
        """
        ...


class Backend(Protocol):
    """A store of Checkpoints and the way to fork them. Use as an async context manager: a session.

    Checkpoints that are neither kept nor part of a kept one's chain may be removed when the session ends.
    """

    @property
    def name(self) -> str:
        """`overlay`, `docker`, …"""
        ...

    async def __aenter__(self) -> Backend: ...

    async def __aexit__(self, *exc: object) -> None: ...

    async def probe(self) -> Probe:
        """Fork, run, freeze and discard for real, and say precisely what does not work."""
        ...

    async def find(self, key: str) -> Checkpoint | None:
        """The Checkpoint of that key, leased to this session so that nobody removes it meanwhile."""
        ...

    async def import_base(self, key: str, source: BaseSource) -> Checkpoint:
        """Make `source` the Checkpoint `key` (once: an existing key is returned as it is).

        Raises BaseUnavailableError where the backend cannot hold such a source, and what fetching it raises.
        """
        ...

    def fork(self, parent: Checkpoint, *, limits: Limits | None = None) -> AbstractAsyncContextManager[Sandbox]:
        """A writable Sandbox on `parent`; discarded at the end of the `async with` unless it was frozen."""
        ...

    async def graft(self, onto: Checkpoint, side: Checkpoint, key: str) -> Checkpoint | None:
        """The Checkpoint `key`: `onto` with what was changed on the way to `side`, from where both have in common.

        None, and nothing is made, where something was changed on both ways, or where the backend cannot do it: then
        what led to `side` has to be run on `onto`. A key that exists already is returned as it is.
        """
        ...

    async def keep(self, key: str, name: str) -> None:
        """Keep a Checkpoint and its chain beyond this session under a name (an environment's id)."""
        ...

    async def forget(self, name: str) -> None:
        """End what `keep` promised for that name."""
        ...

    async def release(self) -> None:
        """Give up the Checkpoints that this session made and nobody keeps; they are removed in the background.

        No Sandbox may be open on one of them.
        """
        ...

    async def prune(self, *, everything: bool = False) -> int:
        """Remove Checkpoints that nobody keeps or leases (bases too, with `everything`); bytes freed."""
        ...


@runtime_checkable
class Served(Protocol):
    """What a Backend is besides if a server holds its files, which may be another one next time."""

    @property
    def address(self) -> str:
        """Where the server of the open session is."""
        ...


@runtime_checkable
class LayerSource(Protocol):
    """What a Backend is besides if its files can be exported layer by layer."""

    async def layers(self, key: str) -> tuple[tuple[str, ...], ...]:
        """Names of the layers of a Checkpoint, lowest first: those of the base, then those of each state above it.

        A state has several where others were grafted on. The names hold for the session. Raises StoreError if one is
        gone, UsageError if the base is the running system.
        """
        ...

    async def write_layer(self, layer: str, fd: int, *, without: str = "") -> int:
        """Write to `fd` what a layer adds to those below it: a tar stream as OCI layers are, not compressed.

        Owners are those inside of Sandboxes; modes, extended attributes, hard links and times (to the nanosecond) are
        kept; the same layer gives the same bytes. `without` is a regular expression for whole names, relative to the
        root, that are left out. Returns how many entries there are besides the root folder. `fd` stays the caller's.
        Raises StoreError.
        """
        ...

    async def write_root(self, key: str, fd: int, *, without: str = "") -> int:
        """The same of all files of the Checkpoint `key`, as a Sandbox sees them. Raises as `layers` does."""
        ...
