"""One writable fork and what can be done in it."""

from __future__ import annotations

import contextlib
import os
import tarfile
import time
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import anyio

from specbuild.errors import SandboxError
from specbuild.sandbox.contract import Checkpoint, Command, Completed, End, Limits, LineSink, Spent
from specbuild.sandbox.ends import end_of, not_run
from specbuild.sandbox.life import DISCARDED, FROZEN, Life
from specbuild.sandbox.limits import Controller, Group, rlimits
from specbuild.sandbox.overlay import binds, helper, isolation, wire, workers
from specbuild.sandbox.overlay.client import Call, HelperClient, WorkError
from specbuild.sandbox.overlay.output import Output
from specbuild.sandbox.overlay.store import Layer, Realm, Store
from specbuild.sandbox.overlay.watch import Disk
from specbuild.sandbox.watch import Watch
from specbuild.together import joined

BROKEN = "broken: a process of it could not be killed"
DRAIN_WITHIN = 5.0
"""Seconds to read what dead processes have left in the pipe."""
MEASURE_WITHIN = 2.0
"""Seconds to find out how much a cancelled Command has written; after that it counts as nothing."""


@dataclass(frozen=True, slots=True)
class Machine:
    """What all sandboxes of a realm share."""

    store: Store
    realm: Realm
    helper: HelperClient
    controller: Controller
    seccomp: bytes
    folder: Path
    userns: int | None
    """A descriptor of the user namespace by which binds are mapped, when the engine is root outside of it."""
    owner: int | None
    """The host id of the Sandbox's root, where that is not the one we run as."""


