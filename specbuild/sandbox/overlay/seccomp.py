"""The system calls that no Command needs and that reach beyond its Sandbox, as a seccomp filter.

A deny list beside dropped capabilities, namespaces and no-new-privileges: what is refused is kernel surface that user
namespaces open up or that is not namespaced. Modelled on Docker's default profile (moby/profiles, seccomp/default.json,
for a container without CAP_SYS_ADMIN). Filter layout: Documentation/userspace-api/seccomp_filter.rst and bpf(4).
"""

from __future__ import annotations

import errno
import platform
import struct
from collections.abc import Iterable
from dataclasses import dataclass

from specbuild.errors import SandboxUnavailableError

# linux/audit.h: AUDIT_ARCH_*, and for each system call its number in that architecture; 0-based column of _NUMBERS.
_ARCHES = {"x86_64": (0xC000003E, 0), "aarch64": (0xC00000B7, 1)}

# Numbers: arch/x86/entry/syscalls/syscall_64.tbl, and include/uapi/asm-generic/unistd.h which aarch64 uses.
_NUMBERS: dict[str, tuple[int | None, int | None]] = {
    # The tree of mounts
    "mount": (165, 40),
    "umount2": (166, 39),
    "pivot_root": (155, 41),
    "open_tree": (428, 428),
    "move_mount": (429, 429),
    "fsopen": (430, 430),
    "fsconfig": (431, 431),
    "fsmount": (432, 432),
    "fspick": (433, 433),
    "mount_setattr": (442, 442),
    "open_tree_attr": (467, 467),
    "swapon": (167, 224),
    "swapoff": (168, 225),
    "quotactl": (179, 60),
    "quotactl_fd": (443, 443),
    "open_by_handle_at": (304, 265),
    # Namespaces
    "setns": (308, 268),
    "unshare": (272, 97),
    "clone": (56, 220),
    "clone3": (435, 435),
    # Keyrings, which are not namespaced
    "add_key": (248, 217),
    "request_key": (249, 218),
    "keyctl": (250, 219),
    # Code and probes in the kernel
    "bpf": (321, 280),
    "perf_event_open": (298, 241),
    "userfaultfd": (323, 282),
    "io_uring_setup": (425, 425),
    "io_uring_enter": (426, 426),
    "io_uring_register": (427, 427),
    "init_module": (175, 105),
    "finit_module": (313, 273),
    "delete_module": (176, 106),
    "kexec_load": (246, 104),
    "kexec_file_load": (320, 294),
    "lookup_dcookie": (212, 18),
    # The machine
    "reboot": (169, 142),
    "acct": (163, 89),
    "settimeofday": (164, 170),
    "clock_settime": (227, 112),
    "syslog": (103, 116),
    "vhangup": (153, 58),
    "nfsservctl": (180, 42),
    "iopl": (172, None),
    "ioperm": (173, None),
    "uselib": (134, None),
    # Judged by their arguments
    "ioctl": (16, 29),
    "socket": (41, 198),
    "socketpair": (53, 199),
}

_CLONE_NEW = 0x7E020000
"""linux/sched.h: CLONE_NEWNS | NEWCGROUP | NEWUTS | NEWIPC | NEWUSER | NEWPID | NEWNET, the mask that Docker uses."""
_TERMINAL_INPUT = (0x5412, 0x541C)
"""asm-generic/ioctls.h: TIOCSTI and TIOCLINUX, by which a process types into a terminal that outlives it."""
_SOCKET_FAMILIES = (1, 2, 10, 16)
"""linux/socket.h: AF_UNIX, AF_INET, AF_INET6, AF_NETLINK. All others (AF_VSOCK, AF_ALG, AF_PACKET, …) leave the
network namespace or are seldom-used kernel code."""
_X32_BIT = 0x40000000
"""asm/unistd.h: the numbers of the x32 ABI, which would go past every comparison here."""

