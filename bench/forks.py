"""What a fork costs, by the size of the state that is forked, beside `cp -a` of the same files and container engines.

    python -m bench forks [--json FILE] [--states small,medium,large] [--repeat N] [--folder FOLDER]
                          [--engine NAME=ADDRESS]...

Prints a Markdown table of medians [least..most] in milliseconds. The states are made from generated data that does
not compress, and measured in turns, so that whatever else the machine does meanwhile slows all of them alike. `fork`
is entering the fork, `true` a Command that runs `true` from start to end, `freeze` a freeze after it, `discard`
leaving a fork that was not frozen, `round` the first three and the discard together; `mount` is the part of `true`
that mounts the layers; `cancel` the time from cancelling a Command of 20 processes until all of it is gone; `disk`
what a frozen fork that ran `true` takes, in KiB.

With `--engine docker=unix:///var/run/docker.sock`, that engine forks the same states by commit, create and start
(`bench.engines`), and how many times as long as `round` that takes is told.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import random
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import anyio

from bench import engines
from specbuild.sandbox.contract import Bind, Checkpoint, Command, RootfsTar
from specbuild.sandbox.docker.endpoint import Endpoint
from specbuild.sandbox.overlay import OverlayBackend
from specbuild.sandbox.overlay.sandbox import OverlaySandbox
from specbuild.testing.rootfs import tiny_rootfs

_POOL = 1 << 20
"""Bytes of random data that all files are cut from."""
_ENV = {"PATH": "/usr/bin:/bin"}
_COPIES = 3
_COPY_SECONDS = 15.0
"""`cp -a` is repeated that often, unless this much time has gone by before."""
_SHOWN = "/dev/specbuild/state"
_STUBBORN = "trap '' TERM; for i in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19; do sleep 999 & done; echo up; wait"


@dataclass(frozen=True)
class State:
    """How much is in it."""

    files: int
    bytes: int


STATES = {"small": State(1, 1_000), "medium": State(10_000, 300_000_000), "large": State(50_000, 1_500_000_000)}
COLUMNS = ("mount", "fork", "true", "freeze", "discard", "round", "cancel", "disk", "cp -a")

Times = dict[str, list[float]]
"""Milliseconds by column."""


def fill(folder: Path, state: State) -> None:
    """Write the files of a state, 100 to a folder."""
    size = state.bytes // state.files
    source = random.Random(state.files)
    pool = memoryview(source.randbytes(size + _POOL))
    for number in range(state.files):
        path = folder / f"{number // 100:03}" / f"{number}.bin"
        path.parent.mkdir(parents=True, exist_ok=True)
        begin = source.randrange(_POOL)
        path.write_bytes(pool[begin : begin + size])


async def make(backend: OverlayBackend, base: Checkpoint, folder: Path, name: str) -> Checkpoint:
    """The Checkpoint `name`: `base` with the state's files, which are in `folder` afterwards, too."""
    await anyio.to_thread.run_sync(fill, folder, STATES[name])
    async with backend.fork(base) as sandbox:
        done = await sandbox.run(Command(["cp", "-a", _SHOWN, "/state"], env=_ENV, binds=[Bind(folder, _SHOWN)]))
        assert done.ok, done
        return await sandbox.freeze(name)


async def measure(backend: OverlayBackend, states: Sequence[Checkpoint], repeat: int) -> dict[str, Times]:
    """All columns but the last, for each state; its first round, in which caches are cold, is left out."""
    results: dict[str, Times] = {state.key: defaultdict(list) for state in states}
    for number in range(-1, repeat):
        for state in states:
            times: Times = results[state.key] if number >= 0 else defaultdict(list)
            await _round(backend, state, f"{state.key}-{number}", times)
            await _cancel(backend, state, times)
    return results


async def _round(backend: OverlayBackend, state: Checkpoint, key: str, times: Times) -> None:
    clock = [time.perf_counter()]

    def lap(column: str) -> None:
        clock.append(time.perf_counter())
        times[column].append((clock[-1] - clock[-2]) * 1000)

    async with backend.fork(state) as sandbox:
        lap("fork")
        done = await sandbox.run(Command(["true"], env=_ENV))
        assert done.ok, done
        lap("true")
        assert isinstance(sandbox, OverlaySandbox)
        times["mount"].append((sandbox.mount_seconds or 0) * 1000)
        await sandbox.freeze(key)
        lap("freeze")
    child = await backend.find(key)
    assert child is not None
    async with backend.fork(child):
        clock.append(time.perf_counter())
    lap("discard")
    layer = await backend.rootfs_chain(key)
    times["disk"].append(float(_kib(layer[-1].parent)))
    times["round"].append(sum(times[column][-1] for column in ("fork", "true", "freeze", "discard")))


def _kib(folder: Path) -> int:
    """What a folder takes on the disk."""
    done = subprocess.run(["du", "-sk", folder], capture_output=True, text=True, check=True)
    return int(done.stdout.split()[0])


async def _cancel(backend: OverlayBackend, state: Checkpoint, times: Times) -> None:
    began = 0.0
    async with backend.fork(state) as sandbox:
        with anyio.CancelScope() as scope:

            def stop(_line: str) -> None:
                nonlocal began
                began = time.perf_counter()
                scope.cancel()

            await sandbox.run(Command(["sh", "-c", _STUBBORN], env=_ENV), on_line=stop)
        times["cancel"].append((time.perf_counter() - began) * 1000)


