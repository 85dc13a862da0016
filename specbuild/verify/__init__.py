"""Verification: no model judges. Runners write machine-readable reports, readers count them.

`checks_for` plans the ways to verify a Repo, `verify` carries one out and gives a Verdict, `same` compares two.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from specbuild.verify.checks import checks_for
    from specbuild.verify.judge import same, verify
    from specbuild.verify.verdict import Verdict

__all__ = ["Verdict", "checks_for", "same", "verify"]

_HOMES = {
    "Verdict": "specbuild.verify.verdict",
    "checks_for": "specbuild.verify.checks",
    "same": "specbuild.verify.judge",
    "verify": "specbuild.verify.judge",
}


def __getattr__(name: str) -> object:
    # Loaded on first use: events and environments need the Verdict alone.
    import importlib

    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value: object = getattr(importlib.import_module(_HOMES[name]), name)
    globals()[name] = value
    return value
