"""What sandboxes on the running system do not see of it.

Masked are, each found on this machine:

- homes of people and of root; `/tmp`, `/run`, `/var/log`, `/var/spool`, mail and other mutable state; `/boot`;
- the data of databases, container engines, virtual machines, clouds' first-boot data;
- known places of keys and passwords, and every file below `/etc` that ordinary users may not read: if it is kept from
  them, it is kept from sandboxes;
- every other top-level folder that is none of the system's (`/work`, `/data`, …) and every mount point outside of it;
- the store, the present folder and the repository, by the highest folder that holds them and nothing of the system.

A socket in a folder that stays visible cannot be connected to through an overlay. This keeps accidents and curious
code from secrets; it is no promise against hostile code: for that use a portable base.
"""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Iterable, Iterator
from pathlib import Path

_SYSTEM_TOP = frozenset(
    {
        "bin",
        "dev",
        "etc",
        "lib",
        "lib32",
        "lib64",
        "libx32",
        "opt",
        "proc",
        "sbin",
        "sys",
        "usr",
        "var",
        "nix",
        "gnu",
        "snap",
    }
)
"""Top-level folders that belong to the system or hold programs: the Filesystem Hierarchy Standard, Nix, Guix, snaps."""

_ALWAYS = (
    "/root", "/home", "/run", "/tmp", "/var/tmp", "/mnt", "/media", "/srv", "/boot", "/lost+found",  # noqa: S108
    "/var/log", "/var/spool", "/var/mail", "/var/backups", "/var/crash", "/var/www",
    "/var/lib/docker", "/var/lib/containers", "/var/lib/containerd", "/var/lib/kubelet", "/var/lib/etcd",
    "/var/lib/rancher", "/var/lib/lxc", "/var/lib/lxd", "/var/lib/libvirt", "/var/lib/machines", "/var/lib/private",
    "/var/lib/cloud", "/var/lib/waagent", "/var/lib/amazon", "/var/lib/google", "/var/lib/systemd/random-seed",
    "/var/lib/systemd/credential.secret", "/var/lib/systemd/coredump", "/var/lib/systemd/pstore", "/var/lib/sudo",
    "/var/lib/mysql", "/var/lib/postgresql", "/var/lib/redis", "/var/lib/mongodb", "/var/lib/rabbitmq",
    "/var/lib/jenkins", "/var/lib/gitlab-runner", "/var/lib/sss", "/var/lib/samba", "/var/lib/NetworkManager",
    "/var/lib/bluetooth", "/var/lib/AccountsService", "/var/lib/specbuild",
    "/etc/shadow", "/etc/shadow-", "/etc/gshadow", "/etc/gshadow-", "/etc/ssh", "/etc/ssl/private",
    "/etc/pki/tls/private", "/etc/security/opasswd",
    "/etc/krb5.keytab", "/etc/sudoers", "/etc/sudoers.d", "/etc/apt/auth.conf", "/etc/apt/auth.conf.d", "/etc/netrc",
    "/etc/pip.conf", "/etc/npmrc", "/etc/docker", "/etc/containers/auth.json", "/etc/kubernetes", "/etc/rancher",
    "/etc/wireguard", "/etc/openvpn", "/etc/ipsec.secrets", "/etc/ipsec.d", "/etc/letsencrypt", "/etc/munge",
    "/etc/NetworkManager/system-connections", "/etc/salt", "/etc/puppetlabs", "/etc/mysql/debian.cnf", "/etc/boto.cfg",
    "/swapfile", "/swap.img",
)  # fmt: skip


class Machine:
    """Reads a system's own description. `root` is `/`, except in tests."""

    def __init__(self, root: Path) -> None:
        self.root = root

    def at(self, path: str) -> Path:
        """An absolute path of that system."""
        return self.root / path.lstrip("/")

    def text(self, path: str) -> str:
        """The content of a small file; empty where there is none."""
        try:
            return self.at(path).read_text(encoding="utf-8", errors="replace")
        except OSError:
            return ""

    def os_release(self) -> dict[str, str]:
        """os-release(5) as a mapping."""
        lines = (line.split("=", 1) for line in self.text("/etc/os-release").splitlines() if "=" in line)
        return {key: value.strip().strip("\"'") for key, value in lines}

    def mount_points(self) -> frozenset[str]:
        """Where filesystems are mounted (proc(5), mountinfo), without those of the kernel below /proc, /sys, /dev."""
        points = (line.split()[4] for line in self.text("/proc/self/mountinfo").splitlines())
        plain = (re.sub(r"\\([0-7]{3})", lambda match: chr(int(match[1], 8)), point) for point in points)
        return frozenset(p for p in plain if p != "/" and not re.match(r"/(proc|sys|dev)(/|$)", p))


