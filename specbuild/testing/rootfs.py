"""Root filesystems for tests: a tiny one from what the host has, and Debian's smallest."""

from __future__ import annotations

import fcntl
import io
import re
import shutil
import subprocess
import tarfile
from pathlib import Path

import platformdirs

from specbuild.errors import BaseUnavailableError

_FOLDERS = ("dev", "etc", "proc", "repo", "root", "run", "sys", "tmp", "usr", "usr/bin", "usr/lib", "var", "var/tmp")
_FILES = {
    "etc/passwd": "root:x:0:0:root:/root:/bin/sh\nnobody:x:65534:65534:nobody:/nonexistent:/bin/sh\n",
    "etc/group": "root:x:0:\nnogroup:x:65534:\n",
    "etc/hostname": "tiny\n",
    "etc/os-release": 'ID=tiny\nPRETTY_NAME="SpecBuild tiny root"\n',
}
_PROGRAMS = """
    sh cat ls cp mv rm mkdir rmdir ln chmod chown touch sleep env id dd df du head mkfifo mknod readlink sort stat
    tail tr true truncate wc false find cksum cmp grep kill nohup pwd seq setsid sync timeout uname yes perl basename
    cut date dirname mktemp sed sha256sum tee uniq
"""
"""Programs of the host that the tiny root has, so far as the host has them. perl can make any system call."""
_PERL_MODULES = "strict warnings Socket POSIX Fcntl Errno IO::Select IO::Socket::INET IO::Socket::UNIX"


def tiny_rootfs(path: Path) -> Path:
    """Write a tar of a root filesystem with a shell, the usual small programs and perl to `path`; returns it.

    Everything is copied from the host, with the libraries that the loader names. Takes well below a second.
    """
    programs = {name: Path(found).resolve() for name in _PROGRAMS.split() if (found := shutil.which(name))}
    with tarfile.open(path, "w", format=tarfile.PAX_FORMAT) as tar:
        for folder in _FOLDERS:
            _add_folder(tar, folder)
        for name, text in _FILES.items():
            _add_bytes(tar, name, text.encode(), 0o644)
        for link in ("bin", "sbin"):
            _add_link(tar, link, "usr/bin")
        for name, program in programs.items():
            _add_bytes(tar, f"usr/bin/{name}", program.read_bytes(), 0o755)
        for folder in ("lib", "lib64"):
            _add_link(tar, folder, f"usr/{folder}")
        modules = _perl_modules() if shutil.which("perl") else []
        for file in sorted({*_libraries([*programs.values(), *(m for m in modules if m.suffix == ".so")]), *modules}):
            _add_bytes(tar, _merged(file), file.read_bytes(), 0o755)
    return path


def debian_rootfs(release: str = "bookworm") -> Path:
    """A tar of Debian's minbase, made by mmdebstrap once and then kept in the user's cache folder.

    Raises BaseUnavailableError without mmdebstrap, or when it fails.
    """
    folder = platformdirs.user_cache_path("specbuild") / "testing"
    folder.mkdir(parents=True, exist_ok=True)
    target = folder / f"debian-{release}.tar"
    with (folder / f"debian-{release}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not target.exists():
            _mmdebstrap(release, target)
    return target


def _mmdebstrap(release: str, target: Path) -> None:
    if not shutil.which("mmdebstrap"):
        raise BaseUnavailableError("a Debian root filesystem needs mmdebstrap", hint="apt-get install mmdebstrap")
    unfinished = target.with_name(f".{target.name}.part")
    done = subprocess.run(
        ["mmdebstrap", "--variant=minbase", "--format=tar", release, str(unfinished)],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        unfinished.unlink(missing_ok=True)
        raise BaseUnavailableError(f"mmdebstrap could not make {release}: {done.stderr.strip()[-500:]}")
    unfinished.rename(target)


def _libraries(programs: list[Path]) -> set[Path]:
    """The shared libraries of the programs and the loader, under the names by which they ask for them."""
    listed = subprocess.run(["ldd", *map(str, programs)], capture_output=True, text=True, check=False).stdout
    return {Path(name) for name in re.findall(r"(?:=> |^\t)(/\S+)", listed, re.MULTILINE)}


def _perl_modules() -> list[Path]:
    """The files that perl has loaded when it uses a few of its own modules."""
    code = " ".join(f"use {name};" for name in _PERL_MODULES.split())
    show = 'require Config_heavy if 0; print join("\\n", values %INC, @DynaLoader::dl_shared_objects), "\\n"'
    listed = subprocess.run(["perl", "-e", f"{code} {show}"], capture_output=True, text=True, check=False).stdout
    return [Path(name) for name in listed.splitlines() if name.startswith("/")]


def _merged(path: Path) -> str:
    """Where a file lies when `/bin` and `/lib` are links into `/usr`, as in the tiny root."""
    name = str(path).lstrip("/")
    return name if name.startswith("usr/") else f"usr/{name}"


def _add_folder(tar: tarfile.TarFile, name: str) -> None:
    entry = tarfile.TarInfo(name)
    entry.type, entry.mode = tarfile.DIRTYPE, 0o1777 if name.endswith("tmp") else 0o755
    tar.addfile(entry)


def _add_link(tar: tarfile.TarFile, name: str, target: str) -> None:
    entry = tarfile.TarInfo(name)
    entry.type, entry.linkname, entry.mode = tarfile.SYMTYPE, target, 0o777
    tar.addfile(entry)


def _add_bytes(tar: tarfile.TarFile, name: str, data: bytes, mode: int) -> None:
    entry = tarfile.TarInfo(name)
    entry.size, entry.mode = len(data), mode
    tar.addfile(entry, io.BytesIO(data))