# linux/filter.h, linux/bpf_common.h
_LOAD, _JUMP_EQUAL, _JUMP_AT_LEAST, _JUMP_ANY_BIT, _RETURN = 0x20, 0x15, 0x35, 0x45, 0x06
# linux/seccomp.h
_KILL, _ALLOW, _ERRNO = 0x80000000, 0x7FFF0000, 0x00050000
# Offsets in struct seccomp_data, of little-endian machines: the low half of an argument comes first. The kernel reads
# flags, ioctl requests and families as 32 bits, so the high half must not take part (CVE-2019-10063).
_NUMBER, _ARCH, _ARGUMENTS = 0, 4, 16


@dataclass(frozen=True, slots=True)
class Instruction:
    """One `struct sock_filter`."""

    code: int
    constant: int
    if_true: int = 0
    """Instructions to skip when a comparison holds."""
    if_false: int = 0

    def packed(self) -> bytes:
        """The eight bytes that the kernel takes."""
        return struct.pack("=HBBI", self.code, self.if_true, self.if_false, self.constant)


def program(arch: str | None = None) -> bytes:
    """The filter as bytes for `bwrap --seccomp` (an array of `struct sock_filter`), for this machine by default.

    Raises SandboxUnavailableError for an architecture whose numbers are not known here.
    """
    return b"".join(instruction.packed() for instruction in instructions(arch or platform.machine()))


def instructions(arch: str) -> list[Instruction]:
    """The filter for `x86_64` or `aarch64`."""
    if arch not in _ARCHES:
        raise SandboxUnavailableError(
            f"no system call filter for {arch} processors; there are filters for {', '.join(_ARCHES)}",
            hint="use the docker backend, whose engine brings its own",
        )
    audit, column = _ARCHES[arch]
    code = [_load(_ARCH), Instruction(_JUMP_EQUAL, audit, if_true=1), _kill(), _load(_NUMBER)]
    if arch == "x86_64":
        # -1 is what a tracer leaves of a call that it skips
        code += [Instruction(_JUMP_EQUAL, 0xFFFFFFFF, if_true=2), Instruction(_JUMP_AT_LEAST, _X32_BIT, 0, 1), _kill()]
    for name, numbers in _NUMBERS.items():
        if (number := numbers[column]) is not None:
            body = _answer(name)
            code += [Instruction(_JUMP_EQUAL, number, if_false=len(body)), *body]
    return [*code, _allow()]


def _answer(name: str) -> list[Instruction]:
    """What follows when the call is `name`; always ends in a return."""
    match name:
        case "clone3":  # its flags are behind a pointer; the C library then uses clone
            return [_refuse(errno.ENOSYS)]
        case "clone" | "unshare":
            return [_load(_argument(0)), Instruction(_JUMP_ANY_BIT, _CLONE_NEW, 0, 1), _refuse(), _allow()]
        case "ioctl":
            return [_load(_argument(1)), *_refuse_any_of(_TERMINAL_INPUT), _allow()]
        case "socket" | "socketpair":
            return [_load(_argument(0)), *_allow_any_of(_SOCKET_FAMILIES), _refuse(errno.EAFNOSUPPORT)]
        case _:
            return [_refuse()]


def _argument(index: int) -> int:
    return _ARGUMENTS + 8 * index


def _load(offset: int) -> Instruction:
    return Instruction(_LOAD, offset)


def _allow() -> Instruction:
    return Instruction(_RETURN, _ALLOW)


def _kill() -> Instruction:
    return Instruction(_RETURN, _KILL)


def _refuse(code: int = errno.EPERM) -> Instruction:
    return Instruction(_RETURN, _ERRNO | code)


def _refuse_any_of(values: Iterable[int]) -> list[Instruction]:
    return [part for value in values for part in (Instruction(_JUMP_EQUAL, value, if_false=1), _refuse())]


def _allow_any_of(values: Iterable[int]) -> list[Instruction]:
    return [part for value in values for part in (Instruction(_JUMP_EQUAL, value, if_false=1), _allow())]
