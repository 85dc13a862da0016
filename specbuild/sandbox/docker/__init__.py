"""Sandboxes out of a Docker-compatible engine's containers and images; see `backend.DockerBackend`.

The name is loaded on first use: what is below imports aiodocker, which takes a while.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from specbuild.sandbox.docker.backend import DockerBackend

__all__ = ["DockerBackend"]


def __getattr__(name: str) -> object:
    if name != "DockerBackend":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from specbuild.sandbox.docker.backend import DockerBackend

    return DockerBackend
