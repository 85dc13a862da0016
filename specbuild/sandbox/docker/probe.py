"""Finds out whether an engine serves, and says what to do about it."""

from __future__ import annotations

import os
import re
import secrets
import shutil
import subprocess
import tarfile
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING

import anyio

from specbuild.errors import SandboxError, SpecBuildError
from specbuild.sandbox.contract import Checkpoint, Command, Finding, RootfsTar
from specbuild.sandbox.docker.endpoint import Endpoint
from specbuild.sandbox.docker.engine import About, Engine
from specbuild.sandbox.docker.fidelity import is_root_of_all
from specbuild.sandbox.docker.tools import files

if TYPE_CHECKING:
    from specbuild.sandbox.docker.backend import DockerBackend


async def look(backend: DockerBackend) -> tuple[Finding, ...]:
    """All findings; those of the real fork come last."""
    try:
        if backend.is_open:
            return await _look_in_session(backend)
        async with backend:
            return await _look_in_session(backend)
    except SpecBuildError as error:
        return (Finding("engine", False, error.message, error.hint or "see the log of the container engine"),)


async def ask_engine(endpoint: Endpoint) -> str:
    """Who answers there, in words. Raises EngineError and its kinds."""
    async with Engine(endpoint) as engine:
        return _introduced(await engine.about(), endpoint)


def _introduced(about: About, endpoint: Endpoint) -> str:
    kind = "rootless, " if about.rootless else ""
    named = f"{endpoint.origin}; " if endpoint.origin else ""
    return f"{about.name} {about.version} at {endpoint.address} ({named}API {about.api}, {kind}{about.driver})"


async def _look_in_session(backend: DockerBackend) -> tuple[Finding, ...]:
    about = backend.shop.boxes.about
    said = _introduced(about, backend.shop.boxes.engine.endpoint)
    findings = [Finding("engine", True, said), _files(about), await anyio.to_thread.run_sync(_tools)]
    return (*findings, await _fork(backend))


def _files(about: About) -> Finding:
    """Whether what a commit loses of files can be put back."""
    if about.local and is_root_of_all() and Path(about.root).is_dir():
        return Finding("files", True, f"kept exactly: the layers in {about.root} can be reached")
    detail = "times are kept to the second, user attributes and holes are not: the engine's layers cannot be reached"
    return Finding("files", True, detail, "nothing has to be done; the overlay backend keeps all of it")


def _tools() -> Finding:
    try:
        found = files()
    except SandboxError as error:
        return Finding("tools", False, error.message, error.hint)
    return Finding(
        "tools", True, f"{len(found)} files, {sum(len(data) for data, _ in found.values()) >> 10} KiB a base"
    )


async def _fork(backend: DockerBackend) -> Finding:
    started = time.monotonic()
    try:
        await _go_round(backend)
    except SandboxError as error:
        return Finding("fork", False, error.message, error.hint or "see the findings above, and the engine's log")
    return Finding("fork", True, f"forked, ran, froze and discarded in {time.monotonic() - started:.2f} s")


async def _go_round(backend: DockerBackend) -> None:
    key = f"probe-{secrets.token_hex(8)}"
    with tempfile.TemporaryDirectory(prefix="specbuild-") as folder:
        archive = Path(folder, "shell.tar")
        await anyio.to_thread.run_sync(_shell_only, archive)
        base = await backend.import_base(key, RootfsTar(archive))
    try:
        await _use(backend, base)
    finally:
        with anyio.CancelScope(shield=True):  # bounded: each call has its deadline
            await backend.shop.images.give_up(key)


async def _use(backend: DockerBackend, base: Checkpoint) -> None:
    async with backend.fork(base) as sandbox:
        done = await sandbox.run(Command(["/bin/sh", "-c", "echo forked > /probe"], network=False))
        if not done.ok:
            raise SandboxError(f"a command in a sandbox ended with {done.exit_code}: {done.tail or done.note}")
        frozen = await sandbox.freeze(f"{base.key}-frozen")
    try:
        async with backend.fork(frozen) as sandbox:
            if await sandbox.read_file("/probe") != b"forked\n":
                raise SandboxError("a file did not survive the freeze")
    finally:
        with anyio.CancelScope(shield=True):  # bounded: each call has its deadline
            await backend.shop.images.give_up(frozen.key)


def _shell_only(archive: Path) -> None:
    """Write a root filesystem with nothing but the host's shell and its libraries, which `ldd` names."""
    shell = shutil.which("sh") or "/bin/sh"
    listed = subprocess.run(["ldd", shell], capture_output=True, text=True, check=False).stdout
    libraries = re.findall(r"(?:=> |^\s+)(/\S+) \(", listed, re.MULTILINE)
    with tarfile.open(archive, mode="w") as tar:
        for file in dict.fromkeys(["/bin/sh", *libraries]):
            with Path(file).open("rb") as data:
                member = tarfile.TarInfo(file.lstrip("/"))
                member.size, member.mode = os.fstat(data.fileno()).st_size, 0o755
                tar.addfile(member, data)
