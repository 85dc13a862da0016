"""How a program ended, as bubblewrap tells: by its exit code, or by what it says of a program that never ran."""

from __future__ import annotations

from specbuild.errors import SandboxError
from specbuild.sandbox.contract import End


def end_of(code: int) -> End:
    """The end that an exit code stands for.

    A shell reports a signal that killed its child in the same way, and bubblewrap is such a parent.
    """
    return End.SIGNALLED if 128 < code <= 192 else End.EXITED


def not_run(tail: str) -> int:
    """The exit code that a shell has for a program that cannot be executed. Raises SandboxError for other troubles."""
    said = tail.strip().splitlines()[-1:] or [""]
    if said[0].startswith(("bwrap: execvp ", "bwrap: Can't chdir to ")):
        return 126 if said[0].endswith("Permission denied") else 127
    raise SandboxError(f"the command could not be started: {tail.strip() or 'bubblewrap was killed'}")
