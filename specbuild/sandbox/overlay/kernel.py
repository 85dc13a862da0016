"""The system calls that Python has no name for: namespaces, the mount API of file descriptors, openat2, prctl.

Numbers above 423 are the same on every architecture that Linux has (include/uapi/asm-generic/unistd.h).
Every function raises OSError with the name of the call.
"""

from __future__ import annotations

import ctypes
import os
import struct

CLONE_NEWNS = 0x00020000
CLONE_NEWUSER = 0x10000000

AT_FDCWD = -100
AT_EMPTY_PATH = 0x1000
AT_RECURSIVE = 0x8000
OPEN_TREE_CLONE = 1
OPEN_TREE_CLOEXEC = os.O_CLOEXEC

MOUNT_ATTR_RDONLY = 0x01
MOUNT_ATTR_NOSUID = 0x02
MOUNT_ATTR_NODEV = 0x04
MOUNT_ATTR_IDMAP = 0x00100000

MS_NOSUID = 0x02
MS_NODEV = 0x04
MS_NOEXEC = 0x08
MS_REC = 0x4000
MS_PRIVATE = 1 << 18

PR_SET_PDEATHSIG = 1
PR_SET_DUMPABLE = 4
PR_SET_CHILD_SUBREAPER = 36

_SYS_OPEN_TREE = 428
_SYS_MOVE_MOUNT = 429
_SYS_FSOPEN = 430
_SYS_FSCONFIG = 431
_SYS_FSMOUNT = 432
_SYS_OPENAT2 = 437
_SYS_MOUNT_SETATTR = 442

_FSCONFIG_SET_FLAG = 0
_FSCONFIG_SET_STRING = 1
_FSCONFIG_CMD_CREATE = 6
_MOVE_MOUNT_F_EMPTY_PATH = 0x04
_MOVE_MOUNT_T_EMPTY_PATH = 0x40
_RESOLVE_NO_MAGICLINKS = 0x02
_RESOLVE_IN_ROOT = 0x10

_libc = ctypes.CDLL(None, use_errno=True)
_libc.syscall.restype = ctypes.c_long


def _checked(name: str, result: int) -> int:
    if result < 0:
        number = ctypes.get_errno()
        raise OSError(number, f"{name}: {os.strerror(number)}")
    return result


def _syscall(name: str, number: int, *args: int | bytes | ctypes.Array[ctypes.c_char] | None) -> int:
    wide = [ctypes.c_long(arg) if isinstance(arg, int) else arg for arg in args]
    return _checked(name, int(_libc.syscall(ctypes.c_long(number), *wide)))


def unshare(flags: int) -> None:
    """Give this process new namespaces."""
    _checked("unshare", int(_libc.unshare(flags)))


def setns(fd: int, kind: int) -> None:
    """Enter the namespace of `kind` (a CLONE_NEW… flag) that `fd` stands for."""
    _checked("setns", int(_libc.setns(fd, kind)))


def syncfs(fd: int) -> None:
    """syncfs(2): write everything of the filesystem that `fd` lies on to its disk."""
    _checked("syncfs", int(_libc.syncfs(fd)))


def prctl(option: int, value: int) -> None:
    """Set one property of this process."""
    _checked("prctl", int(_libc.prctl(option, ctypes.c_ulong(value), 0, 0, 0)))


def mount(source: str, target: str, kind: str, flags: int, data: str = "") -> None:
    """The classic mount(2); `data` is cut by the kernel at one page."""
    result = _libc.mount(source.encode(), os.fsencode(target), kind.encode(), ctypes.c_ulong(flags), os.fsencode(data))
    _checked(f"mount {kind}", int(result))


def fsopen(kind: str) -> int:
    """A context in which a filesystem of that kind can be configured."""
    return _syscall("fsopen", _SYS_FSOPEN, kind.encode(), 1)


def fsconfig(context: int, name: str, value: str | None = None) -> None:
    """Set an option; without a value, a flag."""
    command = _FSCONFIG_SET_FLAG if value is None else _FSCONFIG_SET_STRING
    encoded = None if value is None else os.fsencode(value)
    _syscall(f"fsconfig {name}", _SYS_FSCONFIG, context, command, name.encode(), encoded, 0)


def fsmount(context: int, attributes: int) -> int:
    """Create the filesystem and return a detached mount of it."""
    _syscall("fsconfig create", _SYS_FSCONFIG, context, _FSCONFIG_CMD_CREATE, None, None, 0)
    return _syscall("fsmount", _SYS_FSMOUNT, context, 1, attributes)


def open_tree(path: str, *, recursive: bool = False, folder: int = AT_FDCWD) -> int:
    """A detached copy of the mount under `path`, like a bind mount that is nowhere yet."""
    flags = OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | (AT_RECURSIVE if recursive else 0)
    return _syscall("open_tree", _SYS_OPEN_TREE, folder, os.fsencode(path), flags)


def mount_setattr(mount_fd: int, attributes: int, *, recursive: bool = False, userns: int = 0) -> None:
    """Add attributes to a detached mount; MOUNT_ATTR_IDMAP takes its ids from the user namespace `userns`."""
    data = ctypes.create_string_buffer(struct.pack("QQQQ", attributes, 0, 0, userns), 32)
    flags = AT_EMPTY_PATH | (AT_RECURSIVE if recursive else 0)
    _syscall("mount_setattr", _SYS_MOUNT_SETATTR, mount_fd, b"", flags, data, 32)


def attach(mount_fd: int, target: str | int) -> None:
    """Attach a detached mount at a path, or on an open O_PATH descriptor."""
    if isinstance(target, int):
        flags = _MOVE_MOUNT_F_EMPTY_PATH | _MOVE_MOUNT_T_EMPTY_PATH
        _syscall("move_mount", _SYS_MOVE_MOUNT, mount_fd, b"", target, b"", flags)
    else:
        path = os.fsencode(target)
        _syscall("move_mount", _SYS_MOVE_MOUNT, mount_fd, b"", AT_FDCWD, path, _MOVE_MOUNT_F_EMPTY_PATH)


def open_in_root(root: int, path: str, flags: int) -> int:
    """Open `path` as if `root` were the root of the filesystem: no link leads out of it."""
    how = ctypes.create_string_buffer(
        struct.pack("QQQ", flags | os.O_CLOEXEC, 0, _RESOLVE_IN_ROOT | _RESOLVE_NO_MAGICLINKS), 24
    )
    return _syscall("openat2", _SYS_OPENAT2, root, os.fsencode(path), how, 24)
