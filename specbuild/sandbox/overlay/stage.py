"""Mounts that the helper makes, in its own mount namespace and in the short-lived ones of each Command.

The stage is a small tmpfs over `/tmp`, which only the helper's namespaces have: a place that an unprivileged identity
can always reach, wherever the store lies. The current folder is the store's, and all its paths are relative: neither
the rights on the folders above the store matter, nor does a Sandbox see where on the host it lies.
"""

from __future__ import annotations

import contextlib
import errno
import os
import stat
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from specbuild.sandbox.overlay import kernel

STAGE = "/tmp"  # noqa: S108 - a private mount over it, see above
ROOT = f"{STAGE}/root"
"""Where the merged root filesystem of a Command is mounted."""
BINDS = f"{STAGE}/binds"
HOST = f"{STAGE}/host"
"""Where the host's root is mounted once more, to be a lower layer."""
SYS = f"{STAGE}/sys"
"""The host's `/sys`, read-only, with empty folders over what `prepare` was told to hide."""
EMPTY_FILE = f"{STAGE}/empty-file"
EMPTY_FOLDER = f"{STAGE}/empty-folder"

_PLAIN_OPTIONS = {"index": "off"}
"""Layers must not refer to each other, so that they can be flattened: `userxattr` implies no `redirect_dir` and no
`metacopy`; an index would be kept in the work folder, which lasts for one Command only."""
_CLASSIC_LIMIT = 4000
"""Bytes of options that mount(2) takes: one page, less than that to be safe."""


@dataclass(frozen=True, slots=True)
class Stack:
    """Layers to mount as one: `lowers` from the lowest up, `upper` and `work` both or neither."""

    lowers: tuple[str, ...]
    upper: str | None = None
    work: str | None = None


