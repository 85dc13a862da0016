"""SpecBuild turns any code repository into a verified, reproducible environment by trying many routes at once.

Public names are loaded on first use, so that importing the package costs nothing.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

from specbuild._version import __version__

if TYPE_CHECKING:
    from specbuild.config import Settings
    from specbuild.environment import Environment
    from specbuild.errors import BuildFailed, SpecBuildError
    from specbuild.journey import build, open_environment, plan, run

_HOMES = {
    "BuildFailed": "specbuild.errors",
    "Environment": "specbuild.environment",
    "Settings": "specbuild.config",
    "SpecBuildError": "specbuild.errors",
    "build": "specbuild.journey",
    "open_environment": "specbuild.journey",
    "plan": "specbuild.journey",
    "run": "specbuild.journey",
}

__all__ = [
    "BuildFailed",
    "Environment",
    "Settings",
    "SpecBuildError",
    "__version__",
    "build",
    "open_environment",
    "plan",
    "run",
]


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value: object = getattr(importlib.import_module(_HOMES[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
