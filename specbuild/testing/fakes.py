"""Fakes for tests in which determinism is the point: a sandbox backend in memory that runs a script of your own.

A `Script` tells for each command how long it takes, what it prints, which files it writes and how it exits. Time is
the event loop's, so that under `specbuild.testing.clock.VirtualLoop` an hour passes in no time.
"""

from __future__ import annotations

import itertools
from collections.abc import AsyncGenerator, Callable, Generator, Iterable, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType

import anyio

from specbuild.errors import SandboxError
from specbuild.events import Event
from specbuild.recipe import BaseRef, Check, Step, checkpoint_root
from specbuild.sandbox.contract import (
    Backend,
    BaseSource,
    Checkpoint,
    Command,
    Completed,
    End,
    Finding,
    HostRoot,
    Limits,
    LineSink,
    Probe,
    Sandbox,
    Spent,
)
from specbuild.testing.cpu import Cpu, Job
from specbuild.verify.verdict import Verdict

Files = Mapping[str, bytes]


@dataclass(frozen=True, slots=True)
class Behaviour:
    """What a scripted command does."""

    seconds: float = 0.0
    """How long it takes if it has the CPU to itself."""
    exit_code: int = 0
    output: tuple[str, ...] = ()
    """Lines at its end."""
    says: tuple[tuple[float, str], ...] = ()
    """Lines on the way, each after so many seconds; in order of time."""
    writes: Files = field(default_factory=lambda: MappingProxyType({}))
    hangs: bool = False
    """Never ends by itself."""
    breaks: str = ""
    """Raise SandboxError with this message instead of ending."""
    cores: float = 1.0
    """How many it keeps busy meanwhile, on average; more than 0."""


Script = Callable[[str, Files], Behaviour]
"""(the shell command, the files that are there) → what it does."""


class Recorder:
    """A reporter that keeps every event."""

    def __init__(self) -> None:
        self.events: list[Event] = []

    def emit(self, event: Event) -> None:
        """Keep the event."""
        self.events.append(event)


class FakeSandbox:
    """Files in a dictionary; commands by script."""

    def __init__(self, backend: FakeBackend, parent: Checkpoint, name: str, weight: int = 100) -> None:
        self._backend = backend
        self._parent = parent
        self.id = name
        self.files: dict[str, bytes] = dict(backend.files[parent.key])
        self.weight = weight
        self._jobs: list[Job] = []
        self.spent = Spent()
        """What its commands have used."""

    @property
    def parent(self) -> Checkpoint:
        """The state it was forked from."""
        return self._parent

    async def run(self, command: Command, *, on_line: LineSink | None = None, log: Path | None = None) -> Completed:
        """Do what the script says of the last word of `command`."""
        behaviour = self._backend.script(command.argv[-1], self.files)
        began, written, had = anyio.current_time(), 0, 0.0
        try:
            with self._backend.running(command.argv[-1]), self._job(behaviour.cores) as job:
                try:
                    await _pass_time(behaviour, job, on_line)
                finally:
                    had = job.settled()
            written = sum(map(len, behaviour.writes.values()))
        finally:
            self.spent = self.spent.plus(had, written, None)
            self._backend.spent = self._backend.spent.plus(had, written, None)
        if behaviour.breaks:
            raise SandboxError(behaviour.breaks)
        for line in behaviour.output:
            if on_line is not None:
                on_line(line)
        said = (*(line for _, line in behaviour.says), *behaviour.output)
        self.files |= behaviour.writes
        return Completed(
            end=End.EXITED,
            exit_code=behaviour.exit_code,
            seconds=anyio.current_time() - began,
            cpu_seconds=had,
            peak_memory_bytes=None,
            written_bytes=written,
            tail="\n".join(said),
            log=None,
        )

    async def read_file(self, path: str, *, limit: int = 64 << 20) -> bytes:
        """The bytes written to `path`; FileNotFoundError if none were."""
        if path not in self.files:
            raise FileNotFoundError(path)
        return self.files[path]

    async def write_file(self, path: str, data: bytes, *, mode: int = 0o644) -> None:
        """Write a file; modes are not kept."""
        self.files[path] = data

    async def copy_in(self, source: Path, target: str) -> None:
        """Copy the regular files of a folder."""
        for file in sorted(source.rglob("*")):  # noqa: ASYNC240 - a fake, on small folders
            if file.is_file():
                self.files[f"{target}/{file.relative_to(source)}"] = file.read_bytes()

    async def set_cpu_weight(self, weight: int) -> None:
        """Remember the weight; what runs is given its share by it."""
        self.weight = weight
        for job in self._jobs:
            self._backend.cpu.reweigh(job, weight)

    async def freeze(self, key: str) -> Checkpoint:
        """Keep the files under `key`."""
        return self._backend.store(key, self._parent, self.files)

    @contextmanager
    def _job(self, cores: float) -> Generator[Job]:
        with self._backend.cpu.job(self.weight, cores) as job:
            self._jobs.append(job)
            try:
                yield job
            finally:
                self._jobs.remove(job)


