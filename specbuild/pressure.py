"""How much of the machine a race may use now: what others leave of it, by the kernel's own readings.

Speculation lives on what is idle. Where nothing is, a race goes on with its best work alone, as a sequential run would.
"""

from __future__ import annotations

import math
import os
import re
import shutil
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

LEAST_MEMORY = 0.08
"""Share of the machine's memory that must be available for a further step to begin beside others."""

LEAST_DISK = 1 << 30
"""Bytes that must be free where the store lies."""

MOST_STALL = 20.0
"""Per cent of the last ten seconds in which something waited for memory (PSI, `some avg10`): above it the machine
thrashes (https://docs.kernel.org/accounting/psi.html)."""

_AVG10 = re.compile(r"^some .*?\bavg10=(\d+(?:\.\d+)?)", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Reading:
    """The machine at one moment."""

    cores: int
    at: float
    """Seconds of a monotonic clock."""
    busy: float
    """Core-seconds since the machine was started in which something ran that does not make way (nice)."""
    own: float
    """Of these, this process's."""
    memory_available: float
    """Share of the memory that can be had without swapping, 0 to 1."""
    memory_stall: float
    """PSI's `some avg10` of memory, in per cent; 0 where the kernel does not tell."""
    disk_free: int
    """Bytes."""


def read(store: Path, proc: Path = Path("/proc")) -> Reading:
    """A reading; what cannot be read counts as there in plenty. `store` is a folder on the disk that is written to."""
    memory = _memory(proc)
    total, available = memory.get("MemTotal", 0), memory.get("MemAvailable", 0)
    return Reading(
        cores=len(os.sched_getaffinity(0)),
        at=time.monotonic(),
        busy=_busy(proc),
        own=time.process_time(),
        memory_available=available / total if total else 1.0,
        memory_stall=_stall(proc),
        disk_free=_free(store),
    )


def others(first: Reading, second: Reading) -> float:
    """Cores that other processes kept busy between two readings."""
    span = second.at - first.at
    if span <= 0:
        return 0.0
    return min(float(second.cores), max(0.0, (second.busy - first.busy - second.own + first.own) / span))


def admitted(slots: int, foreign: float, now: Reading) -> int:
    """How many steps may run at once, 1 to `slots`.

    `foreign` are cores that others kept busy before the race began; each takes its part of the slots for speculation.
    The first slot stays.
    """
    if now.memory_available < LEAST_MEMORY or now.memory_stall > MOST_STALL or now.disk_free < LEAST_DISK:
        return 1
    return max(1, slots - math.floor(foreign * (slots - 1) / now.cores + 0.25))


def _busy(proc: Path) -> float:
    """The columns of the first line of /proc/stat but idle and iowait; nor nice, as what is nice makes way."""
    try:
        columns = [int(word) for word in (proc / "stat").read_text().split("\n", 1)[0].split()[1:9]]
    except (OSError, ValueError):
        return 0.0
    return (sum(columns) - columns[1] - sum(columns[3:5])) / os.sysconf("SC_CLK_TCK")


def _memory(proc: Path) -> Mapping[str, int]:
    try:
        rows = (line.split() for line in (proc / "meminfo").read_text().splitlines())
        return {row[0].rstrip(":"): int(row[1]) for row in rows if len(row) > 1 and row[1].isdigit()}
    except OSError:
        return {}


def _stall(proc: Path) -> float:
    try:
        found = _AVG10.search((proc / "pressure" / "memory").read_text())
    except OSError:
        return 0.0
    return float(found[1]) if found else 0.0


def _free(store: Path) -> int:
    try:
        return shutil.disk_usage(store).free
    except OSError:
        return 1 << 62