class OverlaySandbox:
    """See `contract.Sandbox`."""

    def __init__(self, machine: Machine, parent: Layer, name: str, lowers: tuple[str, ...], limits: Limits) -> None:
        self._machine = machine
        self._layer = parent
        self._name = name
        self._lowers = lowers
        self._limits = limits
        self._works = 0
        self._bytes = 0
        self._life = Life(name)
        self._group: Group | None = None
        self._spent = Spent()
        self.mount_seconds: float | None = None
        """How long the mount for the last Command took."""

    @property
    def id(self) -> str:
        """Unique on this machine."""
        return self._name

    @property
    def parent(self) -> Checkpoint:
        """The state it was forked from."""
        return self._layer.checkpoint

    @property
    def spent(self) -> Spent:
        """What its Commands have used."""
        return self._spent

    @property
    def _upper(self) -> str:
        return f"live/{self._name}/diff"

    def _stack(self) -> dict[str, Any]:
        """The layers to mount, with a work folder that nobody has used."""
        self._machine.store.check_lowers(self._lowers)
        self._works += 1
        work = self._machine.store.new_work(self._machine.realm, self._name, self._works)
        return {"lowers": self._lowers, "upper": self._upper, "work": work}

    async def run(self, command: Command, *, on_line: LineSink | None = None, log: Path | None = None) -> Completed:
        """Run one Command to its end."""
        with self._life.doing("running a command"):
            name = f"{self._name}-{self._works + 1}"
            group = await anyio.to_thread.run_sync(self._machine.controller.create, name, self._limits)
            self._group = group
            try:
                return await self._run_in(group, command, on_line, log)
            finally:
                self._group = None
                with anyio.CancelScope(shield=True):  # bounded by `remove` itself
                    await anyio.to_thread.run_sync(_remove_group, group)

    async def _run_in(self, group: Group, command: Command, on_line: LineSink | None, log: Path | None) -> Completed:
        started = time.monotonic()
        read, write = os.pipe2(os.O_CLOEXEC)
        os.set_blocking(read, False)
        with Output(read, on_line, log) as output:
            try:
                call = await self._start(group, command, write)
            finally:
                os.close(write)
            disk = Disk(self._machine.folder, self._bytes, self._measure)
            watch = Watch(command, self._limits, output, disk, call)
            try:
                reply = await self._follow(call, output, watch)
            except BaseException:
                await self._end(call, group)
                raise
            call.close()
            self.mount_seconds = reply["mount_seconds"]
            seconds = time.monotonic() - started
            use = self._count(group, reply, await self._growth())
            end, code, note = _verdict(reply, watch, group, output.tail)
            return Completed(
                end=end,
                exit_code=code,
                seconds=seconds,
                cpu_seconds=use.cpu_seconds,
                peak_memory_bytes=use.peak_memory_bytes,
                written_bytes=use.written_bytes,
                tail=output.tail,
                log=log,
                note=note,
            )

    async def _growth(self) -> int:
        """Bytes that the layer has grown by since it was last measured; below zero when it has shrunk."""
        before, self._bytes = self._bytes, await self._measure()
        return self._bytes - before

    def _count(self, group: Group, reply: wire.Message, written: int) -> Spent:
        """What one Command has used; counted in `spent` from now on."""
        usage = group.usage()
        cpu = reply.get("cpu_seconds", 0.0) if usage.cpu_seconds is None else usage.cpu_seconds
        peak = usage.peak_memory_bytes or reply.get("peak_memory_bytes")
        self._spent = self._spent.plus(cpu, written, peak)
        return Spent().plus(cpu, written, peak)

    async def _follow(self, call: Call, output: Output, watch: Watch) -> wire.Message:
        """Wait for the end of a Command, its output read and its limits watched meanwhile."""
        reply: wire.Message = {}
        try:
            async with joined() as tasks:
                tasks.start_soon(output.pump)
                tasks.start_soon(watch.run)
                reply.update(await call.answer())
                watch.stop()
                tasks.cancel_scope.deadline = anyio.current_time() + DRAIN_WITHIN
        except WorkError as error:
            raise SandboxError(f"the command could not be started: {error}") from error
        return reply

    async def _end(self, call: Call, group: Group) -> None:
        """See that nothing is left of a Command, and count what it has used."""
        written = 0
        if await call.end():
            with anyio.move_on_after(MEASURE_WITHIN, shield=True), contextlib.suppress(SandboxError):
                written = await self._growth()
            self._count(group, call.last, written)
            return
        with anyio.CancelScope(shield=True):  # bounded by `kill` itself
            await anyio.to_thread.run_sync(group.kill)
        self._count(group, call.last, written)
        self._life.end(BROKEN)

    async def _start(self, group: Group, command: Command, write: int) -> Call:
        machine = self._machine
        with contextlib.ExitStack() as cleanup:
            fds: list[int] = []

            def own(fd: int) -> int:
                cleanup.callback(os.close, fd)
                fds.append(fd)
                return len(fds) - 1

            def lend(fd: int) -> int:
                fds.append(fd)
                return len(fds) - 1

            if machine.owner is not None:
                os.fchown(write, machine.owner, machine.owner)  # /dev/stdout can be opened again
            told, shown = binds.prepare(command.binds, machine.userns, own)
            options = isolation.options(
                cwd=command.cwd,
                env=command.env,
                network=command.network,
                binds=shown,
                status_fd=helper.STATUS_FD,
                seccomp_fd=helper.SECCOMP_FD,
            )
            stdin = wire.memory_file(command.stdin) if command.stdin else os.open(os.devnull, os.O_RDONLY)
            roles = {
                "stdin": own(stdin),
                "output": lend(write),
                "options": own(wire.memory_file(b"".join(os.fsencode(word) + b"\0" for word in options))),
                "seccomp": own(wire.memory_file(machine.seccomp)),
            }
            message = {
                "op": "run",
                "argv": list(command.argv),
                "stack": self._stack(),
                "cover": _covers(network=command.network),
                "binds": told,
                "fds": roles,
                "join": [own(os.open(file, os.O_WRONLY | os.O_CLOEXEC)) for file in group.join_files],
                "rlimits": [] if group.join_files else [(what, *both) for what, both in rlimits(self._limits).items()],
            }
            return await machine.helper.call(message, fds, group.hasten)

    async def _measure(self) -> int:
        """Bytes of the layer."""
        upper = self._machine.folder / self._upper
        with contextlib.suppress(PermissionError), os.scandir(upper) as entries:
            if next(entries, None) is None:
                return 0
        try:
            size: int = await self._machine.helper.work("measure", path=self._upper)
        except WorkError as error:
            raise SandboxError(f"the layer of sandbox {self._name} cannot be measured: {error}") from error
        return size

    async def read_file(self, path: str, *, limit: int = 64 << 20) -> bytes:
        """The bytes of a regular file."""
        with self._life.doing("reading a file"):
            read, write = os.pipe2(os.O_CLOEXEC)
            os.set_blocking(read, False)
            data = bytearray()
            with _Closing(read):
                try:
                    async with anyio.create_task_group() as tasks:
                        tasks.start_soon(_drain, read, data)
                        try:
                            await self._work("read", [write], path=path, limit=limit)
                        finally:
                            os.close(write)
                except ExceptionGroup as group:
                    raise _file_error(group.exceptions[0], path) from None
            return bytes(data)

    async def write_file(self, path: str, data: bytes, *, mode: int = 0o644) -> None:
        """Write a file owned by the sandbox's root."""
        with self._life.doing("writing a file"), _Closing(wire.memory_file(data)) as fd:
            try:
                await self._work("write", [fd], path=path, mode=mode)
            except WorkError as error:
                raise _file_error(error, path) from None
            self._bytes = await self._measure()

    async def copy_in(self, source: Path, target: str) -> None:
        """Copy a host folder's content to `target`."""
        with self._life.doing("copying files in"):
            read, write = os.pipe2(os.O_CLOEXEC)
            try:
                async with anyio.create_task_group() as tasks:
                    tasks.start_soon(anyio.to_thread.run_sync, _archive, source, write)
                    with _Closing(read):
                        await self._work("copy_in", [read], target=target)
            except ExceptionGroup as group:
                raise SandboxError(f"{source} cannot be copied in: {group.exceptions[0]}") from group
            self._bytes = await self._measure()

    async def _work(self, name: str, fds: list[int], **arguments: Any) -> Any:
        return await self._machine.helper.work(name, fds, stack=self._stack(), **arguments)

    async def set_cpu_weight(self, weight: int) -> None:
        """Change the share of CPU, also while a Command runs."""
        self._limits = replace(self._limits, cpu_weight=weight)
        group = self._group
        if group is None:
            return
        try:
            await anyio.to_thread.run_sync(group.set_cpu_weight, weight)
        except SandboxError:
            if self._group is group:  # else the Command has ended meanwhile, and its group is gone
                raise

    async def freeze(self, key: str) -> Checkpoint:
        """Make the present files an immutable Checkpoint."""
        machine = self._machine
        with self._life.doing("being frozen"):
            layer = Layer(key, self._layer.key, self._layer.depth + 1, self._bytes, machine.realm, self._lowers)
            # A thread is not left half-way by cancellation, and what is frozen is so.
            frozen, trash = await anyio.to_thread.run_sync(machine.store.freeze, self._name, layer)
            self._life.end(FROZEN)
            with anyio.move_on_after(DRAIN_WITHIN, shield=True):
                await machine.helper.trash(trash)
        return frozen.checkpoint

    async def discard(self) -> None:
        """Give up its files, unless it was frozen. Called once, at the end of its `async with`."""
        if self._life.over in {FROZEN, BROKEN}:
            return
        machine = self._machine
        path = await anyio.to_thread.run_sync(machine.store.to_trash, machine.realm, f"live/{self._name}")
        self._life.end(DISCARDED)
        await machine.helper.trash([path])


