"""What a check of the conformance suite works with: a backend to be judged, a base, and a few shorthands."""

from __future__ import annotations

import re
import secrets
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

import anyio

from specbuild.sandbox.contract import Backend, Bind, Checkpoint, Command, Completed, Limits, RootfsTar, Sandbox

ENVIRONMENT: Mapping[str, str] = {
    "PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
    "HOME": "/root",
}


def no_leftovers() -> list[str]:
    """For backends of which nothing can be said from outside."""
    return []


@dataclass(frozen=True)
class Trial:
    """One backend under test. Sessions of one Trial share a store, so that the base is unpacked once."""

    make: Callable[[], Backend]
    """Makes a backend on the same store each time."""
    rootfs: Path
    """A tar as of `specbuild.testing.rootfs.tiny_rootfs`."""
    folder: Path
    """An empty folder on the host, for the check's own use."""
    leftovers: Callable[[], list[str]] = no_leftovers
    """What the backend has left on the machine, in words, when no session is open."""
    owners: bool = True
    """Whether files can belong to others than the sandbox's root."""
    bounds: frozenset[str] = field(default=frozenset({"memory", "processes"}))
    """What the backend can bound on this machine."""
    sparse_bytes: int = 3 << 30
    """Size of a file that is nearly all hole: as large as the backend can freeze in no time."""
    base_key: str = "0" * 63 + "b"

    @asynccontextmanager
    async def session(self) -> AsyncGenerator[tuple[Backend, Checkpoint]]:
        """An open session, and the base in it."""
        async with self.make() as backend:
            yield backend, await backend.import_base(self.base_key, RootfsTar(self.rootfs))

    @asynccontextmanager
    async def fork(self, limits: Limits | None = None) -> AsyncGenerator[Sandbox]:
        """A Sandbox on the base, in a session of its own."""
        async with self.session() as (backend, base), backend.fork(base, limits=limits) as box:
            yield box


Check = Callable[[Trial], Awaitable[None]]


def shell(
    script: str,
    *words: str,
    env: Mapping[str, str] = ENVIRONMENT,
    stdin: bytes = b"",
    network: bool = False,
    timeout: float | None = 120.0,
    silence: float | None = None,
    binds: tuple[Bind, ...] = (),
    cwd: str = "/",
) -> Command:
    """A Command that runs `script` by /bin/sh, with `words` as $1, $2, …"""
    argv = ["/bin/sh", "-c", script, "sh", *words]
    return Command(argv, cwd, env, stdin, network, timeout, silence, binds)


async def out(box: Sandbox, script: str, *words: str) -> str:
    """The output of a script that has to succeed, without the white space around it."""
    done = await box.run(shell(script, *words))
    assert done.ok, f"{script!r} ended as {done}"
    return done.tail.strip()


async def frozen(backend: Backend, parent: Checkpoint, script: str) -> Checkpoint:
    """A new Checkpoint: `parent` after `script`."""
    async with backend.fork(parent) as box:
        await out(box, script)
        return await box.freeze(new_key())


async def seen(backend: Backend, checkpoint: Checkpoint, script: str) -> str:
    """The output of a script in a fork of `checkpoint`, which is then discarded."""
    async with backend.fork(checkpoint) as box:
        return await out(box, script)


async def attempt(box: Sandbox, script: str) -> Completed:
    """Run a script that may fail."""
    return await box.run(shell(script))


def new_key() -> str:
    """A key that no Checkpoint has."""
    return secrets.token_hex(32)


def new_marker() -> str:
    """A number of seconds for `sleep` by which a process can be told from all others on the machine."""
    return f"7{secrets.randbelow(10**6):06}.{secrets.randbelow(10**12):012}"


def processes(marker: str) -> list[int]:
    """The processes of this machine, those of sandboxes included, whose command line has `marker` as a word."""
    found: list[int] = []
    for folder in Path("/proc").iterdir():
        if not folder.name.isdigit():
            continue
        try:
            words = (folder / "cmdline").read_bytes().split(b"\0")
        except OSError:  # it has ended meanwhile
            continue
        if marker.encode() in words:
            found.append(int(folder.name))
    return found


def resident_bytes() -> int:
    """Memory that this process has in RAM."""
    match = re.search(r"^VmRSS:\s+(\d+) kB", Path("/proc/self/status").read_text(), re.MULTILINE)
    assert match
    return int(match[1]) * 1024


async def until(condition: Callable[[], bool], seconds: float = 30.0) -> None:
    """Wait for a condition. Raises TimeoutError."""
    with anyio.fail_after(seconds):
        while not condition():  # noqa: ASYNC110 - what is waited for lies outside of this process
            await anyio.sleep(0.005)
