"""How a Command is run in a container: what its first process does, what it is told, and what it says at the end.

The first process is a shell script that reads two lines from its standard input: the options of bubblewrap, in which
the environment is, and the program with its arguments. Standard output carries what the Command writes, both of its
streams in order; standard error carries what bubblewrap and the script say of how it went. The engine itself never
sees the Command's program, arguments or environment, so that `docker inspect` does not show them.
"""

from __future__ import annotations

import json
import os
import posixpath
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from specbuild.errors import SandboxError
from specbuild.sandbox.contract import Command, End, Limits
from specbuild.sandbox.docker.tools import FOLDER, ROOTFS, launch
from specbuild.sandbox.limits import Hit
from specbuild.sandbox.overlay.isolation import (
    CAPABILITIES,
    HOSTNAME,
    MASKED_FILES,
    MASKED_FOLDERS,
    MASKED_IN_SYS,
    READ_ONLY,
)

BINDS = f"/{FOLDER}/binds"
"""Where a container shows the host paths of its Commands; bubblewrap shows them again, at their targets."""
INPUT = f"/{FOLDER}/input"
"""What a Command reads, put there before it starts, and emptied by the script."""
OWN_PROCESSES = 3
"""The script, and bubblewrap on both sides of its namespace: they are not the Command's."""
_LAST = "specbuild-ended"
_V1, _V2 = "/sys/fs/cgroup/", "/sys/fs/cgroup/"
_COUNTERS = (
    *(f"{_V2}{name}" for name in ("cpu.stat", "memory.peak", "memory.events", "pids.events")),
    *(f"{_V1}{name}" for name in ("cpuacct/cpuacct.usage", "cpu,cpuacct/cpuacct.usage", "pids/pids.events")),
    *(f"{_V1}memory/{name}" for name in ("memory.max_usage_in_bytes", "memory.oom_control")),
)
"""Files of the container's control group, v2 and v1, that are told at the end of a Command."""


def _script() -> str:
    started = " ".join(launch("bwrap"))
    covers = " ".join(("hosts", "resolv.conf"))
    return f"""
IFS= read -r line && IFS= read -r words || exit 125
printf "$line" > /dev/shm/options
newline='
'
set --
for path in {" ".join(READ_ONLY)}; do [ -e $path ] && set -- "$@" --ro-bind $path $path; done
for path in {" ".join(MASKED_FILES)}; do [ -e $path ] && set -- "$@" --ro-bind /{FOLDER}/empty $path; done
for path in {" ".join(MASKED_FOLDERS)}; do [ -e $path ] && set -- "$@" --tmpfs $path --remount-ro $path; done
for path in {" ".join(MASKED_IN_SYS)}; do [ -d $path ] && set -- "$@" --tmpfs $path --remount-ro $path; done
for name in {covers}; do
  file=/etc/$name; root=/{ROOTFS}$file
  [ -f $root ] && [ ! -L $root ] && [ ! -L /{ROOTFS}/etc ] && [ -f $file ] && set -- "$@" --ro-bind $file $file
done
exec 9>&2
eval "set -- \\"\\$@\\" --args 3 -- $words"
{started} {" ".join(_FIRST)} "$@" \
  3< /dev/shm/options 4< /{FOLDER}/seccomp 5>&9 < {INPUT} 2>&1 9>&-
code=$?
: > {INPUT}
for file in {" ".join(_COUNTERS)}; do
  [ -r $file ] && while IFS= read -r value; do echo "${{file##*/}} $value" >&2; done < $file
done
echo "{_LAST} $code" >&2
exit $code
"""


_FIRST = (
    *("--bind", f"/{ROOTFS}", "/", "--unshare-ipc", "--unshare-pid", "--unshare-uts", "--unshare-cgroup-try"),
    *("--hostname", HOSTNAME, "--dev", "/dev", "--perms", "1777", "--tmpfs", "/dev/shm", "--mqueue", "/dev/mqueue"),  # noqa: S108
    *("--ro-bind", "/sys", "/sys", "--proc", "/proc"),
)
"""The options of every Command that come before those that depend on what /proc and /sys have."""

SCRIPT = _script()


def entrypoint() -> list[str]:
    """The program of every container."""
    return [*launch("sh"), "-c", SCRIPT]


