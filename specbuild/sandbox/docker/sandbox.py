"""One writable fork: a container, made when it is first needed, and what can be done in it."""

from __future__ import annotations

import contextlib
import errno
import os
import time
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path

import anyio
import anyio.lowlevel

from specbuild.errors import EngineError, SandboxError, StoreError
from specbuild.sandbox.contract import Bind, Checkpoint, Command, Completed, End, Limits, LineSink, Spent
from specbuild.sandbox.docker import archives, envelope
from specbuild.sandbox.docker.boxes import KEY, Boxes, Used
from specbuild.sandbox.docker.engine import Attached, dig
from specbuild.sandbox.docker.envelope import Report
from specbuild.sandbox.docker.files import Files
from specbuild.sandbox.docker.images import Changes, Images
from specbuild.sandbox.docker.ledger import Ledger, State
from specbuild.sandbox.docker.sizes import Sizes
from specbuild.sandbox.docker.tools import FOLDER, launch_inside
from specbuild.sandbox.ends import end_of, not_run
from specbuild.sandbox.life import DISCARDED, FROZEN, Life
from specbuild.sandbox.lines import Lines
from specbuild.sandbox.watch import Watch
from specbuild.together import joined

BROKEN = "broken: its container could not be stopped"
_ASK_WITHIN = 60.0
"""Seconds for a question that the container answers."""
_KILLED = 128 + 9
"""The status of a container whose first process was ended by SIGKILL."""
_MOST_REPORT = 64 << 10
"""Bytes of standard error that are kept: bubblewrap and the script say little."""


@dataclass(frozen=True, slots=True)
class Shop:
    """What all Sandboxes of a session share."""

    boxes: Boxes
    images: Images
    ledger: Ledger
    places: dict[str, tuple[str, bool]]
    """Host paths that Commands of this session were shown, where containers show them, and whether to write to."""


