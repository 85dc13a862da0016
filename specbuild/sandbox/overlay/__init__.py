"""Sandboxes out of overlayfs snapshots and bubblewrap's isolation; see `backend.OverlayBackend`.

The name is loaded on first use: the helper process imports this package with the standard library only.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from specbuild.sandbox.overlay.backend import OverlayBackend

__all__ = ["OverlayBackend"]


def __getattr__(name: str) -> object:
    if name != "OverlayBackend":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from specbuild.sandbox.overlay.backend import OverlayBackend

    return OverlayBackend
