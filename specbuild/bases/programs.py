"""Run a program of the host to its end: output to a file, everything killed when the caller is cancelled."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

import anyio
from anyio.abc import Process

GRACE = 15.0
"""Seconds in which a bootstrap tool may remove its folder and mounts after SIGTERM."""

_RELAY = """trap 'trap "" TERM; kill -TERM 0; wait; exit 143' TERM; "$@" & wait "$!" """
"""A shell that passes SIGTERM on to all of its process group: the kernel tells of a parent's death to one process only,
and mmdebstrap's first process hears of nothing while it waits for its second."""

SYSTEM_FOLDERS = ("/usr/local/sbin", "/usr/local/bin", "/usr/sbin", "/usr/bin", "/sbin", "/bin")


def find_program(name: str) -> str | None:
    """The path of a program; system folders are searched too, since ordinary users often lack `sbin`."""
    return shutil.which(name) or shutil.which(name, path=":".join(SYSTEM_FOLDERS))


async def run_program(
    argv: Sequence[str], *, log: Path, env: Mapping[str, str], cwd: Path | None = None, background: bool = False
) -> int:
    """Run `argv` with its output in `log`, and return its exit status.

    With `background` it yields the CPU to everything else. If this process dies, the program is told to end.
    """
    prefix = ["nice", "-n", "10"] if background else []
    if setpriv := find_program("setpriv"):
        prefix = [setpriv, "--pdeathsig", "TERM", "/bin/sh", "-c", _RELAY, "sh", *prefix]
    with log.open("ab") as output:
        process = await anyio.open_process(
            [*prefix, *argv],
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            env=env,
            cwd=cwd,
            start_new_session=True,
        )
    try:
        return await process.wait()
    except BaseException:
        with anyio.CancelScope(shield=True):
            await _end(process)
        raise


async def _end(process: Process) -> None:
    """SIGTERM to the group, then SIGKILL to what is left of it; bounded."""
    for number, seconds in ((signal.SIGTERM, GRACE), (signal.SIGKILL, 5.0)):
        try:
            os.killpg(process.pid, number)
        except ProcessLookupError:
            return
        with anyio.move_on_after(seconds):
            await process.wait()