def masks(machine: Machine, private: Iterable[Path] = ()) -> tuple[str, ...]:
    """The paths to mask that exist, sorted, none below another, no symbolic links."""
    wanted = {
        *_ALWAYS,
        *_homes(machine),
        *_foreign_tops(machine),
        *_engine_roots(machine),
        *_kept_from_users(machine),
        *(point for point in machine.mount_points() if _top(point) not in _SYSTEM_TOP or point.count("/") > 1),
        *(outermost(path) for path in (Path.cwd(), *private)),
    }
    seen = {_in_sight(machine, path) for path in wanted}
    present = sorted(path for path in seen if path != "/" and _is_real(machine, path))
    kept: list[str] = []
    for path in present:
        if not any(path.startswith(f"{above}/") for above in kept):
            kept.append(path)
    return tuple(kept)


def outermost(path: Path) -> str:
    """The highest folder above `path` (or itself) that holds nothing of the system."""
    parts = path.resolve().parts
    if len(parts) < 2 or parts[1] not in _SYSTEM_TOP:
        return "/".join(["", *parts[1:2]]) or "/"
    return str(Path(*parts[:3])) if parts[1] == "opt" else str(path.resolve())


def _top(path: str) -> str:
    return path.split("/", 2)[1]


def _in_sight(machine: Machine, path: str) -> str:
    """The path, or the folder above it that keeps all that is in it from this user."""
    while True:
        try:
            os.lstat(machine.at(path))
        except PermissionError:
            path = path.rpartition("/")[0] or "/"
        except OSError:  # it is not there
            return path
        else:
            return path


def _is_real(machine: Machine, path: str) -> bool:
    """Whether it is there and reached through no symbolic link, which could lead a mask elsewhere."""
    real = machine.at(path)
    return os.access(real, os.F_OK) and real.resolve() == machine.root.resolve() / path.lstrip("/")


def _homes(machine: Machine) -> Iterator[str]:
    for line in machine.text("/etc/passwd").splitlines():
        fields = line.split(":")
        if len(fields) < 7 or not fields[2].isdecimal():
            continue
        home = fields[5].rstrip("/")
        person = int(fields[2]) == 0 or 1000 <= int(fields[2]) < 65_534
        if person and home and _top(home) not in {"bin", "dev", "etc", "lib", "proc", "sbin", "sys", "usr"}:
            yield home


def _foreign_tops(machine: Machine) -> Iterator[str]:
    for entry in os.scandir(machine.root):
        if entry.name not in _SYSTEM_TOP and not entry.is_symlink():
            yield f"/{entry.name}"


def _engine_roots(machine: Machine) -> Iterator[str]:
    """Where container engines are told to keep their data."""
    patterns = {
        "/etc/docker/daemon.json": r'"data-root"\s*:\s*"([^"]+)"',
        "/etc/containers/storage.conf": r'^\s*(?:graphroot|runroot)\s*=\s*"([^"]+)"',
        "/etc/containerd/config.toml": r'^\s*root\s*=\s*"([^"]+)"',
    }
    for path, pattern in patterns.items():
        yield from (found for found in re.findall(pattern, machine.text(path), re.MULTILINE) if found.count("/") > 1)


def _kept_from_users(machine: Machine) -> Iterator[str]:
    """Files and folders below /etc that not everybody may read, as far as we may look."""
    pending = [machine.at("/etc")]
    while pending:
        try:
            entries = list(os.scandir(pending.pop()))
        except OSError:
            continue
        for entry in entries:
            if entry.is_symlink():
                continue
            folder = entry.is_dir(follow_symlinks=False)
            needed = stat.S_IROTH | (stat.S_IXOTH if folder else 0)
            if entry.stat(follow_symlinks=False).st_mode & needed != needed:
                yield "/" + str(Path(entry.path).relative_to(machine.root))
            elif folder:
                pending.append(Path(entry.path))
