"""What a fork costs on a container engine as its command line would make it: commit, create, start.

The engine's API is called directly, without a sandbox backend of ours: this is what overlay forks are compared with.
Milliseconds; `fork` is commit, create and start until a child that ran `true` is over; `cancel` the time from the kill
of a container with 20 processes until it is gone; `disk` what one commit with one child takes, in MB.
"""

from __future__ import annotations

import secrets
import time
from collections import defaultdict
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import anyio

from specbuild.errors import EngineError
from specbuild.sandbox.docker.endpoint import Endpoint
from specbuild.sandbox.docker.engine import Engine
from specbuild.sandbox.docker.request import LONG, Request
from specbuild.sandbox.overlay import trees

COLUMNS = ("commit", "create", "start", "fork", "cancel", "remove", "disk")
LABELS = {"specbuild.bench": "1"}
_SECONDS = 60.0
"""For the rounds of one state, of which there are two at least."""
_STUBBORN = "trap '' TERM; for i in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19; do sleep 999 & done; wait"

Times = dict[str, list[float]]


@dataclass(frozen=True, slots=True)
class Bench:
    """One engine under test."""

    engine: Engine
    root: Path
    """The folder of its data."""

    async def call(self, method: str, path: str, body: Any = None, **params: str) -> Any:
        """A call of its API."""
        return await self.engine.json(Request(method, path, params, body, within=LONG))

    async def create(self, image: str, argv: list[str], binds: list[str] | None = None) -> str:
        """A container's name."""
        name = f"specbuild-bench-{secrets.token_hex(6)}"
        host = {"NetworkMode": "none", "Binds": binds or [], "LogConfig": {"Type": "none"}}
        body = {"Image": image, "Cmd": argv, "Labels": LABELS, "HostConfig": host, "Env": ["PATH=/usr/bin:/bin"]}
        await self.call("POST", "containers/create", body, name=name)
        return name

    async def start(self, name: str) -> None:
        """Start a container."""
        await self.call("POST", f"containers/{name}/start")

    async def wait(self, name: str) -> None:
        """Wait for the end of a container."""
        await self.call("POST", f"containers/{name}/wait", interval="10ms")

    async def remove_image(self, image: str) -> None:
        """Remove an image; Podman takes a moment to see that a container of it is gone."""
        for _ in range(50):
            try:
                await self.call("DELETE", f"images/{image}")
            except EngineError as error:
                if error.status != 409:  # gone, for which Podman has words of its own
                    return
                await anyio.sleep(0.1)
            else:
                return

    async def remove(self, name: str) -> None:
        """Kill and remove a container."""
        await self.call("DELETE", f"containers/{name}", force="1", v="1")

    async def commit(self, name: str) -> str:
        """The id of an image of a container."""
        return str((await self.call("POST", "commit", {}, container=name, pause="0"))["Id"])

    def used(self) -> int:
        """Bytes on the disk, of what does not go meanwhile."""
        return trees.measure(str(self.root))


async def measure(
    endpoint: Endpoint, rootfs: Path, folders: Mapping[str, Path], repeat: int, say: Callable[[str], None]
) -> dict[str, Times]:
    """All columns for each state, whose files are in `folders`."""
    async with Engine(endpoint) as engine:
        about = await engine.about()
        bench = Bench(engine, Path(about.root))
        data = await anyio.Path(rootfs).read_bytes()
        params = {"fromSrc": "-", "changes": "LABEL specbuild.bench=1"}
        base = str((await engine.json(Request("POST", "images/create", params, archive=data, within=LONG)))["status"])
        try:
            results: dict[str, Times] = {}
            for name, folder in folders.items():
                say(f"{about.name} {about.version}: {name}")
                results[name] = await _state(bench, base, folder, repeat)
            return results
        finally:
            with anyio.CancelScope(shield=True):
                await bench.remove_image(base)


async def _state(bench: Bench, base: str, folder: Path, repeat: int) -> Times:
    times: Times = defaultdict(list)
    parent = await bench.create(base, ["cp", "-a", "/source", "/state"], [f"{folder}:/source:ro"])
    try:
        await bench.start(parent)
        await bench.wait(parent)
        deadline = time.monotonic() + _SECONDS
        while len(times["fork"]) < 2 or (len(times["fork"]) < repeat and time.monotonic() < deadline):
            await _round(bench, parent, times)
    finally:
        with anyio.CancelScope(shield=True):
            await bench.remove(parent)
    return times


async def _round(bench: Bench, parent: str, times: Times) -> None:
    weigh = not times["disk"]
    before = await anyio.to_thread.run_sync(bench.used) if weigh else 0
    clock = [time.perf_counter()]

    def lap(column: str) -> None:
        clock.append(time.perf_counter())
        times[column].append((clock[-1] - clock[-2]) * 1000)

    image = await bench.commit(parent)
    lap("commit")
    child = await bench.create(image, ["true"])
    lap("create")
    await bench.start(child)
    await bench.wait(child)
    lap("start")
    times["fork"].append((clock[-1] - clock[0]) * 1000)
    if weigh:
        times["disk"].append((await anyio.to_thread.run_sync(bench.used) - before) / 1e6)
    await bench.remove(child)
    await _cancel(bench, image, times)
    clock.append(time.perf_counter())
    await bench.remove_image(image)
    lap("remove")


async def _cancel(bench: Bench, image: str, times: Times) -> None:
    name = await bench.create(image, ["sh", "-c", _STUBBORN])
    await bench.start(name)
    await anyio.sleep(0.3)
    began = time.perf_counter()
    await bench.call("POST", f"containers/{name}/kill")
    await bench.wait(name)
    times["cancel"].append((time.perf_counter() - began) * 1000)
    await bench.remove(name)
