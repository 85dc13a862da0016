"""A process that runs a command and, when it is told to end by SIGTERM, ends all that came of the command.

Podman's builder leaves a step that runs alone when it is ended itself: the step goes on, as nobody's child. Here it
becomes this process's child (prctl(2), PR_SET_CHILD_SUBREAPER), which kills it. What outlives a command that ends by
itself is left in peace.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from types import FrameType

from specbuild.sandbox.overlay import kernel

ENDED = 128 + signal.SIGTERM
"""Exit code after that."""


def reaped(command: Sequence[str]) -> list[str]:
    """The command line of such a process."""
    home = str(Path(__file__).parents[2])
    program = f"import sys; sys.path.append({home!r}); from specbuild.export.reaper import main; main()"
    return [sys.executable, "-I", "-S", "-c", program, *command]


class _ToldToEndError(Exception):
    """By a signal."""


def main() -> None:
    """Ends with the exit code of the command, which is what the process was given, or with `ENDED`."""
    sys.exit(_run(sys.argv[1:]))


def _run(command: list[str]) -> int:
    kernel.prctl(kernel.PR_SET_CHILD_SUBREAPER, 1)
    kernel.prctl(kernel.PR_SET_PDEATHSIG, signal.SIGTERM)
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, _end)
    try:
        status = subprocess.Popen(command).wait()
    except _ToldToEndError:
        _end_all()
        return ENDED
    return status if status >= 0 else 128 - status


def _end(number: int, frame: FrameType | None) -> None:
    del number, frame
    for each in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(each, signal.SIG_IGN)
    raise _ToldToEndError


def _end_all() -> None:
    """Children of those that are killed become children of this process, until there are none."""
    while True:
        for pid in _children():
            os.kill(pid, signal.SIGKILL)  # it is not waited for yet, so that the number is still its own
        try:
            os.waitpid(-1, 0)
        except ChildProcessError:
            return


def _children() -> list[int]:
    tasks = Path("/proc/self/task").iterdir()
    return [int(pid) for task in tasks for pid in (task / "children").read_text().split()]
