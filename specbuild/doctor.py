"""What works on this machine: each thing that SpecBuild needs, looked at for real, with what to do about it."""

from __future__ import annotations

import os
import platform
import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import anyio.to_thread

from specbuild.bases.apt_sources import debian_mirrors, host_sources, public_uri
from specbuild.bases.bootstrap import KEYRING
from specbuild.bases.masks import Machine
from specbuild.bases.programs import find_program
from specbuild.config import Settings
from specbuild.errors import ConfigError, EngineNotRunningError, SpecBuildError, StoreError
from specbuild.sandbox.backends import named_backend, open_backend
from specbuild.sandbox.contract import Finding
from specbuild.sandbox.docker.endpoint import find_endpoint
from specbuild.sandbox.passthrough import host_settings
from specbuild.storage import on_disk

DISK_NEEDED = 5 << 30
"""Bytes: three bases, and room for a few environments."""

MEMORY_NEEDED = 1 << 30
"""Bytes that should be available; compilers and test suites need more."""

_NO_STORE = {"overlay", "overlayfs", "nfs", "nfs4", "cifs", "smb3", "9p", "vfat", "exfat", "fuse.sshfs"}
"""Filesystems whose files cannot be the upper layer of an overlay (Linux, filesystems/overlayfs.rst)."""


async def examine(settings: Settings) -> tuple[Finding, ...]:
    """Everything that a build needs, the sandboxes by a real fork. What is only for information is always ok."""
    try:
        with on_disk(settings.cache_dir):
            found = [*await anyio.to_thread.run_sync(_machine, settings)]
            found += await _sandboxes(settings)
            found += [*await anyio.to_thread.run_sync(_tools, settings), await _engines()]
    except StoreError as error:
        return (_system(), _cores(), _memory(), Finding("cache", False, error.message, error.hint))
    return tuple(found)


def _machine(settings: Settings) -> list[Finding]:
    return [_system(), _cores(), _memory(), _disk(settings.cache_dir)]


def _tools(settings: Settings) -> list[Finding]:
    return [_git(), _bases(settings), _mirror(settings), *_network(settings)]


async def _sandboxes(settings: Settings) -> list[Finding]:
    """The backend's own probe: kernel, namespaces, ids, and a fork that is run, frozen and discarded.

    With `auto`, those of overlay; if they fail, those of the container engine that takes its place, and why.
    """
    try:
        if settings.backend != "auto":
            return await _probed(settings.backend, settings)
        overlay = await _probed("overlay", settings)
        if all(finding.ok for finding in overlay):
            return overlay
        bad = next(finding for finding in overlay if not finding.ok)
        engine = await _probed("docker", settings)
        if not all(finding.ok for finding in engine):
            return [*overlay, *engine]
        told = [replace(finding, ok=True) for finding in overlay]
        return [
            *told,
            Finding("sandbox", True, f"a container engine takes the place of overlay: {bad.detail}"),
            *engine,
        ]
    except SpecBuildError as error:
        return [Finding("sandbox", False, error.message, error.hint)]


async def _probed(name: str, settings: Settings) -> list[Finding]:
    open_backend(settings)  # raises for an unknown name
    probe = await named_backend(name, settings.cache_dir).probe()
    named = [Finding(f"{probe.backend}: {f.name}", f.ok, f.detail, f.hint) for f in probe.findings]
    return named or [Finding(probe.backend, probe.ok, "a sandbox was forked, run, frozen and discarded")]


def _system() -> Finding:
    name = Machine(Path("/")).os_release().get("PRETTY_NAME", platform.system())
    detail = f"{name}, {platform.machine()}, Python {platform.python_version()}"
    if platform.system() != "Linux":
        return Finding("system", False, detail, "sandboxes need Linux: use a virtual machine or a container")
    return Finding("system", True, detail)


def _cores() -> Finding:
    usable, all_of_them = len(os.sched_getaffinity(0)), os.cpu_count() or 1
    return Finding("cores", True, f"{usable} of {all_of_them} usable")


def _memory() -> Finding:
    fields = dict(line.split(":", 1) for line in Machine(Path("/")).text("/proc/meminfo").splitlines() if ":" in line)
    available, total = (int(fields.get(name, "0 kB").split()[0]) << 10 for name in ("MemAvailable", "MemTotal"))
    ok = available >= MEMORY_NEEDED
    hint = "" if ok else "end other programs, or give the machine more memory: tests may be killed"
    return Finding("memory", ok, f"{_gib(available)} of {_gib(total)} available", hint)


