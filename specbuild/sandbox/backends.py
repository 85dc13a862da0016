"""Backends by name, and which one this machine is fit for."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

from specbuild.config import Settings
from specbuild.errors import ConfigError, SandboxUnavailableError, SpecBuildError
from specbuild.sandbox.contract import Backend, Probe, Served

BACKENDS = ("overlay", "docker")


@dataclass(frozen=True, slots=True)
class Choice:
    """A backend, and why it is this one."""

    backend: Backend
    name: str
    reason: str = ""
    """In words, when it is not what is usual."""


class Opening:
    """A session on the backend that the settings name; for `async with`, which gives the backend itself."""

    def __init__(self, settings: Settings, engine: str = "") -> None:
        self._settings = settings
        self._engine = engine
        self._backend: Backend | None = None
        self.reason = ""
        """Why another backend than overlay was taken by itself; empty otherwise."""

    @property
    def engine(self) -> str:
        """The address of the container engine that holds the files of the open session; empty where none does."""
        return self._backend.address if isinstance(self._backend, Served) else ""

    async def __aenter__(self) -> Backend:
        choice = await choose_backend(self._settings, self._engine)
        self.reason = choice.reason
        self._backend = await choice.backend.__aenter__()
        return self._backend

    async def __aexit__(self, *exc: object) -> None:
        if self._backend is not None:
            backend, self._backend = self._backend, None
            await backend.__aexit__(*exc)


def open_backend(settings: Settings, *, engine: str = "") -> Opening:
    """A session on the backend that the settings name; if that is `docker`, on the engine at that address, if given.

    Raises ConfigError for an unknown name.
    """
    if settings.backend not in {"auto", *BACKENDS}:
        raise ConfigError(
            f"there is no sandbox backend {settings.backend!r}",
            hint=f"known: auto, {', '.join(BACKENDS)}; `docker` is any engine that DOCKER_HOST names, Podman's too",
        )
    return Opening(settings, engine)


async def choose_backend(settings: Settings, engine: str = "") -> Choice:
    """What `settings.backend` stands for: overlay, unless this machine cannot fork with it and an engine can be had.

    `engine` is the address of the one that `docker` stands for, by default the one that is found. Raises
    SandboxUnavailableError when there is neither.
    """
    if settings.backend != "auto":
        return Choice(named_backend(settings.backend, settings.cache_dir, engine=engine), settings.backend)
    overlay = Choice(named_backend("overlay", settings.cache_dir), "overlay")
    if _known_to_work(settings.cache_dir):
        return overlay
    probe = await overlay.backend.probe()
    if probe.ok:
        _note_that_it_works(settings.cache_dir)
        return overlay
    return _fallback(overlay, probe, settings.cache_dir)


def _fallback(overlay: Choice, probe: Probe, cache_dir: Path) -> Choice:
    """An engine in place of an overlay that does not work. Raises SandboxUnavailableError."""
    from specbuild.sandbox.docker.endpoint import find_endpoint

    bad = next(finding for finding in probe.findings if not finding.ok)
    why = f"{bad.name}: {bad.detail}"
    try:
        endpoint = find_endpoint()
    except SpecBuildError as error:
        raise SandboxUnavailableError(
            f"overlay sandboxes do not work on this machine ({why}), and {error.message}", hint=bad.hint or error.hint
        ) from error
    reason = f"forking on the container engine at {endpoint.address}: overlay sandboxes do not work here ({why})"
    return replace(overlay, backend=named_backend("docker", cache_dir), name="docker", reason=reason)


def named_backend(name: str, cache_dir: Path, *, engine: str = "") -> Backend:
    """One of BACKENDS, not entered yet; `engine` as of `choose_backend`."""
    if name == "docker":
        from specbuild.sandbox.docker import DockerBackend
        from specbuild.sandbox.docker.endpoint import endpoint_at

        return DockerBackend(cache_dir / "docker", endpoint_at(engine) if engine else None)
    from specbuild.sandbox.overlay import OverlayBackend

    return OverlayBackend(cache_dir / "store")


def _known_to_work(cache_dir: Path) -> bool:
    try:
        return _mark(cache_dir).read_text() == _boot()
    except OSError:
        return False


def _note_that_it_works(cache_dir: Path) -> None:
    """Until the machine is started again: what a fork needs does not go away by itself."""
    _mark(cache_dir).write_text(_boot())


def _mark(cache_dir: Path) -> Path:
    return cache_dir / "store" / "forks"


def _boot() -> str:
    return Path("/proc/sys/kernel/random/boot_id").read_text()


_ON_THE_HOSTS_NETWORK = frozenset({"overlay"})


def shares_loopback(backend: Backend) -> bool:
    """Whether Commands with network reach what listens on the loopback interface of this machine."""
    return backend.name in _ON_THE_HOSTS_NETWORK
