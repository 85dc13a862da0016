"""Host paths that a Command is shown."""

from __future__ import annotations

import os
import posixpath
import stat
from collections.abc import Callable, Sequence
from typing import Any

from specbuild.errors import SandboxError
from specbuild.sandbox.contract import Bind
from specbuild.sandbox.overlay import kernel, stage
from specbuild.sandbox.overlay.isolation import Shown

FOLDER = "/dev/specbuild/"
"""Where all targets lie."""


def prepare(
    binds: Sequence[Bind], userns: int | None, send: Callable[[int], int]
) -> tuple[list[dict[str, Any]], list[Shown]]:
    """What to tell the helper and bubblewrap.

    With `userns`, the engine is root outside of the Sandbox's user namespace: it copies the mounts itself, for which
    the helper may lack the rights, and maps their ids, so that what the engine owns is the Sandbox's root's and the
    other way round. `send` takes over a descriptor and returns its number in the message. Raises SandboxError.
    """
    told: list[dict[str, Any]] = []
    shown: list[Shown] = []
    for number, bind in enumerate(binds):
        if posixpath.normpath(bind.target) != bind.target or not bind.target.startswith(FOLDER):
            raise SandboxError(f"{bind.target} is no place for a bind: it must lie under {FOLDER}")
        source = os.path.realpath(bind.source)
        try:
            if userns is None:
                told.append({"path": source, "rw": bind.writable})
            else:
                told.append({"fd": send(_mapped_mount(source, userns, writable=bind.writable))})
            place = stage.bind_place(number, folder=stat.S_ISDIR(os.stat(source).st_mode))  # noqa: PTH116
        except OSError as error:
            raise SandboxError(f"{bind.source} cannot be shown in a sandbox: {error}") from error
        shown.append(Shown(place, bind.target, bind.writable))
    return told, shown


def _mapped_mount(source: str, userns: int, *, writable: bool) -> int:
    attributes = kernel.MOUNT_ATTR_NOSUID | kernel.MOUNT_ATTR_NODEV
    attributes |= 0 if writable else kernel.MOUNT_ATTR_RDONLY
    tree = kernel.open_tree(source)
    try:
        kernel.mount_setattr(tree, attributes)
        try:
            kernel.mount_setattr(tree, kernel.MOUNT_ATTR_IDMAP, userns=userns)
        except OSError:  # a filesystem or kernel without mapped mounts: only what others may do is possible
            if writable:
                raise
    except BaseException:
        os.close(tree)
        raise
    return tree
