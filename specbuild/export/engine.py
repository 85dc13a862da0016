"""The container engine of the user, through the client that they use themselves: `docker` or `podman`.

The client knows where its engine is (`DOCKER_HOST`, contexts, certificates), so nothing of that is done twice.
"""

from __future__ import annotations

import math
import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import anyio
from anyio.abc import Process

from specbuild.errors import SandboxError, SandboxUnavailableError
from specbuild.export.reaper import reaped
from specbuild.tail import last_lines

CLIENTS = ("docker", "podman")
"""In the order in which `auto` asks them."""

_ANSWER_WITHIN = 60.0
_END_WITHIN = 20.0
_LOAD_WITHIN = 1800.0
"""Seconds: on a slow disk an engine unpacks some 10 MB a second."""


@dataclass(frozen=True, slots=True)
class Engine:
    """A client whose engine answers."""

    argv: tuple[str, ...]
    podman: bool = False
    """Whether it is Podman, which may go by Docker's name."""

    async def call(
        self,
        *words: str,
        stdin: bytes = b"",
        timeout: float = _ANSWER_WITHIN,
        ok: Sequence[int] = (0,),
        merged: bool = False,
    ) -> subprocess.CompletedProcess[bytes]:
        """Run the client to its end; with `merged`, `stdout` has both outputs, as they came.

        Raises SandboxError if it ends with another status than those of `ok`, or not in time.
        """
        done: subprocess.CompletedProcess[bytes] | None = None
        with anyio.move_on_after(timeout if math.isfinite(timeout) else None):
            done = await _run([*self.argv, *words], stdin, merged=merged)
        if done is None:
            raise SandboxError(f"{self.name} {words[0]} did not end within {timeout:.0f} s")
        if done.returncode not in ok:
            end = "\n".join(last_lines((done.stderr or done.stdout).decode(errors="replace"), 20))
            raise SandboxError(f"{self.name} {words[0]} failed with exit code {done.returncode}:\n{end}")
        return done

    async def build(self, *words: str, output: Path, timeout: float) -> int:
        """Build an image: the exit code, with all that was printed in the file `output`, as it came.

        When this is cancelled, the steps of the build are over, too. Raises SandboxError if it does not end in time.
        """
        own = ("--layers=false",) if self.podman else ()  # no image for each step, each of them with a container
        command = reaped([*self.argv, "build", *own, *words])
        with anyio.move_on_after(timeout):
            # Files: see `_run`. A session of its own: keys that the user presses are for us.
            with output.open("wb") as out:
                process = await anyio.open_process(
                    command, stdin=subprocess.DEVNULL, stdout=out, stderr=out, start_new_session=True
                )
            try:
                return await process.wait()
            finally:
                await _end(process)
        raise SandboxError(f"{self.name} build did not end within {timeout:.0f} s")

    async def alias(self, image: str, name: str) -> None:
        """Give an image one more name; it is pulled where it is not there. Raises SandboxError."""
        found = await self.call("image", "inspect", image, ok=range(256))
        if found.returncode:
            try:
                await self.call("pull", "--quiet", image, timeout=_LOAD_WITHIN)
            except SandboxError as error:
                raise SandboxError(
                    f"{self.name} cannot have the image {image}: {error.message}",
                    hint="see whether its registry can be reached, or name another image with --base-image",
                ) from error
        await self.call("tag", image, name)

    @property
    def name(self) -> str:
        """`docker` or `podman`."""
        return Path(self.argv[0]).name

    async def load(self, archive: Path) -> None:
        """Load an image archive."""
        await self.call("load", "--input", str(archive), timeout=_LOAD_WITHIN)


async def _end(process: Process) -> None:
    """Have a reaper end all that it has started, unless it is over."""
    if process.returncode is None:
        with anyio.move_on_after(_END_WITHIN, shield=True):
            process.terminate()
            await process.wait()
    if process.returncode is None:
        process.kill()


async def _run(argv: Sequence[str], stdin: bytes, *, merged: bool) -> subprocess.CompletedProcess[bytes]:
    """Run a program with files as its input and outputs.

    Podman leaves a process that keeps what the event loop has made for it, so its outputs would never end; and it
    opens its input by name, which cannot be done if that is a socket.
    """
    with tempfile.TemporaryFile() as given, tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        given.write(stdin)
        given.seek(0)
        stderr = subprocess.STDOUT if merged else err
        done = await anyio.run_process(argv, stdin=given, stdout=out, stderr=stderr, check=False)
        out.seek(0)
        err.seek(0)
        return subprocess.CompletedProcess(argv, done.returncode, out.read(), err.read())


async def find_engine(client: str = "auto") -> Engine:
    """The engine of that client, or with `auto` the first that answers.

    Raises SandboxUnavailableError if there is none.
    """
    said: list[str] = []
    names = CLIENTS if client == "auto" else (client,)
    for name in names:
        program = shutil.which(name)
        if program is None:
            continue
        engine = Engine((program,))
        try:
            await engine.call("info")
            version = await engine.call("--version")
        except SandboxError as error:
            said.append(error.message)
        else:
            return Engine((program,), podman=version.stdout.startswith(b"podman"))
    raise SandboxUnavailableError(
        "no container engine answers: " + ("; ".join(said) or f"no program here is called {' or '.join(names)}"),
        hint=f"start {' or '.join(names)}, or export to docker-archive:FILE and load that elsewhere",
    )
