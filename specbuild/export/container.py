"""A container of an image, just far enough that a Check can be run and read in it."""

from __future__ import annotations

import math
import time
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

import anyio

from specbuild.errors import SandboxError
from specbuild.export.engine import Engine
from specbuild.sandbox.contract import Command, Completed, End, LineSink

LABEL = "specbuild.replay"
"""On every container that is made here."""

IDLE = 'sleep "$0"; exit'
"""A shell that stays, as the first process: it takes in what processes in the container leave behind."""
_MORE_SECONDS = 3600
"""That a container stays besides its check, if whoever made it is killed and cannot remove it."""
_TAIL = 64 << 10
_END_WITHIN = 60.0
_TRIES, _PAUSE = 100, 0.1
_TIMED_OUT = 137


class Container:
    """Made by `running`. Commands run in it one after the other, all in one space of files and processes."""

    def __init__(self, engine: Engine, name: str) -> None:
        self._engine = engine
        self._name = name

    async def run(self, command: Command, *, on_line: LineSink | None = None, log: Path | None = None) -> Completed:
        """See `contract.Sandbox.run`; the environment is the image's with that of the Command over it."""
        began = time.monotonic()
        env = [word for name, value in command.env.items() for word in ("--env", f"{name}={value}")]
        words = ["exec", "--interactive", "--workdir", command.cwd, *env, self._name, *command.argv]
        output, status = b"", _TIMED_OUT
        with anyio.move_on_after(command.timeout) as scope:
            done = await self._engine.call(*words, stdin=command.stdin, timeout=math.inf, ok=range(256), merged=True)
            output, status = done.stdout, done.returncode
        if log is not None:
            await anyio.Path(log).write_bytes(output)
        text = output.decode(errors="replace")
        if on_line is not None:
            for line in text.splitlines():
                on_line(line)
        return Completed(
            end=End.TIMEOUT if scope.cancelled_caught else End.EXITED,
            exit_code=status,
            seconds=time.monotonic() - began,
            cpu_seconds=0.0,
            peak_memory_bytes=None,
            written_bytes=0,
            tail=text[-_TAIL:],
            log=log,
            note=f"it took longer than {command.timeout:.0f} s" if scope.cancelled_caught else "",
        )

    async def read_file(self, path: str, *, limit: int = 64 << 20) -> bytes:
        """See `contract.Sandbox.read_file`."""
        done = await self._engine.call("exec", self._name, "cat", path, ok=range(256))
        if done.returncode:
            raise FileNotFoundError(path)
        if len(done.stdout) > limit:
            raise SandboxError(f"{path} has {len(done.stdout):,} bytes, more than the limit of {limit:,}")
        return done.stdout


@asynccontextmanager
async def running(engine: Engine, image: str, *, within: float, network: str = "") -> AsyncGenerator[Container]:
    """A container of the image, in the named network, which is removed at the end, whatever runs in it.

    What is to run in it takes up to `within` seconds.
    """
    options = [f"--network={network}"] if network else []
    idle = ("/bin/sh", "-c", IDLE, str(int(within) + _MORE_SECONDS))
    made = await engine.call("create", "--rm", "--label", LABEL, *options, image, *idle)
    name = made.stdout.decode().split()[-1]
    try:
        await engine.call("start", name)
        yield Container(engine, name)
    finally:
        with anyio.move_on_after(_END_WITHIN, shield=True):
            await _remove(engine, name)


async def _remove(engine: Engine, name: str) -> None:
    """It goes by itself, too, once it is over, which takes a moment."""
    await engine.call("kill", name, ok=range(256))  # Podman's `rm` would ask it to end, and wait for 10 s
    for _ in range(_TRIES):
        await engine.call("rm", "--force", name, ok=range(256))
        if (await engine.call("container", "inspect", name, ok=range(256))).returncode:
            return
        await anyio.sleep(_PAUSE)