class _Closing:
    """Closes a descriptor."""

    def __init__(self, fd: int) -> None:
        self._fd = fd

    def __enter__(self) -> int:
        return self._fd

    def __exit__(self, *exc: object) -> None:
        os.close(self._fd)


async def _drain(fd: int, into: bytearray) -> None:
    while True:
        try:
            chunk = os.read(fd, 1 << 20)
        except BlockingIOError:
            await anyio.wait_readable(fd)
            continue
        if not chunk:
            return
        into += chunk


def _archive(source: Path, fd: int) -> None:
    """Write the content of `source` as a tar stream; what is neither file, folder nor link is left out."""
    with os.fdopen(fd, "wb") as sink, tarfile.open(fileobj=sink, mode="w|", format=tarfile.PAX_FORMAT) as tar:
        for entry in sorted(source.iterdir()):
            tar.add(entry, entry.name, filter=lambda info: None if info.isdev() else info)


def _covers(*, network: bool) -> list[tuple[str, str]]:
    """Files of the Sandbox over which others are shown, so that names resolve."""
    if not network:
        return [("/etc/hosts", workers.LONE_HOSTS_FILE)]
    return [("/etc/hosts", workers.HOSTS_FILE), ("/etc/resolv.conf", "/etc/resolv.conf")]


def _remove_group(group: Group) -> None:
    group.kill()
    group.remove()


def _verdict(reply: wire.Message, watch: Watch, group: Group, tail: str) -> tuple[End, int, str]:
    """How a Command ended, with which exit code, and why. Raises SandboxError when it never began."""
    code: int = reply["status"] if reply["status"] >= 0 else 128 - reply["status"]
    if watch.end is not None:
        return watch.end, 137, watch.note
    if code and (hit := group.hit()):
        return hit.end, code, hit.note
    if not reply["ran"]:
        return End.EXITED, not_run(tail), tail.strip()
    return end_of(code), code, ""


def _file_error(error: BaseException, path: str) -> Exception:
    kinds: dict[str, type[OSError]] = {
        "FileNotFoundError": FileNotFoundError,
        "IsADirectoryError": IsADirectoryError,
        "NotADirectoryError": FileNotFoundError,  # a file where a folder would have to be
    }
    if isinstance(error, WorkError) and error.kind in kinds:
        return kinds[error.kind](error.number, os.strerror(error.number or 0), path)
    return SandboxError(f"{path} in the sandbox: {error}")