def copy(folder: Path, repeat: int) -> list[float]:
    """Milliseconds that `cp -a` takes."""
    times: list[float] = []
    deadline = time.monotonic() + _COPY_SECONDS
    while not times or (len(times) < repeat and time.monotonic() < deadline):
        target = folder.with_name("copy")
        began = time.perf_counter()
        subprocess.run(["cp", "-a", folder, target], check=True)
        times.append((time.perf_counter() - began) * 1000)
        shutil.rmtree(target)
    return times


@dataclass(frozen=True)
class Results:
    """What was measured: of overlay, and of each engine, by state."""

    overlay: dict[str, Times]
    engines: dict[str, dict[str, Times]]


async def run(
    folder: Path, names: list[str], repeat: int, say: Callable[[str], None], others: dict[str, Endpoint]
) -> Results:
    """All columns for each of the named states."""
    rootfs = tiny_rootfs(folder / "rootfs.tar")
    async with OverlayBackend(folder / "store") as backend:
        base = await backend.import_base("base", RootfsTar(rootfs))
        states: list[Checkpoint] = []
        for name in names:
            say(f"making {name}: {STATES[name].files:,} files, {STATES[name].bytes:,} bytes")
            states.append(await make(backend, base, folder / name, name))
        await anyio.run_process(["sync", "-f", str(folder)])
        say(f"measuring, {repeat} rounds")
        results = await measure(backend, states, repeat)
        for name, times in results.items():
            say(f"cp -a of {name}")
            times["cp -a"] = await anyio.to_thread.run_sync(copy, folder / name, min(repeat, _COPIES))
    folders = {name: folder / name for name in names}
    told = {name: await engines.measure(endpoint, rootfs, folders, repeat, say) for name, endpoint in others.items()}
    return Results(results, told)


def engine_table(results: Results) -> str:
    """As Markdown: what engines take for the same, and how many times as long as overlay.

    `fork + freeze` is the snapshot alone; `round`, which runs `true` too, is what an engine's fork is like.
    """
    columns = engines.COLUMNS
    lines = ["| engine, state | " + " | ".join(columns) + " | fork ÷ overlay's round | ÷ its fork + freeze |"]
    lines.append("|---|" + "---|" * (len(columns) + 2))
    for engine, states in results.engines.items():
        for name, times in states.items():
            ours = {column: statistics.median(results.overlay[name][column]) for column in COLUMNS}
            took = statistics.median(times["fork"])
            cells = [f"{statistics.median(times[c]):.1f} [{min(times[c]):.1f}..{max(times[c]):.1f}]" for c in columns]
            cells += [f"{took / ours['round']:.0f}", f"{took / (ours['fork'] + ours['freeze']):.0f}"]
            lines.append(f"| {engine}, {name} (n={len(times['fork'])}) | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def table(results: dict[str, Times]) -> str:
    """As Markdown; the last rows are ratios of the last state's medians, and least times, to the first's."""
    lines = ["| state | " + " | ".join(COLUMNS) + " |", "|---|" + "---|" * len(COLUMNS)]
    for name, times in results.items():
        state = STATES[name]
        cells = [f"{statistics.median(times[c]):.1f} [{min(times[c]):.1f}..{max(times[c]):.1f}]" for c in COLUMNS]
        lines.append(f"| {name}: {state.files:,} files, {state.bytes / 1e6:,g} MB | " + " | ".join(cells) + " |")
    first, last = next(iter(results.values())), list(results.values())[-1]
    if first is not last:
        medians = [statistics.median(last[column]) / statistics.median(first[column]) for column in COLUMNS]
        least = [min(last[column]) / min(first[column]) for column in COLUMNS]
        for title, ratios in (("medians", medians), ("least times", least)):
            lines.append(f"| ratio of {title}, last to first | " + " | ".join(f"{r:.2f}" for r in ratios) + " |")
    return "\n".join(lines)


def report(measured: Results, repeat: int) -> dict[str, object]:
    """Everything that was measured, and on what."""
    results = measured.overlay
    return {
        "schema_version": 1,
        "machine": {"kernel": platform.release(), "cpus": os.cpu_count(), "load": os.getloadavg()},
        "repeat": repeat,
        "states": {name: asdict(STATES[name]) for name in results},
        "milliseconds": results,
        "engines": measured.engines,
        "medians": {name: {c: statistics.median(times[c]) for c in COLUMNS} for name, times in results.items()},
    }


def _say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def main(arguments: list[str]) -> int:
    """Returns the exit status."""
    parser = argparse.ArgumentParser(prog="python -m bench forks", description="What a fork costs.")
    parser.add_argument("--json", type=Path, help="write all figures to this file")
    parser.add_argument("--states", default="small,medium,large", help="which, in this order (default: %(default)s)")
    parser.add_argument("--repeat", type=int, default=20, help="rounds for each state (default: %(default)s)")
    parser.add_argument("--folder", type=Path, help="on the filesystem to measure; needs 6 GB (default: /var/tmp)")
    parser.add_argument(
        "--engine", action="append", default=[], metavar="NAME=ADDRESS", help="a container engine to compare with"
    )
    options = parser.parse_args(arguments)
    others = {name: Endpoint(address) for name, _, address in (text.partition("=") for text in options.engine)}
    names = options.states.split(",")
    if unknown := set(names) - set(STATES):
        parser.error(f"unknown states: {', '.join(sorted(unknown))}; there are {', '.join(STATES)}")
    parent: Path = options.folder or Path("/var/tmp")
    with tempfile.TemporaryDirectory(prefix="specbuild-bench-", dir=parent) as folder:
        results = anyio.run(run, Path(folder), names, options.repeat, _say, others)
    print(table(results.overlay))
    if others:
        print()
        print(engine_table(results))
    if options.json:
        options.json.write_text(json.dumps(report(results, options.repeat), indent=2))
    return 0
