"""Shell lines that the start scripts of several servers share. All run under `sh -eu` as root."""

from __future__ import annotations

import shlex
from collections.abc import Iterable

PATIENCE = 60
"""Seconds that a server has to answer; the slowest here, RabbitMQ, takes 10 on a machine that is not busy."""

LOG_LINES = 40
"""Lines of a server's own log that are shown if it does not answer."""

LOGS = "/tmp/specbuild-services"  # noqa: S108 - in the sandbox
"""Folder of the servers' logs in the sandbox."""


def log_of(name: str) -> str:
    """Where the output of the server of that name goes."""
    return f"{LOGS}/{name}.log"


def background(name: str, command: str) -> str:
    """Lines that start a command and go on; its output goes to its log."""
    log = shlex.quote(log_of(name))
    return f"mkdir -p {LOGS}\n{command} </dev/null >{log} 2>&1 &\nserver=$!"


def quietly(name: str, command: str) -> str:
    """Lines that run a command to its end; its output is shown only if it fails, and then its end."""
    log = shlex.quote(log_of(name))
    return f"mkdir -p {LOGS}\n{command} >{log} 2>&1 || {{ tail -n {LOG_LINES} {log} >&2; exit 1; }}"


def until(name: str, probe: str) -> str:
    """Lines that return once `probe` succeeds; they fail when the server ends or PATIENCE does, and show its log."""
    log = shlex.quote(log_of(name))
    return (
        "tries=0\n"
        f"until {probe} >/dev/null 2>&1; do\n"
        "  tries=$((tries + 1))\n"
        f'  if [ "$tries" -ge {PATIENCE * 10} ] || ! kill -0 "$server" 2>/dev/null; then\n'
        f"    tail -n {LOG_LINES} {log} >&2 || true\n"
        "    exit 1\n"
        "  fi\n"
        "  sleep 0.1\n"
        "done"
    )


def connects(port: int) -> str:
    """A probe: something listens on that TCP port of the loopback."""
    return f"bash -c ': </dev/tcp/127.0.0.1/{port}'"


def named_hosts(hosts: Iterable[str]) -> str:
    """Lines that make names of servers mean this machine, where `/etc/hosts` can be written: overlay's cannot."""
    names = " ".join(hosts)
    if not names:
        return ":"
    entry = shlex.quote(f"127.0.0.1 {names}")
    return f"{{ echo {entry} >>/etc/hosts; }} 2>/dev/null || echo 'names of this machine only: not '{entry} >&2"


def as_user(user: str, *words: str) -> str:
    """A command that runs as another user; not by su or runuser, whose PAM sessions need more than a sandbox has."""
    return f"setpriv --reuid={user} --regid={user} --clear-groups -- {' '.join(words)}"


def lines(*parts: str) -> str:
    """One script."""
    return "\n".join(parts)


def once(*names: str) -> tuple[str, ...]:
    """Those that are not empty, each once."""
    return tuple(dict.fromkeys(filter(None, names)))