def _disk(cache: Path) -> Finding:
    there = next(path for path in (cache, *cache.parents) if path.exists())
    free = shutil.disk_usage(there).free
    kind = _filesystem(there)
    detail = f"{_gib(free)} free at {cache} ({kind})"
    if kind in _NO_STORE:
        return Finding("disk", False, detail, f"{kind} cannot hold overlays: set SPECBUILD_CACHE_DIR to a local disk")
    ok = free >= DISK_NEEDED
    hint = "" if ok else "free some space (`specbuild cache prune`), or set SPECBUILD_CACHE_DIR to a larger disk"
    return Finding("disk", ok, detail, hint)


def _filesystem(path: Path) -> str:
    """The type of the filesystem that a path lies on (proc(5), mountinfo): the last of the longest mount points."""
    real = path.resolve()
    best, kind = -1, "unknown"
    for line in Machine(Path("/")).text("/proc/self/mountinfo").splitlines():
        fields, _, rest = line.partition(" - ")
        point = fields.split()[4]
        if real.is_relative_to(point) and len(point) >= best:
            best, kind = len(point), rest.split()[0]
    return kind


def _git() -> Finding:
    if not find_program("git"):
        return Finding("git", False, "not installed: repositories cannot be cloned", "apt-get install git")
    return Finding("git", True, _printed("git", "--version"))


def _bases(settings: Settings) -> Finding:
    """What `debian:` bases would be made with."""
    cached = sorted(path.stem for path in (settings.cache_dir / "bases").glob("debian-*.json"))
    kept = f"; kept here: {', '.join(cached)}" if cached else ""
    if path := find_program("mmdebstrap"):
        return Finding("bases", True, f"made by {path}{kept}", _keyring_hint())
    if os.geteuid() == 0 and (path := find_program("debootstrap")):
        return Finding("bases", True, f"made by {path}{kept}", _keyring_hint())
    if all(find_program(name) for name in ("perl", "apt-get", "dpkg-deb")):
        return Finding("bases", True, f"made by mmdebstrap, which is fetched through apt when it is needed{kept}")
    hint = "install mmdebstrap (`apt-get install mmdebstrap`, `dnf install mmdebstrap`), or use --base host"
    return Finding("bases", bool(cached), f"nothing to make debian: bases with{kept}", hint)


def _keyring_hint() -> str:
    return "" if Path(KEYRING).is_file() else "apt-get install debian-archive-keyring, or it is fetched when needed"


def _mirror(settings: Settings) -> Finding:
    if settings.debian_mirror:
        return Finding("Debian mirror", True, f"{public_uri(settings.debian_mirror)}, as set")
    mirrors = debian_mirrors(host_sources())
    if mirrors is None:
        return Finding("Debian mirror", True, "the default of the tool: this host's apt has none of Debian")
    return Finding("Debian mirror", True, f"{public_uri(mirrors.main)}, from this host's apt")


def _network(settings: Settings) -> Iterator[Finding]:
    """What Steps are given of the host's network settings."""
    host = host_settings(settings.cache_dir / "settings")
    proxy = host.env.get("https_proxy") or host.env.get("http_proxy")
    yield Finding("proxy", True, host.redact(f"passed on: {proxy}") if proxy else "none")
    ours = "SSL_CERT_FILE" in host.env
    yield Finding("certificates", True, "this host's own bundle is passed on" if ours else "those of each base")
    indexes = [host.env[name] for name in ("UV_DEFAULT_INDEX", "UV_INDEX_URL", "UV_INDEX") if name in host.env]
    detail = host.redact(f"passed on: {', '.join(indexes)}") if indexes else "the defaults of uv and pip"
    yield Finding("package indexes", True, detail, "; ".join(host.redact(note) for note in host.notes))


async def _engines() -> Finding:
    """Not needed where overlay works; what keeps one from answering is told, so that nobody relies on it."""
    there = [name for name in ("docker", "podman") if find_program(name)]
    names = ", ".join(there) or "no program of one"
    from specbuild.sandbox.docker.probe import ask_engine  # aiodocker takes a while to import

    try:
        endpoint = find_endpoint()
    except EngineNotRunningError as error:
        return Finding("container engines", True, f"{names}; none listens (none is needed)", error.hint)
    except ConfigError as error:
        return Finding("container engines", True, f"{names}; {error.message} (none is needed)", error.hint)
    try:
        about = await ask_engine(endpoint)
    except SpecBuildError as error:
        return Finding("container engines", True, f"{names}; {error.message} (none is needed)", error.hint)
    return Finding("container engines", True, f"{names}; {about} (not needed)")


def _printed(*command: str) -> str:
    try:
        return subprocess.run(command, capture_output=True, text=True, timeout=10, check=True).stdout.strip()
    except (OSError, subprocess.SubprocessError) as error:
        return f"`{' '.join(command)}` fails: {error}"


def _gib(count: int) -> str:
    return f"{count / (1 << 30):.1f} GiB"