class DockerSandbox:
    """See `contract.Sandbox`."""

    def __init__(self, shop: Shop, parent: State, name: str, limits: Limits) -> None:
        self._shop = shop
        self._state = parent
        self._name = name
        self._limits = limits
        self._container = ""
        self._made = 0
        self._image = parent.start
        self._layers = 1 if parent.flat else parent.layers
        self._places: dict[str, tuple[str, bool]] = {}
        self._between: tuple[str, ...] = ()
        self._sizes: Sizes | None = None
        self._weighed = limits.cpu_weight
        """The weight that the container has."""
        self._running = False
        self._fed = False
        """Whether something may be there for a Command to read."""
        self._life = Life(name)
        self._spent = Spent()

    @property
    def id(self) -> str:
        """Unique on this machine."""
        return self._name

    @property
    def parent(self) -> Checkpoint:
        """The state it was forked from."""
        return self._state.checkpoint

    @property
    def spent(self) -> Spent:
        """What its Commands have used."""
        return self._spent

    # The container

    async def _ensure(self, command: Command | None = None) -> str:
        """The container, with what the command is to be shown."""
        wanted = self._wanted(command)
        if self._container and wanted.items() <= self._places.items():
            return self._container
        if self._container:
            await self._replace()
        self._made += 1
        name = f"specbuild-{self._name}-{self._made}"
        self._container = name
        self._places = _still_there({**self._shop.places, **wanted})
        self._weighed = self._limits.cpu_weight
        await self._shop.boxes.create(name, self._image, self._limits, self._places)
        self._sizes = await Sizes.of(self._shop.boxes, name)
        return name

    def _wanted(self, command: Command | None) -> dict[str, tuple[str, bool]]:
        """Where to show each bind of a command. All that a session has shown are shown in each later container."""
        shown = self._shop.places
        for bind in command.binds if command else ():
            envelope.check_target(bind.target)
            source = os.path.realpath(bind.source)
            if not os.path.lexists(source):
                raise SandboxError(f"{bind.source} cannot be shown in a sandbox: there is nothing")
            place, writable = shown.get(source, (f"{envelope.BINDS}/{len(shown)}", False))
            shown[source] = (place, writable or bind.writable)
        sources = {os.path.realpath(bind.source) for bind in (command.binds if command else ())}
        return {source: shown[source] for source in sources}

    def _place(self, bind: Bind) -> str:
        """Where the container shows the source of a bind."""
        if bind.source == Path(f"/{FOLDER}"):
            return str(bind.source)
        return self._places[os.path.realpath(bind.source)][0]

    async def _replace(self) -> None:
        """Commit the container, so that another with other binds can take its place."""
        boxes = self._shop.boxes
        image = await boxes.commit(self._container, {KEY: ""})
        self._between = (*self._between, image)
        self._image = image
        self._layers = await self._shop.images.restore(self._require_sizes().folder, image, self._layers + 1)
        await boxes.remove(self._container)
        self._container = ""

    @property
    def _files(self) -> Files:
        asked = self._canonical if self._shop.boxes.about.follows_links else None
        return Files(self._shop.boxes.engine, self._container, asked)

    async def _canonical(self, path: str) -> str:
        """Where a path leads inside: asked of a program of the tools, in the container."""
        shown = Bind(Path(f"/{FOLDER}"), "/dev/specbuild/tools")
        words = launch_inside("readlink", shown.target)
        command = Command([*words, "-m", "--", path], network=False, timeout=_ASK_WITHIN, binds=(shown,))
        lines = Lines(None, None)
        async with self._started(self._container, command) as (stream, _):
            with anyio.fail_after(_ASK_WITHIN):
                await _pump(stream, lines, bytearray())
            status = await self._shop.boxes.wait(self._container)
        if status:
            raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), path)
        return lines.tail.removesuffix("\n")

    # Commands

    async def run(self, command: Command, *, on_line: LineSink | None = None, log: Path | None = None) -> Completed:
        """Run one Command to its end."""
        with self._life.doing("running a command"):
            name = await self._ensure(command)
            await self._feed(command.stdin)
            await self._weigh()
            lines = Lines(on_line, log)
            try:
                return await self._run_in(name, command, lines, log)
            finally:
                lines.close()

    async def _feed(self, data: bytes) -> None:
        """Put what the Command will read where the script finds it, which empties it at the end."""
        if data or self._fed:  # the script of a Command that was killed has left it there
            self._fed = True
            folder, _, file = envelope.INPUT.rpartition("/")
            await self._files.put(folder, archives.single(file, data, 0o600), outer=True)

    async def _weigh(self) -> None:
        if self._weighed != self._limits.cpu_weight:
            self._weighed = self._limits.cpu_weight
            await self._shop.boxes.reweigh(self._container, self._weighed)

    async def _run_in(self, name: str, command: Command, lines: Lines, log: Path | None) -> Completed:
        async with self._started(name, command) as (stream, started):
            lines.last = started
            stop = _Stop()
            watch = Watch(command, self._limits, lines, self._require_sizes(), stop)
            try:
                report, status = await self._follow(name, stream, lines, watch, stop)
            except BaseException:
                with anyio.CancelScope(shield=True):  # bounded: each call has its deadline
                    await self._end(name)
                raise
        seconds = time.monotonic() - started
        self._fed = self._fed and report.code is None
        use = await self._count(report.cpu_seconds, report.peak_memory_bytes)
        end, code, note = await self._verdict(name, report, status, watch, lines.tail)
        return Completed(
            end=end,
            exit_code=code,
            seconds=seconds,
            cpu_seconds=use.cpu_seconds,
            peak_memory_bytes=use.peak_memory_bytes,
            written_bytes=use.written_bytes,
            tail=lines.tail,
            log=log,
            note=note,
        )

    @asynccontextmanager
    async def _started(self, name: str, command: Command) -> AsyncGenerator[tuple[Attached, float]]:
        """The running container, told what to run. Not left running when that fails."""
        boxes = self._shop.boxes
        line = envelope.order(command, {str(bind.source): self._place(bind) for bind in command.binds})
        async with boxes.engine.attached(name) as stream:
            started = time.monotonic()
            try:
                self._running = True
                await boxes.start(name)
                await stream.send(line)
                yield stream, started
            except BaseException:
                with anyio.CancelScope(shield=True):  # bounded: each call has its deadline
                    await self._stop(name)
                raise
            finally:
                self._running = False

    async def _follow(self, name: str, stream: Attached, lines: Lines, watch: Watch, stop: _Stop) -> tuple[Report, int]:
        """Wait for the end of a Command, its output read and its limits watched meanwhile."""
        said = bytearray()
        used: list[Used] = []
        boxes = self._shop.boxes

        async def end() -> None:
            await stop.asked.wait()
            if (use := await boxes.used(name)) is not None:
                used.append(use)
            await boxes.kill(name)

        async with joined() as tasks:
            tasks.start_soon(watch.run)
            tasks.start_soon(end)
            await _pump(stream, lines, said)
            tasks.cancel_scope.cancel()
        status = await boxes.wait(name)
        report = envelope.read_report(bytes(said))
        return (report.killed(used[0].cpu_seconds, used[0].peak_memory_bytes) if used else report), status

    def _require_sizes(self) -> Sizes:
        if self._sizes is None:
            raise StoreError(f"sandbox {self._name} has no container")
        return self._sizes

    async def _count(self, cpu_seconds: float | None, peak: int | None) -> Spent:
        """What one Command has used; counted in `spent` from now on."""
        written = await self._require_sizes().growth()
        self._spent = self._spent.plus(cpu_seconds or 0.0, written, peak)
        return Spent().plus(cpu_seconds or 0.0, written, peak)

    async def _end(self, name: str) -> None:
        """See that nothing is left of a Command, and count what it has used. Shielded by who calls."""
        use = await self._shop.boxes.used(name)
        await self._stop(name)
        with contextlib.suppress(EngineError):
            await self._count(use.cpu_seconds if use else None, use.peak_memory_bytes if use else None)

    async def _stop(self, name: str) -> None:
        """Kill the container, and wait until it is dead. Shielded by who calls."""
        try:
            await self._shop.boxes.kill(name)
            await self._shop.boxes.wait(name)
        except EngineError:
            self._life.end(BROKEN)

    async def _verdict(self, name: str, report: Report, status: int, watch: Watch, tail: str) -> tuple[End, int, str]:
        """How a Command ended, with which exit code, and why. Raises SandboxError when it never began."""
        if watch.end is not None:
            return watch.end, 137, watch.note
        code = status if report.code is None else report.code
        if code and (hit := report.hit(self._limits)):
            return hit.end, code, hit.note
        if report.code is None:
            found = await self._shop.boxes.inspect(name)
            # Podman tells it only if it heard of it before the end. Who else kills is told by `watch`.
            if dig(found, "State", "OOMKilled") or (status == _KILLED and self._limits.memory_bytes):
                hit = envelope.out_of_memory(self._limits)
                return hit.end, code, hit.note
            last = tail.strip() or dig(found, "State", "Error") or ""
            raise SandboxError(
                f"the command's container ended with {status} before the command did{f': {last}' if last else ''}",
                hint="see whether somebody has stopped it, or the engine" if status == _KILLED else "",
            )
        if not report.ran:
            return End.EXITED, not_run(tail), tail.strip()
        return end_of(code), code, ""

    # Files

    async def read_file(self, path: str, *, limit: int = 64 << 20) -> bytes:
        """The bytes of a regular file."""
        with self._life.doing("reading a file"):
            await self._ensure()
            return await self._files.read(path, limit)

    async def write_file(self, path: str, data: bytes, *, mode: int = 0o644) -> None:
        """Write a file owned by the sandbox's root."""
        with self._life.doing("writing a file"):
            await self._ensure()
            await self._files.write(path, data, mode)
            await self._require_sizes().settle()

    async def copy_in(self, source: Path, target: str) -> None:
        """Copy a host folder's content to `target`."""
        with self._life.doing("copying files in"):
            await self._ensure()
            try:
                folder = await self._files.folder(target)
                async with archives.sending(archives.folder_writer(source)) as archive:
                    await self._files.put(folder, archive)
            except OSError as error:
                raise SandboxError(f"{source} cannot be copied in: {error}") from error
            await self._require_sizes().settle()

    async def set_cpu_weight(self, weight: int) -> None:
        """Change the share of CPU, also while a Command runs."""
        self._limits = replace(self._limits, cpu_weight=weight)
        if self._running and weight != self._weighed:
            self._weighed = weight
            await self._shop.boxes.reweigh(self._container, weight)

    # The end

    async def freeze(self, key: str) -> Checkpoint:
        """Make the present files an immutable Checkpoint."""
        with self._life.doing("being frozen"):
            name = await self._ensure()
            await self._feed(b"")
            sizes = self._require_sizes()
            size = await sizes.now()
            changes = Changes(name, sizes.folder, size, self._layers, self._between)
            made = await self._shop.images.commit(changes, self._state, key)
            self._between = ()
            self._life.end(FROZEN)
        return made

    async def discard(self) -> None:
        """Give up what is left of it. Called once, at the end of its `async with`; shielded by who calls."""
        self._life.end(DISCARDED)
        if self._container:
            await self._shop.boxes.remove(self._container)
        for image in reversed(self._between):
            await self._shop.boxes.remove_image(image)


def _still_there(places: dict[str, tuple[str, bool]]) -> dict[str, tuple[str, bool]]:
    """Without what was removed from the host since it was shown: engines refuse to show nothing."""
    return {source: place for source, place in places.items() if os.path.lexists(source)}


class _Stop:
    """Asks for the end of a container."""

    def __init__(self) -> None:
        self.asked = anyio.Event()

    def kill(self) -> None:
        """See `watch.Killable`."""
        self.asked.set()


async def _pump(stream: Attached, lines: Lines, said: bytearray) -> None:
    """Read until the container has ended."""
    while (piece := await stream.read()) is not None:
        kind, data = piece
        if kind == 1:
            lines.take(data)
        elif len(said) < _MOST_REPORT:
            said += data
        await anyio.lowlevel.checkpoint()
    lines.finish()
