"""The means of attempts to get out of a sandbox: system calls from a root filesystem that has perl but no compiler."""

from __future__ import annotations

import errno
import platform

_MACHINES = ("x86_64", "aarch64")

# Numbers by machine: arch/x86/entry/syscalls/syscall_64.tbl, include/uapi/asm-generic/unistd.h.
_CALLS = {
    "acct": (163, 89),
    "add_key": (248, 217),
    "bpf": (321, 280),
    "chroot": (161, 51),
    "clock_settime": (227, 112),
    "clone": (56, 220),
    "clone3": (435, 435),
    "delete_module": (176, 106),
    "finit_module": (313, 273),
    "fsopen": (430, 430),
    "init_module": (175, 105),
    "io_uring_setup": (425, 425),
    "ioctl": (16, 29),
    "kexec_file_load": (320, 294),
    "kexec_load": (246, 104),
    "keyctl": (250, 219),
    "mount": (165, 40),
    "mount_setattr": (442, 442),
    "move_mount": (429, 429),
    "name_to_handle_at": (303, 264),
    "open_by_handle_at": (304, 265),
    "open_tree": (428, 428),
    "perf_event_open": (298, 241),
    "pivot_root": (155, 41),
    "process_vm_readv": (310, 270),
    "ptrace": (101, 117),
    "quotactl": (179, 60),
    "reboot": (169, 142),
    "request_key": (249, 218),
    "sched_setscheduler": (144, 119),
    "setns": (308, 268),
    "setpriority": (141, 140),
    "settimeofday": (164, 170),
    "socket": (41, 198),
    "swapon": (167, 224),
    "syslog": (103, 116),
    "umount2": (166, 39),
    "unshare": (272, 97),
    "userfaultfd": (323, 282),
}


def number(call: str) -> int:
    """The number of a system call on this machine."""
    return _CALLS[call][_MACHINES.index(platform.machine())]


def system_call(call: str, *arguments: str) -> str:
    """A shell script that makes one system call and prints `done`, or the name of the error.

    Arguments are perl expressions: numbers by value, strings as the address of their bytes.
    """
    # perl wants what it passes by address to be writable, which literals are not
    return perl(f"my @a = ({', '.join(arguments)}); my $r = syscall({number(call)}, @a); {REPORT}")


REPORT = 'print $r == -1 ? (grep { $!{$_} } keys %!)[0] : "done";'
"""Perl that prints how the call went whose result is in `$r`."""


def perl(code: str) -> str:
    """A shell script that runs perl code, which may hold anything but a single quote."""
    assert "'" not in code
    return f"perl -MErrno -MFcntl -MSocket -e '{code}'"


REFUSALS = frozenset(
    errno.errorcode[code]
    for code in (errno.EPERM, errno.EACCES, errno.ENOSYS, errno.EAFNOSUPPORT, errno.EROFS, errno.ENOENT, errno.ESRCH)
)
"""Errors that mean: not for you, or: there is no such thing here."""
