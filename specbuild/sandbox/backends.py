"""Backends by name."""

from __future__ import annotations

from specbuild.config import Settings
from specbuild.errors import ConfigError
from specbuild.sandbox.contract import Backend

BACKENDS = ("overlay",)


def open_backend(settings: Settings) -> Backend:
    """The backend that the settings name, not entered yet. Raises ConfigError for an unknown name."""
    if settings.backend not in {"auto", *BACKENDS}:
        raise ConfigError(
            f"there is no sandbox backend {settings.backend!r}", hint=f"known: auto, {', '.join(BACKENDS)}"
        )
    from specbuild.sandbox.overlay import OverlayBackend

    return OverlayBackend(settings.cache_dir / "store")


_ON_THE_HOSTS_NETWORK = frozenset({"overlay"})


def shares_loopback(backend: Backend) -> bool:
    """Whether Commands with network reach what listens on the loopback interface of this machine."""
    return backend.name in _ON_THE_HOSTS_NETWORK
