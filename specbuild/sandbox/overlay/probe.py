"""Finds out what works on this machine, and says what to do about the rest."""

from __future__ import annotations

import io
import os
import platform
import re
import secrets
import subprocess
import tarfile
import tempfile
import time
from pathlib import Path
from typing import IO, TYPE_CHECKING

import anyio

from specbuild.errors import SandboxError
from specbuild.sandbox.contract import Command, Finding
from specbuild.sandbox.limits import detect
from specbuild.sandbox.overlay import bwrap

if TYPE_CHECKING:
    from specbuild.sandbox.overlay.backend import OverlayBackend

OLDEST_KERNEL = (5, 11)
"""The first where overlayfs works in a user namespace, with `userxattr`; `volatile` came with 5.10."""

_UNFIT = {
    "overlay": "overlayfs cannot hold the upper layer of another overlayfs, as in a container without a volume",
    "nfs": "NFS has no extended attributes for overlayfs",
    "nfs4": "NFS has no extended attributes for overlayfs",
    "9p": "it has no extended attributes for overlayfs",
    "virtiofs": "overlayfs may refuse it as an upper layer",
    "fuse": "FUSE filesystems seldom can be an upper layer",
    "vfat": "it keeps no owners",
}


async def look(backend: OverlayBackend) -> tuple[Finding, ...]:
    """All findings; those of the real fork come last."""
    findings = [_kernel(), _namespaces(backend), _ids(backend), await anyio.to_thread.run_sync(_bubblewrap)]
    findings += [_store(backend.root), await anyio.to_thread.run_sync(_groups), await _fork(backend)]
    return tuple(findings)


def _kernel() -> Finding:
    numbers = tuple(map(int, re.findall(r"\d+", platform.release())[:2]))
    return Finding(
        "kernel",
        numbers >= OLDEST_KERNEL,
        f"Linux {platform.release()}",
        "" if numbers >= OLDEST_KERNEL else "use Linux 5.11 or newer, or the docker backend",
    )


def _setting(path: str) -> str:
    try:
        return Path("/proc/sys", path).read_text().strip()
    except OSError:
        return ""


def _namespaces(backend: OverlayBackend) -> Finding:
    """Switches that forbid user namespaces; whether they do so here, the fork shows."""
    name = "user namespaces"
    if _setting("user/max_user_namespaces") == "0":
        return Finding(name, False, "none are allowed", "sysctl -w user.max_user_namespaces=65536")
    if backend.unprivileged and _setting("kernel/unprivileged_userns_clone") == "0":
        hint = "sysctl -w kernel.unprivileged_userns_clone=1, or run as root"
        return Finding(name, False, "ordinary users may not make them", hint)
    if backend.unprivileged and _setting("kernel/apparmor_restrict_unprivileged_userns") == "1":
        hint = "sysctl -w kernel.apparmor_restrict_unprivileged_userns=0, an AppArmor profile for this python, or root"
        return Finding(name, False, "AppArmor takes their rights away", hint)
    return Finding(name, True, "allowed")


def _ids(backend: OverlayBackend) -> Finding:
    ids = backend.ids
    if not ids.single:
        return Finding("ids", True, f"root inside is {ids.root} outside, {ids.count} more ids from {ids.first} on")
    return Finding(
        "ids",
        True,
        "only root exists inside: files cannot belong to others, apt must not change to its user `_apt` and packages "
        "whose installation makes users or changes owners fail",
        "install `uidmap` and add a line for you to /etc/subuid and /etc/subgid (usermod --add-subuids 100000-165535 "
        "--add-subgids 100000-165535 USER)",
    )


def _bubblewrap() -> Finding:
    try:
        found = bwrap.find()
    except SandboxError as error:
        return Finding("bubblewrap", False, error.message, error.hint)
    return Finding("bubblewrap", True, f"{found.program}, version {'.'.join(map(str, found.version))}")


def _store(root: Path) -> Finding:
    existing = next(path for path in (root, *root.parents) if path.exists())
    kind = _filesystem(existing)
    free = os.statvfs(existing)
    detail = f"{root} on {kind}, {free.f_bavail * free.f_frsize / (1 << 30):.1f} GiB free"
    reason = _UNFIT.get(kind) or _UNFIT.get(kind.partition(".")[0])
    if reason:
        return Finding("store", False, f"{detail}: {reason}", "set cache_dir to a folder on ext4, XFS or btrfs")
    if kind == "tmpfs":
        return Finding("store", True, f"{detail}: all checkpoints take memory", "set cache_dir to a folder on a disk")
    return Finding("store", True, detail)


def _filesystem(path: Path) -> str:
    """The type of the filesystem that holds `path`."""
    device = path.stat().st_dev
    wanted = f"{os.major(device)}:{os.minor(device)}"
    for line in Path("/proc/self/mountinfo").read_text("utf-8", "replace").splitlines():
        fields = line.split(" ")
        if fields[2] == wanted:
            return fields[fields.index("-") + 1]
    return "unknown"  # btrfs shows its subvolumes under other numbers


def _groups() -> Finding:
    controller = detect()
    if not controller.reasons:
        return Finding("control groups", True, "memory, processes and CPU are bounded for each sandbox")
    detail = "; ".join(f"{what}: {why}" for what, why in controller.reasons.items())
    return Finding("control groups", True, f"rlimits of each process stand in for some bounds ({detail})")


async def _fork(backend: OverlayBackend) -> Finding:
    started = time.monotonic()
    try:
        if backend.is_open:
            await _go_round(backend)
        else:
            async with backend:
                await _go_round(backend)
    except (SandboxError, OSError) as error:
        hint = error.hint if isinstance(error, SandboxError) else ""
        hint = hint if hint and "doctor" not in hint else "see the findings above; the docker backend needs none of it"
        return Finding("fork", False, str(error), hint)
    return Finding("fork", True, f"forked, ran, froze and discarded in {time.monotonic() - started:.2f} s")


async def _go_round(backend: OverlayBackend) -> None:
    key = f"probe-{secrets.token_hex(8)}"
    with tempfile.TemporaryFile() as archive:
        await anyio.to_thread.run_sync(_shell_only, archive)
        archive.seek(0)
        base = await backend.import_stream(key, archive.fileno(), "probe")
    async with backend.fork(base) as sandbox:
        done = await sandbox.run(Command(["/bin/sh", "-c", "echo forked > /probe"], network=False))
        if not done.ok:
            raise SandboxError(f"a command in a sandbox ended with {done.exit_code}: {done.tail or done.note}")
        frozen = await sandbox.freeze(f"{key}-frozen")
    async with backend.fork(frozen) as sandbox:
        if await sandbox.read_file("/probe") != b"forked\n":
            raise SandboxError("a file did not survive the freeze")


def _shell_only(archive: IO[bytes]) -> None:
    """Write a root filesystem with nothing but the host's shell and its libraries, which `ldd` names."""
    listed = subprocess.run(["ldd", "/bin/sh"], capture_output=True, text=True, check=False).stdout
    libraries = re.findall(r"(?:=> |^\s+)(/\S+) \(", listed, re.MULTILINE)
    with tarfile.open(fileobj=archive, mode="w") as tar:
        for file in dict.fromkeys(["/bin/sh", *libraries]):
            data = Path(file).read_bytes()
            member = tarfile.TarInfo(file.lstrip("/"))
            member.size, member.mode = len(data), 0o755
            tar.addfile(member, io.BytesIO(data))
