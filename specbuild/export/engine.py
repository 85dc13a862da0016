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

from specbuild.errors import SandboxError, SandboxUnavailableError
from specbuild.tail import last_lines

CLIENTS = ("docker", "podman")
"""In the order in which `auto` asks them."""

_ANSWER_WITHIN = 60.0
_LOAD_WITHIN = 1800.0
"""Seconds: on a slow disk an engine unpacks some 10 MB a second."""


@dataclass(frozen=True, slots=True)
class Engine:
    """A client whose engine answers."""

    argv: tuple[str, ...]

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

    @property
    def name(self) -> str:
        """`docker` or `podman`."""
        return Path(self.argv[0]).name

    async def load(self, archive: Path) -> None:
        """Load an image archive."""
        await self.call("load", "--input", str(archive), timeout=_LOAD_WITHIN)


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
        except SandboxError as error:
            said.append(error.message)
        else:
            return engine
    raise SandboxUnavailableError(
        "no container engine answers: " + ("; ".join(said) or f"no program here is called {' or '.join(names)}"),
        hint=f"start {' or '.join(names)}, or export to docker-archive:FILE and load that elsewhere",
    )