def order(command: Command, places: Mapping[str, str]) -> bytes:
    """The two lines for the script: bubblewrap's remaining options, as a format of printf, and words for the shell.

    `places` says where the container shows the source of each bind.
    """
    args = ["--perms", "0755", "--dir", "/dev/specbuild"]
    for bind in command.binds:
        args += ["--bind" if bind.writable else "--ro-bind", places[str(bind.source)], bind.target]
    args += [] if command.network else ["--unshare-net"]
    args += ["--cap-drop", "ALL", *(word for name in CAPABILITIES for word in ("--cap-add", name))]
    args += ["--die-with-parent", "--new-session", "--json-status-fd", "5", "--seccomp", "4", "--clearenv"]
    args += ["--chdir", command.cwd, *(word for pair in command.env.items() for word in ("--setenv", *pair))]
    formats = b"".join(_escaped(word) + b"\\000" for word in args)
    return formats + b"\n" + b" ".join(_quoted(word) for word in command.argv) + b"\n"


_PLAIN = re.compile(rb"[^A-Za-z0-9_./=:,@+ ]")


def _escaped(word: str) -> bytes:
    """A word in octal escapes, but for what a format of printf leaves as it is."""
    return _PLAIN.sub(lambda match: b"\\%03o" % match[0][0], os.fsencode(word))


def _quoted(word: str) -> bytes:
    """A word for the shell, in one line."""
    return b"'" + os.fsencode(word).replace(b"'", b"'\\''").replace(b"\n", b"'\"$newline\"'") + b"'"


def check_target(target: str) -> None:
    """Raises SandboxError for a bind beside its place."""
    if posixpath.normpath(target) != target or not target.startswith("/dev/specbuild/"):
        raise SandboxError(f"{target} is no place for a bind: it must lie under /dev/specbuild/")


@dataclass(slots=True)
class Report:
    """What bubblewrap and the script have said of a Command."""

    code: int | None = None
    """The exit status of bubblewrap; None when the script did not come to its end."""
    ran: bool = False
    """Whether the Command's program was started."""
    counters: dict[str, str] = field(default_factory=dict[str, str])

    def killed(self, cpu_seconds: float, peak_memory_bytes: int | None) -> Report:
        """The report on a Command that the script could not say anything of, because it was killed with it."""
        counters = {"cpuacct.usage": str(int(cpu_seconds * 1e9))}
        return Report(
            self.code, self.ran, counters | ({"memory.peak": str(peak_memory_bytes)} if peak_memory_bytes else {})
        )

    @property
    def cpu_seconds(self) -> float | None:
        """CPU time of the container, the envelope's own few milliseconds included."""
        if "usage_usec" in self.counters:
            return int(self.counters["usage_usec"]) / 1e6
        return int(self.counters["cpuacct.usage"]) / 1e9 if "cpuacct.usage" in self.counters else None

    @property
    def peak_memory_bytes(self) -> int | None:
        """The highest sum of what was charged to the container."""
        text = self.counters.get("memory.peak") or self.counters.get("memory.max_usage_in_bytes")
        return int(text) if text and text.isdigit() else None

    def hit(self, limits: Limits) -> Hit | None:
        """The limit that was run into, if one was."""
        if int(self.counters.get("oom_kill", 0)):
            return out_of_memory(limits)
        if int(self.counters.get("pids.max", 0)):
            bound = f"the limit of {limits.processes:,}" if limits.processes else "a limit above it"
            return Hit(End.OUT_OF_PROCESSES, f"a process or thread could not be made: their number ran into {bound}")
        return None


def out_of_memory(limits: Limits) -> Hit:
    """As the overlay backend says it."""
    bound = f"the limit of {limits.memory_bytes / (1 << 20):,.0f} MiB" if limits.memory_bytes else "a limit above it"
    return Hit(End.OUT_OF_MEMORY, f"the kernel killed a process because memory ran into {bound}")


def read_report(text: bytes) -> Report:
    """What came on standard error."""
    report = Report()
    for line in text.decode("utf-8", "replace").splitlines():
        if line.startswith("{"):
            report.ran = report.ran or "exit-code" in _json(line)
        elif line.startswith(_LAST):
            report.code = int(line.split()[1])
        else:
            name, _, value = line.partition(" ")
            _count(report.counters, name, value.split())
    return report


def _json(line: str) -> dict[str, Any]:
    try:
        value: dict[str, Any] = json.loads(line)
    except ValueError:
        return {}
    return value


_NAMED = {"cpu.stat", "memory.events", "memory.oom_control", "pids.events"}
"""Files of several lines, each with a name and a number."""


def _count(counters: dict[str, str], file: str, words: Iterable[str]) -> None:
    words = list(words)
    if file in _NAMED and len(words) == 2:
        counters["pids.max" if file == "pids.events" else words[0]] = words[1]
    elif len(words) == 1:
        counters[file] = words[0]
