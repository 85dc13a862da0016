"""Make the root filesystem of a Debian release with mmdebstrap, or debootstrap where that is all there is.

The result is like the official container image of the release where that changes how things behave: the `minbase`
set of packages, no service started by an installation (`policy-rc.d`), dpkg without fsync, no downloaded package kept,
no translated package lists. It differs in that recommended packages are installed unless a Step says otherwise (as in
those images), documentation is kept, and the sources name the host's mirror.

The archive is the same bit by bit whenever it is made of the same packages: times are clamped to the release's date,
and nothing of the host (its name, resolver, mirror) is in it; the sources are added by the caller.
"""

from __future__ import annotations

import os
import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from specbuild.bases.apt_sources import Source
from specbuild.bases.releases import Release

PYTHON_MARK = "specbuild-python: "
"""Before the version of `python3` in the log."""

SOURCE_MARK = "specbuild-source: "
"""Before each source that the tool chose by itself, in the log."""

KEYRING = "/usr/share/keyrings/debian-archive-keyring.gpg"

_HOST_CONF = "etc/apt/apt.conf.d/00specbuild-host"

_CUSTOMIZE = f"""
set -eu
root="$1"
sed -n 's/^deb /{SOURCE_MARK}/p' "$root"/etc/apt/sources.list "$root"/etc/apt/sources.list.d/*.list 2>/dev/null || true
if [ -n "${{MMDEBSTRAP_APT_CONFIG:-}}" ]; then
  APT_CONFIG="$MMDEBSTRAP_APT_CONFIG" apt-cache show python3 2>/dev/null | sed -n 's/^Version: /{PYTHON_MARK}/p' || true
fi
rm -f "$root/{_HOST_CONF}" "$root"/etc/apt/sources.list "$root"/etc/apt/sources.list.d/*
rm -f "$root"/etc/resolv.conf "$root"/etc/hostname "$root"/etc/hosts
: > "$root/etc/resolv.conf"
echo localhost > "$root/etc/hostname"
printf '127.0.0.1\\tlocalhost\\n::1\\tlocalhost ip6-localhost ip6-loopback\\n' > "$root/etc/hosts"
chmod 644 "$root/etc/resolv.conf" "$root/etc/hostname" "$root/etc/hosts"
echo force-unsafe-io > "$root/etc/dpkg/dpkg.cfg.d/specbuild"
cat > "$root/etc/apt/apt.conf.d/90specbuild" <<'END'
APT::Keep-Downloaded-Packages "false";
APT::AutoRemove::SuggestsImportant "false";
Acquire::Languages "none";
Acquire::GzipIndexes "true";
END
rm -rf "$root"/var/log/apt "$root"/var/log/*.log "$root"/var/cache/debconf/*-old "$root"/var/lib/dpkg/*-old
: > "$root/etc/machine-id"
"""
"""Run with the new root as its first argument, by its own root user.

The files mean what those of container images mean: see dpkg(1) on force-unsafe-io, apt.conf(5).
"""

POLICY = ("usr/sbin/policy-rc.d", "#!/bin/sh\nexit 101\n")
"""Path and content of the program that keeps installations from starting services (invoke-rc.d(8): 101 is "action
forbidden by policy"). mmdebstrap removes its own at the end, so the caller adds this one to the archive.
"""


@dataclass(frozen=True, slots=True)
class Tool:
    """A bootstrap program: how it is called and which of the two it is."""

    argv: tuple[str, ...]
    kind: str
    """`mmdebstrap` or `debootstrap`."""
    keyring: str


@dataclass(frozen=True, slots=True)
class Order:
    """What is to be made."""

    release: Release
    sources: tuple[Source, ...]
    """Empty to leave the mirror to the tool's own default."""
    apt_conf: Path
    """How the host's apt reaches its mirrors; used while it is made, then removed."""
    target: Path
    """The archive to write."""


def command(tool: Tool, order: Order) -> list[str]:
    """The command line that makes the archive."""
    return _mmdebstrap(tool, order) if tool.kind == "mmdebstrap" else _debootstrap(tool, order)


def environment(release: Release) -> dict[str, str]:
    """The environment for it: the caller's proxies and folder for temporary files, and the time that files get."""
    kept = ("http_proxy", "https_proxy", "ftp_proxy", "no_proxy", "TMPDIR")
    env = {name: value for name in kept if (value := os.environ.get(name) or os.environ.get(name.upper()))}
    return env | {
        "PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
        "HOME": "/nonexistent",
        "LC_ALL": "C.UTF-8",
        "DEBIAN_FRONTEND": "noninteractive",
        "SOURCE_DATE_EPOCH": str(release.epoch),
    }


def _mmdebstrap(tool: Tool, order: Order) -> list[str]:
    return [
        *tool.argv,
        "--variant=minbase",
        "--format=tar",
        # That check needs gpg; the keyring is named with each source instead.
        "--skip=check/signed-by",
        f"--setup-hook=upload {shlex.quote(str(order.apt_conf))} /{_HOST_CONF}",
        f"--customize-hook={_CUSTOMIZE}",
        order.release.name,
        str(order.target),
        *_one_line(order.sources, tool.keyring),
    ]


def _one_line(sources: Sequence[Source], keyring: str) -> list[str]:
    return [
        f"deb [signed-by={source.signed_by or keyring}] {source.uri} {source.suite} {' '.join(source.components)}"
        for source in sources
    ]


def _debootstrap(tool: Tool, order: Order) -> list[str]:
    """debootstrap makes a folder, as root only, of one source; the rest is done here as mmdebstrap does it."""
    script = f"""
root=$(mktemp -d)
trap 'rm -rf --one-file-system "$root"' EXIT
chmod 755 "$root"
{shlex.join([*tool.argv, "--variant=minbase", f"--keyring={tool.keyring}", order.release.name])} "$root" \
  {shlex.quote(order.sources[0].uri) if order.sources else ""}
sh -c {shlex.quote(_CUSTOMIZE)} customize "$root"
rm -rf "$root"/var/lib/apt/lists/* "$root"/var/cache/apt/archives/*.deb "$root"/var/cache/apt/*.bin "$root"/debootstrap
tar -C "$root" --sort=name --numeric-owner --xattrs --format=pax --mtime="@$SOURCE_DATE_EPOCH" --clamp-mtime \
  --pax-option=exthdr.name=%d/PaxHeaders/%f,delete=atime,delete=ctime -cf {shlex.quote(str(order.target))} .
"""
    return ["/bin/sh", "-eu", "-c", script]