class _Running:
    def __init__(self, running: set[str], command: str) -> None:
        self._running = running
        self._command = command

    def __enter__(self) -> None:
        self._running.add(self._command)

    def __exit__(self, *exc: object) -> None:
        self._running.discard(self._command)


class FakeBackend:
    """A backend in memory.

    `ran` lists every command in order of start; `active` holds those that run now; `open` counts live Sandboxes;
    `spent` is what the Commands of all Sandboxes have used.
    """

    name = "fake"

    def __init__(self, script: Script, *, cpu: Cpu | None = None) -> None:
        """Without a `cpu`, every command has a core to itself."""
        self._script = script
        self.cpu = cpu or Cpu()
        self.files: dict[str, Files] = {}
        self.checkpoints: dict[str, Checkpoint] = {}
        self.kept: dict[str, str] = {}
        self.ran: list[str] = []
        self.active: set[str] = set()
        self.open = 0
        self.spent = Spent()
        self._grafted: dict[str, str] = {}
        """Checkpoint → what was grafted to make it."""
        self._ids = itertools.count(1)

    def script(self, command: str, files: Files) -> Behaviour:
        """Record the command and ask the script."""
        self.ran.append(command)
        return self._script(command, files)

    def running(self, command: str) -> _Running:
        """Marks the command as active for the time of a `with`."""
        return _Running(self.active, command)

    async def __aenter__(self) -> Backend:
        return self

    async def __aexit__(self, *exc: object) -> None:
        return None

    async def probe(self) -> Probe:
        """Always fine."""
        return Probe("fake", (Finding("memory", ok=True, detail="works everywhere"),))

    async def find(self, key: str) -> Checkpoint | None:
        """The Checkpoint of that key, if it was made."""
        return self.checkpoints.get(key)

    async def import_base(self, key: str, source: BaseSource) -> Checkpoint:
        """An empty base."""
        return self.store(key, None, {})

    def fork(self, parent: Checkpoint, *, limits: Limits | None = None) -> AbstractAsyncContextManager[Sandbox]:
        """A Sandbox with a copy of the parent's files."""
        return self._fork(parent, limits or Limits())

    @asynccontextmanager
    async def _fork(self, parent: Checkpoint, limits: Limits) -> AsyncGenerator[Sandbox]:
        self.open += 1
        try:
            yield FakeSandbox(self, parent, f"fake-{next(self._ids)}", limits.cpu_weight)
        finally:
            self.open -= 1

    def store(self, key: str, parent: Checkpoint | None, files: Files) -> Checkpoint:
        """Keep files under a key; the first content wins."""
        if key not in self.checkpoints:
            self.files[key] = MappingProxyType(dict(files))
            depth = parent.depth + 1 if parent else 1
            self.checkpoints[key] = Checkpoint(key, parent.key if parent else None, depth, 0)
        return self.checkpoints[key]

    async def graft(self, onto: Checkpoint, side: Checkpoint, key: str) -> Checkpoint | None:
        """The files of `onto` and what was written on the way to `side`, unless both ways wrote to one file."""
        if key in self.checkpoints:
            return self.checkpoints[key]
        line, way = self._line(onto), self._line(side)
        taken = {one for key in line for one in self._line_of(self._grafted.get(key))}
        base = next(one for one in way if one in line)
        met = next(one for one in way if one in line or one in taken)
        own, others = self._changed(side.key, met), self._changed(onto.key, base) - self._changed(met, base)
        if own & others or not own:
            return None
        self._grafted[key] = side.key
        return self.store(key, onto, {**self.files[onto.key], **{path: self.files[side.key][path] for path in own}})

    def _changed(self, key: str, since: str) -> set[str]:
        return {path for path, data in self.files[key].items() if self.files[since].get(path) != data}

    def _line(self, checkpoint: Checkpoint) -> list[str]:
        """Its key and those of all below it."""
        return self._line_of(checkpoint.key)

    def _line_of(self, key: str | None) -> list[str]:
        keys: list[str] = []
        while key is not None:
            keys.append(key)
            key = self.checkpoints[key].parent
        return keys

    async def keep(self, key: str, name: str) -> None:
        """Remember the name."""
        self.kept[name] = key

    async def forget(self, name: str) -> None:
        """Forget the name."""
        self.kept.pop(name, None)

    async def release(self) -> None:
        """Remove what is neither a base nor below anything kept."""
        needed = {key for key, made in self.checkpoints.items() if made.parent is None}
        for kept in self.kept.values():
            key: str | None = kept
            while key is not None:
                needed.add(key)
                key = self.checkpoints[key].parent
        self.checkpoints = {key: made for key, made in self.checkpoints.items() if key in needed}

    async def prune(self, *, everything: bool = False) -> int:
        """Remove nothing."""
        return 0


