"""Find mmdebstrap or debootstrap, or fetch mmdebstrap through the host's apt without installing it.

mmdebstrap is one Perl program that needs nothing but perl, apt and dpkg, which every Debian and Ubuntu has; unpacked
into the cache it runs from there, so nobody needs to be root to get it.
"""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

import anyio

from specbuild.bases.bootstrap import KEYRING, Tool
from specbuild.bases.programs import find_program, run_program
from specbuild.errors import BaseUnavailableError, TransientError
from specbuild.tail import end_of, last_lines

_INSTALL = "install it: `apt-get install mmdebstrap` (Fedora: `dnf install mmdebstrap`, or debootstrap)"


async def find_tool(cache: Path) -> Tool:
    """The tool to make bases with; what has to be fetched for it goes to the folder `cache`.

    Raises BaseUnavailableError where there is none and none can be fetched.
    """
    keyring = await _keyring(cache)
    if path := find_program("mmdebstrap"):
        return Tool((path,), "mmdebstrap", keyring)
    if os.geteuid() == 0 and (path := find_program("debootstrap")):
        return Tool((path,), "debootstrap", keyring)
    if not (perl := find_program("perl")):
        raise BaseUnavailableError(
            "this machine has neither mmdebstrap nor perl, which it is written in", hint=_INSTALL
        )
    script = await _fetch(cache, "mmdebstrap", "usr/bin/mmdebstrap")
    return Tool((perl, str(script)), "mmdebstrap", keyring)


async def _keyring(cache: Path) -> str:
    if await anyio.Path(KEYRING).is_file():
        return KEYRING
    try:
        return str(await _fetch(cache, "debian-archive-keyring", KEYRING.lstrip("/")))
    except BaseUnavailableError as error:
        raise BaseUnavailableError(
            "the keys of the Debian archive are not on this machine: without them no download can be trusted",
            hint="install them: the package `debian-archive-keyring` (Debian, Ubuntu), `debian-keyring` (Fedora)",
        ) from error


async def _fetch(cache: Path, package: str, member: str) -> Path:
    """A file of a package of the host's own distribution, unpacked under `cache`."""
    path = cache / package / member
    if path.is_file():
        return path
    if not find_program("apt-get") or not find_program("dpkg-deb"):
        raise BaseUnavailableError(f"this machine has no {package}, and no apt to fetch it with", hint=_INSTALL)
    await anyio.Path(cache).mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=f".{package}.", dir=cache) as folder:
        work = Path(folder)
        await _download(work, package)
        (archive,) = [path async for path in anyio.Path(work).glob("*.deb")]
        tree = work / "tree"
        if await run_program(["dpkg-deb", "-x", str(archive), str(tree)], log=work / "log", env=_environment()):
            raise BaseUnavailableError(f"{package} cannot be unpacked:\n{_tail(work / 'log')}", hint=_INSTALL)
        if not (tree / member).is_file():
            raise BaseUnavailableError(f"{package} holds no {member}", hint=_INSTALL)
        if not (cache / package).exists():
            tree.rename(cache / package)
    return path


async def _download(work: Path, package: str) -> None:
    """Download with the host's package lists, or with private ones where it has none (as in container images)."""
    log = work / "log"
    plain = ["apt-get", "download", package]
    if await run_program(plain, log=log, env=_environment(), cwd=work) == 0:
        return
    for folder in ("lists/partial", "cache/archives/partial"):
        (work / folder).mkdir(parents=True, exist_ok=True)
    private = ["-o", f"Dir::State::Lists={work}/lists", "-o", f"Dir::Cache={work}/cache"]
    for argv in (["apt-get", *private, "update"], ["apt-get", *private, "download", package]):
        if await run_program(argv, log=log, env=_environment(), cwd=work):
            raise _why(package, log)


def _why(package: str, log: Path) -> BaseUnavailableError | TransientError:
    tail = _tail(log)
    if "Unable to locate package" in tail:
        return BaseUnavailableError(f"the host's package sources have no {package}", hint=_INSTALL)
    return TransientError(f"{package} could not be downloaded through the host's apt:\n{tail}", hint=_INSTALL)


def _tail(log: Path) -> str:
    return "\n".join(last_lines(end_of(log), 12))


def _environment() -> dict[str, str]:
    kept = ("http_proxy", "https_proxy", "no_proxy", "HOME")
    found = {name: value for name in kept if (value := os.environ.get(name) or os.environ.get(name.upper()))}
    return found | {"PATH": os.environ.get("PATH", "") + ":/usr/sbin:/usr/bin:/sbin:/bin", "LC_ALL": "C"}
