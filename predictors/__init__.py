"""Predictors: which Failure is coming, from what is known before and while a Step runs.

One module a kind of evidence. `reader()` gives a Reader of output with every signature of the modules here.
"""

from __future__ import annotations

from functools import cache

from specbuild.predictors import (
    backends,
    cargo,
    cmake,
    commands,
    compilers,
    configure,
    data,
    git,
    golang,
    installers,
    interpreter,
    jvm,
    limits,
    loaders,
    machine,
    meson,
    network,
    node,
    programs,
    runners,
    scripting,
    services,
    settings,
    toolchains,
)
from specbuild.predictors.reader import FailureReader, Index, Reader
from specbuild.predictors.signature import Signature

FAMILIES: dict[str, tuple[Signature, ...]] = {
    "compilers": compilers.SIGNATURES,
    "meson": meson.SIGNATURES,
    "cmake": cmake.SIGNATURES,
    "configure": configure.SIGNATURES,
    "git": git.SIGNATURES,
    "installers": installers.SIGNATURES,
    "backends": backends.SIGNATURES,
    "runners": runners.SIGNATURES,
    "interpreter": interpreter.SIGNATURES,
    "loaders": loaders.SIGNATURES,
    "node": node.SIGNATURES,
    "cargo": cargo.SIGNATURES,
    "golang": golang.SIGNATURES,
    "jvm": jvm.SIGNATURES,
    "toolchains": toolchains.SIGNATURES,
    "scripting": scripting.SIGNATURES,
    "services": services.SIGNATURES,
    "data": data.SIGNATURES,
    "settings": settings.SIGNATURES,
    "limits": limits.SIGNATURES,
    "network": network.SIGNATURES,
    "machine": machine.SIGNATURES,
    "commands": commands.SIGNATURES,
    "programs": programs.SIGNATURES,
}
"""All signatures by family; of several that match a line the first that makes something of it counts."""

__all__ = ["FAMILIES", "FailureReader", "Index", "Reader", "Signature", "index", "reader"]


@cache
def index() -> Index:
    """The signatures of all families, ready for readers; made once a process."""
    return Index([one for signatures in FAMILIES.values() for one in signatures])


def reader() -> Reader:
    """A Reader for the output of one command."""
    return Reader(index())
