"""Clears up after sessions whose engine was killed.

The helper dies with its engine, and everything in its Sandboxes with it; what is left then is folders. This looks for
processes all the same: a machine that hangs is where engines get killed.
"""

from __future__ import annotations

import contextlib
import os
import select
import signal
import time
from pathlib import Path

from specbuild.errors import SandboxError
from specbuild.sandbox.limits import leftovers
from specbuild.sandbox.overlay.store import About, Realm, Store

_GONE_WITHIN = 5.0
"""Seconds to wait for killed processes in all."""


def start_time(pid: int) -> int | None:
    """When a process began, in clock ticks since the machine did: with `pid` a name that is never used again."""
    try:
        text = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return None
    return int(text.rpartition(")")[2].split()[19])  # field 22 of proc_pid_stat(5); the second may hold spaces


def reap(store: Store) -> dict[Realm, list[str]]:
    """Kill what dead sessions have left running, and take their folders out of use.

    Returns what is trash now, for the helpers to remove. Raises StoreError when something is mounted below it.
    """
    with store.claims.locked():
        dead = store.dead_sessions()
    if dead:
        _kill_helpers(dead)
        _kill_strays([f"live/{session}." for session in dead])
    for group in leftovers(lambda session: session not in dead):  # of engines on other stores, too, once they are gone
        with contextlib.suppress(SandboxError):  # left for the next session
            group.kill()
            group.remove()
    with store.claims.locked():
        trash = {realm: _folders(store, realm) for realm in Realm}
        for session in dead:
            store.end_session(session)
    if dead:  # perhaps the machine went down: what was not made durable cannot be trusted
        for realm, folders in store.collect(bases=False).items():
            trash[realm] += folders
    return trash


def _folders(store: Store, realm: Realm) -> list[str]:
    """What belongs to no session that is alive."""
    alive = store.claims.alive()
    here = store.realm(realm)
    live = [path for path in (here / "live").iterdir() if path.name.partition(".")[0] not in alive]
    gone = [path for path in (here / "trash").iterdir() if path.name.partition(".")[0] not in alive]
    return [
        *(store.to_trash(realm, f"live/{path.name}") for path in live),
        *(store.to_trash(realm, f"trash/{path.name}") for path in gone),
    ]


def _kill_helpers(dead: dict[str, About]) -> None:
    pidfds: list[int] = []
    for about in dead.values():
        for pid, began in about.get("helpers", []):
            if start_time(pid) == began:
                pidfds += _kill(pid)
    _wait(pidfds)


def _kill_strays(marks: list[str]) -> None:
    """Processes that have an upper of those Sandboxes among their mounts."""
    encoded = [mark.encode() for mark in marks]
    pidfds: list[int] = []
    for folder in Path("/proc").iterdir():
        if folder.name.isdigit() and int(folder.name) != os.getpid():
            with contextlib.suppress(OSError):  # it has ended, or is none of ours to look at
                mounts = (folder / "mountinfo").read_bytes()
                if any(mark in mounts for mark in encoded):
                    pidfds += _kill(int(folder.name))
    _wait(pidfds)


def _kill(pid: int) -> list[int]:
    try:
        pidfd = os.pidfd_open(pid)
    except ProcessLookupError:
        return []
    with contextlib.suppress(ProcessLookupError, PermissionError):
        signal.pidfd_send_signal(pidfd, signal.SIGKILL)
    return [pidfd]


def _wait(pidfds: list[int]) -> None:
    deadline = time.monotonic() + _GONE_WITHIN
    for pidfd in pidfds:
        select.select([pidfd], [], [], max(0.0, deadline - time.monotonic()))
        os.close(pidfd)
