"""A shell in an environment, on the user's own terminal.

A sandbox's command has no terminal. So `script`, which every Debian has, makes one inside, and two FIFOs that are shown
there carry what is typed and what is to be seen. The terminal outside is in raw mode meanwhile: Ctrl-C goes in.
"""

from __future__ import annotations

import contextlib
import os
import shlex
import sys
import termios
import tty
from collections.abc import Generator
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

import anyio

from specbuild.errors import UsageError
from specbuild.opened import OpenEnvironment
from specbuild.recipe import Step, StepKind
from specbuild.sandbox.contract import Bind, Command, Completed, Sandbox
from specbuild.workshop import Surroundings

_SHOWN = "/dev/specbuild/terminal"
_CHUNK = 64 << 10
_MISSING = 127
"""What the shell says of a program that is not there."""


async def shell(opened: OpenEnvironment) -> int:
    """Run a shell in a fresh fork of `opened`, on stdin and stdout; its exit code.

    Raises UsageError where the environment has no `script`, or its files were pruned.
    """
    surroundings = Surroundings.of(opened.settings)
    with _fifos() as (folder, typed, shown):
        async with opened.backend() as backend:
            checkpoint = await opened.checkpoint(backend)
            async with backend.fork(checkpoint, limits=surroundings.limits) as sandbox:
                done = await _on_terminal(sandbox, _command(opened, surroundings, folder), typed, shown)
    if done.exit_code == _MISSING and "script" in done.tail:
        raise UsageError(
            f"the base of environment {opened.id} has no `script`, which makes the terminal of a shell",
            hint="use `specbuild run ENV -- COMMAND`",
        )
    return done.exit_code


async def _on_terminal(sandbox: Sandbox, command: Command, typed: int, shown: int) -> Completed:
    """Run the command while bytes go to and fro."""
    ends: list[Completed] = []
    with _raw(sys.stdin.fileno()):
        async with anyio.create_task_group() as pumps:
            pumps.start_soon(_pump, sys.stdin.fileno(), typed)
            pumps.start_soon(_pump, shown, sys.stdout.fileno())
            ends.append(await sandbox.run(command))
            pumps.cancel_scope.cancel()
        _drain(shown, sys.stdout.fileno())
    return ends[0]


def _command(opened: OpenEnvironment, surroundings: Surroundings, folder: Path) -> Command:
    size = os.get_terminal_size(sys.stdin.fileno())
    inner = f"stty rows {size.lines} cols {size.columns}; exec $(command -v bash || command -v sh) -i"
    line = f"exec script -qefc {shlex.quote(inner)} /dev/null <{_SHOWN}/in >{_SHOWN}/out"
    recipe = opened.committed()
    env = (*recipe.test_env, ("TERM", os.environ.get("TERM", "dumb")))
    made = surroundings.command(Step(kind=StepKind.TEST, run=line, env=env), recipe.base)
    return replace(made, timeout=None, silence=None, binds=(*made.binds, Bind(folder, _SHOWN, writable=True)))


@contextlib.contextmanager
def _fifos() -> Generator[tuple[Path, int, int]]:
    """A folder with two FIFOs, `in` and `out`, and this end of each.

    It is held for reading and writing, so that neither side has to wait for the other to open its own.
    """
    with TemporaryDirectory(prefix="specbuild-") as name, contextlib.ExitStack() as ends:
        folder = Path(name)
        folder.chmod(0o711)  # root inside is another user outside
        descriptors: list[int] = []
        for fifo in (folder / "in", folder / "out"):
            os.mkfifo(fifo)
            fifo.chmod(0o666)
            descriptors.append(os.open(fifo, os.O_RDWR | os.O_NONBLOCK | os.O_CLOEXEC))
            ends.callback(os.close, descriptors[-1])
        yield folder, descriptors[0], descriptors[1]


@contextlib.contextmanager
def _raw(terminal: int) -> Generator[None]:
    """Every key goes through as it is."""
    before = termios.tcgetattr(terminal)
    tty.setraw(terminal)
    try:
        yield
    finally:
        termios.tcsetattr(terminal, termios.TCSADRAIN, before)


async def _pump(source: int, target: int) -> None:
    """Carry bytes until the source ends."""
    while True:
        await anyio.wait_readable(source)
        data = os.read(source, _CHUNK)
        if not data:
            return
        while data:
            try:
                data = data[os.write(target, data) :]
            except BlockingIOError:
                await anyio.wait_writable(target)


def _drain(source: int, target: int) -> None:
    """What was still under way when the shell ended."""
    with contextlib.suppress(BlockingIOError):
        while data := os.read(source, _CHUNK):
            os.write(target, data)
