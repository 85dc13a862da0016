"""Which ids of the host stand behind the ids inside of a Sandbox."""

from __future__ import annotations

import os
import pwd
import shutil
from dataclasses import dataclass
from pathlib import Path

import anyio

from specbuild.errors import SandboxUnavailableError

RANGE = 65_536
"""Ids in a Sandbox: what Debian's policy and `nobody` (65534) need."""
FIRST = 100_000
"""Where ranges begin by the defaults of login.defs(5); used by root, who needs no grant."""


@dataclass(frozen=True, slots=True)
class IdMap:
    """How a user namespace's ids are mapped: root to `root`, and `count` ids from 1 on to those from `first` on."""

    root: int
    group: int
    first: int = 0
    first_group: int = 0
    count: int = 0
    direct: bool = False
    """Written by the engine itself, which is root."""

    @property
    def single(self) -> bool:
        """Only root exists inside."""
        return self.count == 0

    async def apply(self, pid: int) -> None:
        """Write the maps of the new user namespace of `pid`. Raises SandboxUnavailableError."""
        try:
            if self.direct:
                _write(pid, "uid_map", f"0 {self.root} 1\n1 {self.first} {self.count}\n")
                _write(pid, "gid_map", f"0 {self.group} 1\n1 {self.first_group} {self.count}\n")
            elif self.single:
                _write(pid, "setgroups", "deny")
                _write(pid, "uid_map", f"0 {self.root} 1\n")
                _write(pid, "gid_map", f"0 {self.group} 1\n")
            else:
                await _grant("newuidmap", pid, self.root, self.first, self.count)
                await _grant("newgidmap", pid, self.group, self.first_group, self.count)
        except OSError as error:
            raise SandboxUnavailableError(
                f"the ids of a user namespace could not be mapped: {error}", hint="run `specbuild doctor`"
            ) from error


def choose(*, unprivileged: bool) -> IdMap:
    """The widest map that can be had here."""
    if not unprivileged:
        return IdMap(FIRST, FIRST, FIRST + 1, FIRST + 1, RANGE - 1, direct=True)
    uid, gid = os.geteuid(), os.getegid()
    users, groups = _granted("/etc/subuid", uid), _granted("/etc/subgid", uid)
    if users and groups and shutil.which("newuidmap") and shutil.which("newgidmap"):
        return IdMap(uid, gid, users[0], groups[0], min(users[1], groups[1], RANGE - 1))
    return IdMap(uid, gid)


def _granted(table: str, uid: int) -> tuple[int, int] | None:
    """The first range of subuid(5) for that user."""
    names = {str(uid)}
    try:
        names.add(pwd.getpwuid(uid).pw_name)
        lines = Path(table).read_text().splitlines()
    except (KeyError, OSError):
        return None
    for line in lines:
        name, _, numbers = line.partition(":")
        first, _, count = numbers.partition(":")
        if name in names and first.isdigit() and count.strip().isdigit() and int(count) > 1:
            return int(first), int(count)
    return None


def _write(pid: int, name: str, text: str) -> None:
    fd = os.open(f"/proc/{pid}/{name}", os.O_WRONLY | os.O_CLOEXEC)
    try:
        os.write(fd, text.encode())
    finally:
        os.close(fd)


async def _grant(program: str, pid: int, own: int, first: int, count: int) -> None:
    words = ["0", str(own), "1", "1", str(first), str(count)]
    done = await anyio.run_process([program, str(pid), *words], check=False)
    if done.returncode:
        raise OSError(f"{program} {pid} {' '.join(words)}: {done.stderr.decode(errors='replace').strip()}")