def prepare(hidden: Iterable[str] = ()) -> int:
    """Make the stage, once in the life of the helper, after it has its own mount namespace.

    `hidden` are folders below `/sys`; those that are not there are left out.
    Returns a descriptor of the `/tmp` that is now covered, for `copy_mount`.
    """
    kernel.mount("none", "/", "none", kernel.MS_REC | kernel.MS_PRIVATE)
    covered = os.open(STAGE, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
    kernel.mount("tmpfs", STAGE, "tmpfs", kernel.MS_NODEV | kernel.MS_NOSUID, "mode=755")
    for folder in (ROOT, BINDS, HOST, SYS, EMPTY_FOLDER):
        os.mkdir(folder, 0o755)  # noqa: PTH102 - pathlib costs the helper its start-up time
    os.close(os.open(EMPTY_FILE, os.O_CREAT | os.O_WRONLY | os.O_CLOEXEC, 0o444))
    _attach_read_only("/sys", SYS)
    for path in hidden:
        if os.path.isdir(path):  # noqa: PTH112
            _attach_read_only(EMPTY_FOLDER, STAGE + path)
    return covered


def _attach_read_only(source: str, target: str) -> None:
    tree = kernel.open_tree(source, recursive=True)
    try:
        attributes = kernel.MOUNT_ATTR_RDONLY | kernel.MOUNT_ATTR_NOSUID | kernel.MOUNT_ATTR_NODEV
        kernel.mount_setattr(tree, attributes, recursive=True)
        kernel.attach(tree, target)
    finally:
        os.close(tree)


def mount_stack(stack: Stack, target: str = ROOT) -> None:
    """Mount `stack` at `target`. Raises OSError.

    The host's root as a lower layer is an overlay of its own: the kernel refuses (ELOOP) a lower layer that lies inside
    of another, as every layer of a store on the root filesystem would.
    """
    if stack.lowers[0] == "/" and target != HOST:
        mount_stack(Stack(("/", EMPTY_FOLDER)), HOST)
        stack = replace(stack, lowers=(HOST, *stack.lowers[1:]))
    try:
        _mount_by_descriptor(stack, target)
    except OSError as error:
        if error.errno not in {errno.EINVAL, errno.ENOSYS}:
            raise
        _mount_classic(stack, target, error)


def _mount_by_descriptor(stack: Stack, target: str) -> None:
    """The mount API of Linux 5.2; `lowerdir+` came with 6.8."""
    context = kernel.fsopen("overlay")
    try:
        kernel.fsconfig(context, "source", "specbuild")
        for lower in reversed(stack.lowers):
            kernel.fsconfig(context, "lowerdir+", lower)
        if stack.upper and stack.work:
            kernel.fsconfig(context, "upperdir", stack.upper)
            kernel.fsconfig(context, "workdir", stack.work)
            kernel.fsconfig(context, "volatile")
        for name, value in _PLAIN_OPTIONS.items():
            kernel.fsconfig(context, name, value)
        kernel.fsconfig(context, "userxattr")
        mounted = kernel.fsmount(context, kernel.MOUNT_ATTR_NODEV)
    finally:
        os.close(context)
    try:
        kernel.attach(mounted, target)
    finally:
        os.close(mounted)


def _mount_classic(stack: Stack, target: str, cause: OSError) -> None:
    """The one call of older kernels, which takes a page of options."""
    options = [f"lowerdir={':'.join(reversed(stack.lowers))}"]
    if stack.upper and stack.work:
        options += [f"upperdir={stack.upper}", f"workdir={stack.work}", "volatile"]
    options += [f"{name}={value}" for name, value in _PLAIN_OPTIONS.items()]
    data = ",".join([*options, "userxattr"])
    if len(data) > _CLASSIC_LIMIT:
        raise OSError(errno.E2BIG, f"{len(stack.lowers)} layers are too many for this kernel's mount call") from cause
    kernel.mount("specbuild", target, "overlay", kernel.MS_NODEV, data)


def cover_file(path: str, source: str) -> bool:
    """Show `source`, read-only, in place of the regular file `path` of the merged root, if that is there.

    Nothing of it gets into the layer, and no link in the layer can lead the mount elsewhere.
    """
    root = os.open(ROOT, os.O_PATH | os.O_CLOEXEC)
    try:
        target = kernel.open_in_root(root, path, os.O_PATH)
    except OSError:
        return False
    finally:
        os.close(root)
    try:
        if not stat.S_ISREG(os.fstat(target).st_mode):
            return False
        tree = kernel.open_tree(source, recursive=True)
        try:
            kernel.mount_setattr(tree, kernel.MOUNT_ATTR_RDONLY, recursive=True)
            kernel.attach(tree, target)
        finally:
            os.close(tree)
    finally:
        os.close(target)
    return True


def copy_mount(source: str, covered_tmp: int, *, writable: bool) -> int:
    """A detached copy of what lies at the host path `source`; to be made before the namespace of a Command is."""
    # Recursive: in a user namespace, a mount with locked mounts below it can only be copied with them.
    if source.startswith(f"{STAGE}/"):
        tree = kernel.open_tree(source.removeprefix(f"{STAGE}/"), folder=covered_tmp, recursive=True)
    else:
        tree = kernel.open_tree(source, recursive=True)
    try:
        attributes = kernel.MOUNT_ATTR_NOSUID | kernel.MOUNT_ATTR_NODEV
        kernel.mount_setattr(tree, attributes | (0 if writable else kernel.MOUNT_ATTR_RDONLY), recursive=True)
    except BaseException:
        os.close(tree)
        raise
    return tree


def bind_place(number: int, *, folder: bool) -> str:
    """Where on the stage the bind of that number is attached.

    Files and folders have their own names: the stage is shared, and replacing one by the other would take away what
    another Command has mounted there.
    """
    return f"{BINDS}/{number}{'d' if folder else 'f'}"


def place_binds(trees: Sequence[int]) -> None:
    """Attach detached mounts on the stage, where `bind_place` says."""
    for number, tree in enumerate(trees):
        folder = stat.S_ISDIR(os.fstat(tree).st_mode)
        path = bind_place(number, folder=folder)
        with contextlib.suppress(FileExistsError):
            if folder:
                os.mkdir(path, 0o755)  # noqa: PTH102
            else:
                os.close(os.open(path, os.O_CREAT | os.O_WRONLY | os.O_EXCL | os.O_CLOEXEC, 0o444))
        kernel.attach(tree, path)
