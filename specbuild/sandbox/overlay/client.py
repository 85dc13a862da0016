"""The engine's end of a helper process."""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import anyio

import specbuild
from specbuild.errors import SandboxError, SandboxUnavailableError
from specbuild.sandbox.overlay import wire
from specbuild.sandbox.overlay.bwrap import Bubblewrap
from specbuild.sandbox.overlay.idmap import IdMap

_START_WITHIN = 30.0
_END_WITHIN = 10.0
"""Seconds that a killed process may take to be gone, before it is reported as stuck."""


class WorkError(Exception):
    """What a worker raised: `kind` is the name of its class."""

    def __init__(self, kind: str, number: int | None, text: str) -> None:
        super().__init__(text)
        self.kind = kind
        self.number = number


class Call:
    """One request that is being worked on."""

    def __init__(self, helper: HelperClient, sock: socket.socket, hasten: Callable[[], None]) -> None:
        self._helper = helper
        self._sock = sock
        self._hasten = hasten
        self._open = True
        self.last: wire.Message = {}
        """What was answered after `end`, if anything was."""

    async def answer(self) -> wire.Message:
        """Wait for it. Raises SandboxError when the helper died, WorkError when the work failed."""
        await anyio.wait_readable(self._sock)
        received = wire.receive(self._sock)
        if received is None:
            self.close()
            raise self._helper.died()
        message, _ = received
        if "error" in message:
            raise WorkError(**message["error"])
        return message

    def kill(self) -> None:
        """Have everything killed that works on it; an answer still comes."""
        if self._open:
            self._hasten()
            with contextlib.suppress(OSError):
                wire.send(self._sock, {"op": "kill"})

    async def end(self) -> bool:
        """Kill, and wait, out of reach of any cancellation, until nothing is left; whether that was so in time."""
        if not self._open:
            return True
        gone = False
        self.kill()
        with anyio.move_on_after(_END_WITHIN, shield=True):
            while not gone:
                await anyio.wait_readable(self._sock)
                received = wire.receive(self._sock)
                gone = received is None
                self.last = received[0] if received else self.last
        self.close()
        return gone

    def close(self) -> None:
        """Done with it. A request that is still worked on is killed."""
        if self._open:
            self._open = False
            self._sock.close()


