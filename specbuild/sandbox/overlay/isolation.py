"""What bubblewrap is told: the namespaces, mounts, capabilities and environment of one Command.

The root filesystem lies on the stage already (`stage`), so that these options name no path of the store. They are
passed in a file: an argument list would show the environment to every process of the machine.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from specbuild.sandbox.overlay.stage import EMPTY_FILE, ROOT, SYS

HOSTNAME = "specbuild"
"""Fixed, so that nothing that is built can depend on the host's."""

# Docker's default set (moby, oci/caps/defaults.go), which Debian's maintainer scripts are known to get by with.
CAPABILITIES = (
    *("CAP_CHOWN", "CAP_DAC_OVERRIDE", "CAP_FSETID", "CAP_FOWNER", "CAP_MKNOD", "CAP_NET_RAW", "CAP_SETGID"),
    *("CAP_SETUID", "CAP_SETFCAP", "CAP_SETPCAP", "CAP_NET_BIND_SERVICE", "CAP_SYS_CHROOT", "CAP_KILL"),
    "CAP_AUDIT_WRITE",
)

# Docker's read-only and masked paths (moby, oci/defaults.go), with the folders of /sys that tell of the host.
READ_ONLY = ("/proc/bus", "/proc/fs", "/proc/irq", "/proc/sys", "/proc/sysrq-trigger")
MASKED_FILES = (
    *("/proc/kcore", "/proc/keys", "/proc/key-users", "/proc/latency_stats", "/proc/timer_list", "/proc/sched_debug"),
    *("/proc/kallsyms", "/proc/kmsg", "/proc/config.gz", "/proc/interrupts"),
)
MASKED_FOLDERS = ("/proc/acpi", "/proc/asound", "/proc/scsi")
MASKED_IN_SYS = (
    *("/sys/firmware", "/sys/fs/cgroup", "/sys/fs/bpf", "/sys/fs/pstore", "/sys/kernel/debug", "/sys/kernel/tracing"),
    *("/sys/kernel/security", "/sys/devices/virtual/powercap"),
)


@dataclass(frozen=True, slots=True)
class Shown:
    """A bind that waits on the stage at `place`."""

    place: str
    target: str
    writable: bool


def options(
    *,
    cwd: str,
    env: Mapping[str, str],
    network: bool,
    binds: Iterable[Shown] = (),
    status_fd: int,
    seccomp_fd: int | None,
) -> list[str]:
    """bubblewrap's options. The descriptors are as numbered in its own process."""
    args = ["--bind", ROOT, "/", *_namespaces(network=network), *_system_mounts(), *_bind_mounts(binds)]
    args += ["--cap-drop", "ALL", *(word for name in CAPABILITIES for word in ("--cap-add", name))]
    args += ["--die-with-parent", "--new-session", "--json-status-fd", str(status_fd)]
    if seccomp_fd is not None:
        args += ["--seccomp", str(seccomp_fd)]
    args += ["--unsetenv", "LD_LIBRARY_PATH", "--chdir", cwd]
    return [*args, *(word for name, value in env.items() for word in ("--setenv", name, value))]


def _namespaces(*, network: bool) -> list[str]:
    kinds = ["ipc", "pid", "uts", "cgroup-try", *(() if network else ("net",))]
    return [*(f"--unshare-{kind}" for kind in kinds), "--hostname", HOSTNAME]


@cache
def _system_mounts() -> tuple[str, ...]:
    """The same for all Commands, and looked up once: each of them is a few system calls here, and some 25 there."""
    args = ["--dev", "/dev", "--perms", "1777", "--tmpfs", "/dev/shm", "--mqueue", "/dev/mqueue"]  # noqa: S108
    args += ["--ro-bind", SYS, "/sys", "--proc", "/proc"]
    for path in _present(READ_ONLY):
        args += ["--ro-bind", path, path]
    for path in _present(MASKED_FILES):
        args += ["--ro-bind", EMPTY_FILE, path]
    for path in _present(MASKED_FOLDERS):
        args += ["--tmpfs", path, "--remount-ro", path]
    return tuple(args)


def _present(paths: Iterable[str]) -> list[str]:
    return [path for path in paths if Path(path).exists()]


def _bind_mounts(binds: Iterable[Shown]) -> list[str]:
    args = ["--perms", "0755", "--dir", "/dev/specbuild"]
    for bind in binds:
        args += ["--bind" if bind.writable else "--ro-bind", bind.place, bind.target]
    return args
