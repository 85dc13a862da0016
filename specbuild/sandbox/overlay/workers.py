"""What workers of the helper do, by name. Each takes the descriptors it was sent and its arguments, JSON both ways."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

from specbuild.sandbox.overlay import archive, image_layer, kernel, stage, trees
from specbuild.sandbox.overlay.isolation import HOSTNAME

HOSTS_FILE = f"{stage.STAGE}/hosts"
LONE_HOSTS_FILE = f"{stage.STAGE}/lone-hosts"
_LOCAL = f"127.0.0.1 localhost\n::1 localhost ip6-localhost ip6-loopback\n127.0.1.1 {HOSTNAME}\n"


def hosts() -> str:
    """The host's names, and the sandbox's own."""
    try:
        known = Path("/etc/hosts").read_text()
    except OSError:
        known = ""
    return f"{known.rstrip()}\n127.0.1.1 {HOSTNAME}\n" if "localhost" in known else _LOCAL


STAGED_FILES: dict[str, Callable[[], str]] = {"hosts": hosts, "lone-hosts": lambda: _LOCAL}
"""Small files that the helper puts on the stage."""


def _enter(root: str) -> None:
    os.chroot(root)
    os.chdir("/")


def _enter_stack(layers: dict[str, Any]) -> None:
    kernel.unshare(kernel.CLONE_NEWNS)
    stage.mount_stack(stage.Stack(**layers))
    _enter(stage.ROOT)


def unpack(fds: list[int], *, root: str) -> None:
    """A rootfs archive into a new layer."""
    with os.fdopen(fds[0], "rb", buffering=1 << 20) as stream:
        _enter(root)
        trees.unpack(stream)
        trees.ready_for_covers()


def unpack_layer(fds: list[int], *, root: str, lowers: list[str]) -> bool:
    """A layer of an image, on `lowers` (topmost first), into a new layer; whether it hides all that is below it."""
    below = [os.open(lower, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC) for lower in lowers]
    with os.fdopen(fds[0], "rb", buffering=1 << 20) as archive:
        _enter(root)
        return image_layer.Unpacking(below).run(archive)


def cover(fds: list[int], *, stack: dict[str, Any]) -> None:
    """See that the files over which the host's are shown are there, on top of the layers of an image."""
    _enter_stack(stack)
    trees.ready_for_covers()


def mask(fds: list[int], *, root: str, entries: list[dict[str, Any]]) -> None:
    """What hides host paths into a new layer."""
    trees.mask(root, entries)


def copy_in(fds: list[int], *, stack: dict[str, Any], target: str) -> None:
    """A tar stream into a folder of a Sandbox, owned by its root."""
    with os.fdopen(fds[0], "rb", buffering=1 << 20) as stream:
        _enter_stack(stack)
        os.makedirs(target, 0o755, exist_ok=True)  # noqa: PTH103
        _enter(target)
        trees.unpack(stream, owner=(0, 0))


def write(fds: list[int], *, stack: dict[str, Any], path: str, mode: int) -> None:
    """A file of a Sandbox."""
    with os.fdopen(fds[0], "rb") as data:
        _enter_stack(stack)
        trees.write_file(data, path, mode)


def read(fds: list[int], *, stack: dict[str, Any], path: str, limit: int) -> None:
    """A file of a Sandbox, into a pipe."""
    with os.fdopen(fds[0], "wb") as sink:
        _enter_stack(stack)
        trees.read_file(path, limit, sink.write)


def remove(fds: list[int], *, paths: list[str]) -> int:
    """Trees of the store; bytes freed."""
    return sum(trees.remove(path) for path in paths)


def measure(fds: list[int], *, path: str) -> int:
    """Bytes of a tree of the store."""
    return trees.measure(path)


def flatten(fds: list[int], *, layers: list[str], target: str, below: str) -> None:
    """Several layers into one, which lies on `below`; of the host's root all that it has is not seen from here."""
    trees.flatten(layers, target, None if below == "/" else below)


def overlap(fds: list[int], *, ours: list[str], theirs: list[str]) -> str:
    """What two groups of layers both change."""
    return trees.overlap(ours, theirs)


def layer(fds: list[int], *, path: str, without: str) -> int:
    """A layer of the store as an OCI layer, into a pipe or file; how many entries it has."""
    with os.fdopen(fds[0], "wb", buffering=1 << 20) as sink:
        return archive.write_layer(path, sink, without=without)


def root(fds: list[int], *, stack: dict[str, Any], without: str) -> int:
    """A merged root, into a pipe or file; how many entries it has."""
    with os.fdopen(fds[0], "wb", buffering=1 << 20) as sink:
        _enter_stack(stack)
        return archive.write_root(".", sink, without=without)


WORKERS: dict[str, Callable[..., Any]] = {
    work.__name__: work
    for work in (
        unpack,
        unpack_layer,
        cover,
        mask,
        copy_in,
        write,
        read,
        remove,
        measure,
        flatten,
        overlap,
        layer,
        root,
    )
}