class ScriptWorkshop:
    """A workshop whose Steps are plain shell scripts: a Check passes if its command exits with 0.

    Works on any backend: on a FakeBackend its script tells what commands do, on a real one they run.
    """

    def __init__(self, backend: Backend, *, source: BaseSource | None = None, missing: Iterable[str] = ()) -> None:
        """`source` is what every base is made of; bases named in `missing` cannot be had."""
        self._backend = backend
        self._source = source or HostRoot(masked=())
        self._missing = frozenset(missing)

    async def provide(self, base: BaseRef) -> Checkpoint:
        """The base's Checkpoint. Raises SandboxError for those that are missing."""
        if base.name in self._missing:
            raise SandboxError(f"no base {base.name}")
        return await self._backend.import_base(checkpoint_root(base), self._source)

    async def run_step(self, sandbox: Sandbox, step: Step, *, on_line: LineSink, log: Path | None) -> Completed:
        """Run the Step's command."""
        return await sandbox.run(_command(step), on_line=on_line, log=log)

    async def verify(self, sandbox: Sandbox, check: Check, *, on_line: LineSink, log: Path | None) -> Verdict:
        """Run the Check's command; one test passes or fails."""
        done = await sandbox.run(_command(check.whole), on_line=on_line, log=log)
        return Verdict(
            level=check.level,
            ok=done.ok,
            reason="1 passed" if done.ok else "1 failed",
            passed=int(done.ok),
            failed=int(not done.ok),
            ratio=float(done.ok),
        )


async def _pass_time(behaviour: Behaviour, job: Job, on_line: LineSink | None) -> None:
    for after, line in behaviour.says:
        await job.until(after)
        if on_line is not None:
            on_line(line)
    await (anyio.sleep_forever() if behaviour.hangs else job.until(behaviour.seconds))


def _command(step: Step) -> Command:
    return Command(("/bin/sh", "-c", step.run), env={"PATH": "/usr/bin:/bin"}, network=False)