class HelperClient:
    """A running helper. Made by `start`, ended by `close`."""

    def __init__(self, process: subprocess.Popen[bytes], control: socket.socket, complaints: Path) -> None:
        self._process = process
        self._control = control
        self._complaints = complaints

    @property
    def alive(self) -> bool:
        """Whether it runs."""
        return self._process.poll() is None

    @property
    def pid(self) -> int:
        """Its process id."""
        return self._process.pid

    @classmethod
    async def start(cls, folder: Path, ids: IdMap | None, bwrap: Bubblewrap, complaints: Path) -> HelperClient:
        """Start a helper whose current folder is `folder`, in a new user namespace if `ids` are given.

        What it writes to its standard error goes to the file `complaints`. Raises SandboxUnavailableError.
        """
        ours, its = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        ours.setblocking(False)
        try:
            process = await anyio.to_thread.run_sync(_launch, folder, its, complaints)
        except BaseException:
            ours.close()
            raise
        finally:
            its.close()
        helper = cls(process, ours, complaints)
        try:
            with anyio.fail_after(_START_WITHIN):
                await helper._introduce(ids, bwrap)
        except BaseException as error:
            await helper.close()
            if isinstance(error, TimeoutError):
                raise SandboxUnavailableError("the helper process did not start in 30 seconds") from error
            raise
        return helper

    async def _introduce(self, ids: IdMap | None, bwrap: Bubblewrap) -> None:
        files = bwrap.files
        fds = [os.open(path, os.O_RDONLY | os.O_CLOEXEC) for path in files.values()]
        try:
            await self._send({"userns": ids is not None, "tools": list(files)}, fds)
        finally:
            for fd in fds:
                os.close(fd)
        if ids is not None:
            await self._expect("unshared")
            await ids.apply(self.pid)
            await self._send({"step": "mapped"})
        await self._expect("ready")

    async def _expect(self, step: str) -> None:
        await anyio.wait_readable(self._control)
        received = wire.receive(self._control)
        if received is None:
            raise self.died()
        message, _ = received
        if message.get("step") != step:
            raise SandboxUnavailableError(
                f"namespaces cannot be made here: {message['error']['text']}", hint="run `specbuild doctor`"
            )

    async def _send(self, message: wire.Message, fds: Sequence[int] = ()) -> None:
        while True:
            try:
                wire.send(self._control, message, fds)
            except BlockingIOError:
                await anyio.wait_writable(self._control)
            except ConnectionError as error:
                raise self.died() from error
            except OSError as error:
                raise SandboxError(f"the helper process cannot be reached: {error}") from error
            else:
                return

    async def call(
        self, message: wire.Message, fds: Sequence[int] = (), hasten: Callable[[], None] = lambda: None
    ) -> Call:
        """Send a request; its descriptors stay the caller's. `hasten` is called before it is killed."""
        ours, its = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        ours.setblocking(False)
        try:
            await self._send(message, [its.fileno(), *fds])
        except BaseException:
            ours.close()
            raise
        finally:
            its.close()
        return Call(self, ours, hasten)

    async def work(self, name: str, fds: Sequence[int] = (), **arguments: Any) -> Any:
        """Run a function of `workers`. Raises WorkError with what it raised. Cancelling kills it first."""
        call = await self.call({"op": "work", "name": name, "arguments": arguments}, fds)
        try:
            return (await call.answer())["result"]
        except anyio.get_cancelled_exc_class():
            await call.end()
            raise
        finally:
            call.close()

    async def trash(self, paths: list[str]) -> None:
        """Remove trees in the background. Without the helper they stay for the next session to find."""
        if paths:
            with contextlib.suppress(SandboxError):
                await self._send({"op": "trash", "paths": paths})

    async def settle(self) -> None:
        """Wait until all that was trash is gone. Without the helper it stays for the next session to find."""
        with contextlib.suppress(SandboxError):
            call = await self.call({"op": "settle"})
            try:
                await call.answer()
            finally:
                call.close()

    async def close(self) -> None:
        """End the helper and all that it runs; bounded."""
        self._control.close()
        if not self.alive:
            return
        pidfd = os.pidfd_open(self.pid)
        try:
            with anyio.move_on_after(_END_WITHIN, shield=True) as scope:
                await anyio.wait_readable(pidfd)
            if scope.cancelled_caught:
                signal.pidfd_send_signal(pidfd, signal.SIGKILL)
            with anyio.move_on_after(_END_WITHIN, shield=True):
                await anyio.wait_readable(pidfd)
                self._process.wait()
        finally:
            os.close(pidfd)

    def died(self) -> SandboxError:
        """What to raise when it is not there any more."""
        with contextlib.suppress(OSError):
            if said := self._complaints.read_text(errors="replace")[-2000:].strip():
                return SandboxError(f"the helper process ended: {said}")
        return SandboxError("the helper process ended; something may have killed it")


def _launch(folder: Path, sock: socket.socket, complaints: Path) -> subprocess.Popen[bytes]:
    home = str(Path(specbuild.__file__).parent.parent)
    fd = sock.fileno()
    # -I -S: nothing of the caller's environment or site-packages, which also makes it start in a third of the time.
    program = f"import sys; sys.path.append({home!r}); from specbuild.sandbox.overlay.helper import main; main({fd})"
    with complaints.open("ab") as errors:
        return subprocess.Popen(
            [sys.executable, "-I", "-S", "-c", program],
            cwd=folder,
            env={},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=errors,
            pass_fds=[fd],
            start_new_session=True,
        )
