"""What is put into each base beside its root filesystem: the programs that make a Command's surroundings.

A container is an envelope. The root filesystem of a Sandbox lies in the folder `rootfs` of it, where the engine, which
puts files and mounts of its own into the root of each container, leaves it alone; bubblewrap makes it the root of a
Command, as on the overlay backend. It and a shell come from this machine, with the loader and libraries that they
need, because there may be neither in a base.
"""

from __future__ import annotations

import io
import re
import shutil
import subprocess
import tarfile
from collections.abc import Iterator
from pathlib import Path

from specbuild.errors import SandboxUnavailableError
from specbuild.sandbox.overlay import bwrap, seccomp

ROOTFS = "rootfs"
"""The folder of a container that holds the Sandbox's root filesystem."""
FOLDER = "specbuild"
"""The folder of a container that holds these programs."""
LOADER = f"/{FOLDER}/ld.so"
LIBRARIES = f"/{FOLDER}/lib"


def launch(program: str) -> list[str]:
    """How a program of the tools is started: by its own loader, which finds the libraries beside it."""
    return [LOADER, "--library-path", LIBRARIES, f"/{FOLDER}/{program}"]


def launch_inside(program: str, folder: str) -> list[str]:
    """As `launch`, where the tools are shown at `folder`."""
    return [f"{folder}/ld.so", "--library-path", f"{folder}/lib", f"{folder}/{program}"]


def files() -> dict[str, tuple[bytes, int]]:
    """Content and mode of each file of the tools, by its path in the container. Raises SandboxUnavailableError."""
    found = bwrap.find()
    shell = Path(shutil.which("dash") or "/bin/sh")
    readlink = Path(shutil.which("readlink") or "/bin/readlink")
    programs = {"bwrap": found.program, "sh": shell, "readlink": readlink}
    loader, libraries = _needed([*programs.values()], found.libraries)
    tools = {name: (path.read_bytes(), 0o755) for name, path in programs.items()}
    tools["ld.so"] = (loader.read_bytes(), 0o755)
    tools |= {f"lib/{name}": (path.read_bytes(), 0o644) for name, path in libraries.items()}
    tools |= {"seccomp": (seccomp.program(), 0o644), "empty": (b"", 0o444), "input": (b"", 0o600)}
    return {f"{FOLDER}/{name}": content for name, content in tools.items()}


def _needed(programs: list[Path], own: tuple[Path, ...]) -> tuple[Path, dict[str, Path]]:
    """The loader, and the libraries by the names under which they are asked for."""
    done = subprocess.run(["ldd", *map(str, programs)], capture_output=True, text=True, check=False)
    libraries = {name: Path(path) for name, path in re.findall(r"(\S+) => (/\S+)", done.stdout)}
    loaders = re.findall(r"^\s+(/\S*ld[-.]\S+) \(", done.stdout, re.MULTILINE)
    if not loaders:
        raise SandboxUnavailableError(
            f"the loader of {programs[0]} was not found: ldd said {done.stdout.strip() or done.stderr.strip()!r}",
            hint="container engines need bubblewrap and a shell that `ldd` can read on this machine",
        )
    return Path(loaders[0]), libraries | {path.name: path for path in own}


def members() -> Iterator[tuple[tarfile.TarInfo, bytes]]:
    """The tools as members of an archive, folders first."""
    for folder in ("tmp", FOLDER, LIBRARIES.lstrip("/")):  # bubblewrap makes its root on /tmp
        yield _folder(folder), b""
    for path, (data, mode) in files().items():
        info = tarfile.TarInfo(path)
        info.size, info.mode = len(data), mode
        yield info, data


def _folder(path: str, mode: int = 0o755) -> tarfile.TarInfo:
    info = tarfile.TarInfo(path)
    info.type, info.mode = tarfile.DIRTYPE, mode
    return info


def add(tar: tarfile.TarFile) -> None:
    """Write the tools to an archive."""
    for info, data in members():
        tar.addfile(info, io.BytesIO(data))
