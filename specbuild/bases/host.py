"""`host`: the running system as a base, with what is private to it masked.

Nothing is downloaded, and nothing of it can be had on another machine. What is masked is in `specbuild.bases.masks`.
"""

from __future__ import annotations

import hashlib
import os
import re
import subprocess
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

import anyio.to_thread

from specbuild.bases.masks import Machine, masks
from specbuild.errors import BaseUnavailableError
from specbuild.recipe import BaseRef, checkpoint_root
from specbuild.sandbox.contract import Backend, Checkpoint, HostRoot
from specbuild.sandbox.passthrough import base_environment

_PACKAGE_DATABASES = (
    "/var/lib/dpkg/status",
    "/lib/apk/db/installed",
    "/var/lib/rpm/rpmdb.sqlite",
    "/usr/lib/sysimage/rpm/rpmdb.sqlite",
    "/var/lib/pacman/local",
)

_SYSTEM_FOLDERS = ("/usr", "/etc", "/var", "/bin", "/sbin", "/lib", "/lib64", "/opt")


class HostBases:
    """Offers the running system. See `BaseProvider`."""

    def __init__(
        self, *, private: Iterable[Path] = (), root: Path = Path("/"), notify: Callable[[str], None] | None = None
    ) -> None:
        """`private` are folders to mask besides the usual ones: the store, the repository."""
        self._machine = Machine(root)
        self._private = tuple(private)
        self._notify = notify

    @property
    def name(self) -> str:
        """`host`."""
        return "host"

    def claims(self, base: str) -> bool:
        """Whether that is `host`."""
        return base == "host"

    def cached(self, base: str) -> BaseRef:
        """The reference: nothing has to be made for it, and it is looked up in a fraction of a second."""
        del base
        masked = self._masked()
        self._tell_hidden(masked)
        return self._resolve(masked)

    async def resolve(self, base: str) -> BaseRef:
        """The reference of the present state of the system, by its release, packages and interpreters."""
        return await anyio.to_thread.run_sync(self.cached, base)

    async def provide(self, ref: BaseRef, backend: Backend) -> Checkpoint:
        """The running system as a Checkpoint of `backend`.

        Raises BaseUnavailableError where the system has changed since, is not on one filesystem, or the backend cannot
        use it.
        """
        key = checkpoint_root(ref)
        if found := await backend.find(key):
            return found
        if apart := [folder for folder in _SYSTEM_FOLDERS if folder in self._machine.mount_points()]:
            raise BaseUnavailableError(
                f"the system cannot serve as a base: {', '.join(apart)} is a filesystem of its own, which an overlay of"
                " the root does not show",
                hint="use a portable base: --base debian:bookworm",
            )
        masked = await anyio.to_thread.run_sync(self._masked)
        if (await anyio.to_thread.run_sync(self._resolve, masked)).digest != ref.digest:
            raise BaseUnavailableError(
                "the running system is not what it was: packages, interpreters or what has to be masked have changed",
                hint="build again; an environment on a portable base can be replayed at any time",
            )
        return await backend.import_base(key, HostRoot(masked))

    def _masked(self) -> tuple[str, ...]:
        return masks(self._machine, self._private)

    def _resolve(self, masked: Sequence[str]) -> BaseRef:
        interpreters = _interpreters(self._machine, masked)
        release = self._machine.os_release()
        parts = [self._machine.text("/etc/os-release"), *map(self._state, _PACKAGE_DATABASES), *interpreters, *masked]
        return BaseRef(
            name="host",
            digest="sha256:" + hashlib.sha256("\0".join(parts).encode()).hexdigest(),
            python=_version(interpreters),
            release=release.get("VERSION_CODENAME"),
            portable=False,
        )

    def _state(self, path: str) -> str:
        """What changes with the files of a package database: cheap, no content is read."""
        try:
            stat = self._machine.at(path).stat()
        except OSError:
            return ""
        return f"{path} {stat.st_size} {stat.st_mtime_ns}"

    def _tell_hidden(self, masked: Sequence[str]) -> None:
        """Say so if the interpreter that the caller uses is not there in a sandbox."""
        if self._notify is None:
            return
        for folder in os.environ.get("PATH", "").split(":"):
            program = Path(folder, "python3")
            if os.access(program, os.X_OK):  # unlike Path.exists it raises nothing for folders of others
                hidden = next((mask for mask in masked if program.resolve().is_relative_to(mask)
                               or program.is_relative_to(mask)), None)  # fmt: skip
                if hidden:
                    self._notify(f"host: {program} lies in {hidden}, which is masked; the system's own python3 is used")
                return


def _interpreters(machine: Machine, masked: Sequence[str]) -> list[str]:
    """`path version` of each `python3` on the path of a sandbox, first found first."""
    found: list[str] = []
    for folder in base_environment()["PATH"].split(":"):
        program = machine.at(folder) / "python3"
        real = program.resolve()
        if not os.access(program, os.X_OK) or any(real.is_relative_to(machine.at(mask)) for mask in masked):
            continue
        try:
            printed = subprocess.run([program, "-IS", "-V"], capture_output=True, text=True, timeout=10, check=True)
        except (OSError, subprocess.SubprocessError):
            continue  # an interpreter that does not start is none
        found.append(f"{program} {printed.stdout.strip()}")
    return list(dict.fromkeys(found))


def _version(interpreters: Sequence[str]) -> str | None:
    match = re.search(r" Python (\d+\.\d+)", interpreters[0]) if interpreters else None
    return match[1] if match else None
