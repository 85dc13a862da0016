"""Containers and images of ours: how they are made, watched and removed. All of them carry our labels.

Nothing here is given up half-way: a call that makes or removes something in the engine is waited for, within its
deadline, also when whoever waits was cancelled; else it could be made after it was looked for.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Generator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import anyio

from specbuild.errors import EngineError
from specbuild.sandbox.contract import Limits
from specbuild.sandbox.docker import envelope
from specbuild.sandbox.docker.engine import About, Engine, dig
from specbuild.sandbox.docker.refusals import refusal
from specbuild.sandbox.docker.request import LONG, SHORT, Archive, Request

LABEL = "specbuild"
"""On everything of ours."""
STORE = "specbuild.store"
"""The id of the ledger that it belongs to."""
SESSION = "specbuild.session"
"""The session that made it."""
KEY = "specbuild.checkpoint"
"""The key of a Checkpoint, on its image."""
LAYERS = "specbuild.layers"
"""On an image of the layers of a registry's or an engine's image: their digests, lowest first, joined by commas."""
REPOSITORY = "localhost/specbuild"
"""Where images of ours are tagged, so that `docker image prune` leaves them and people can tell what they are."""
REMOVED_WITHIN = 120.0
"""Seconds for the engine to remove a container, whose files it deletes."""
STOPPED_WITHIN = 30.0
"""Seconds from the end of a container's output, or its kill, to its own end."""

_TRIES, _PAUSE = 5, 0.1
"""How often an image that is in use is tried to be removed, and seconds between."""


@dataclass(frozen=True, slots=True)
class Used:
    """What a running container has used so far."""

    cpu_seconds: float
    peak_memory_bytes: int | None


@dataclass(frozen=True, slots=True)
class Boxes:
    """The containers and images of one ledger in one engine."""

    engine: Engine
    about: About
    store: str
    session: str

    def labels(self, **more: str) -> dict[str, str]:
        """Of everything that this session makes."""
        return {LABEL: "1", STORE: self.store, SESSION: self.session, **more}

    # Containers

    async def create(self, name: str, image: str, limits: Limits, places: Mapping[str, tuple[str, bool]]) -> None:
        """A container on an image, by its id. `places`: where each host path is shown, and whether to write to."""
        body = {
            "Image": image,
            "Hostname": "specbuild",
            "Entrypoint": envelope.entrypoint(),
            "Cmd": [],
            "User": "0:0",
            "Env": [],
            "WorkingDir": "/",
            "OpenStdin": True,
            "StdinOnce": True,
            "AttachStdin": True,
            "AttachStdout": True,
            "AttachStderr": True,
            "Tty": False,
            "Labels": self.labels(),
            "HostConfig": self._host_config(limits, places),
        }
        request = Request("POST", "containers/create", {"name": name}, body, within=LONG, whole=True)
        await self.engine.json(request)

    def _host_config(self, limits: Limits, places: Mapping[str, tuple[str, bool]]) -> dict[str, Any]:
        config: dict[str, Any] = {
            "NetworkMode": "bridge",
            "IpcMode": "private",
            "CapAdd": ["SYS_ADMIN", "NET_ADMIN"],
            "SecurityOpt": ["no-new-privileges", "seccomp=unconfined", "apparmor=unconfined", "label=disable"],
            "CpuShares": self.shares(limits.cpu_weight),
            "PidsLimit": limits.processes + envelope.OWN_PROCESSES if limits.processes else None,
            "LogConfig": {"Type": "none", "Config": {}},
            "AutoRemove": False,
            "Mounts": [
                {"Type": "bind", "Source": source, "Target": target, "ReadOnly": not writable}
                for source, (target, writable) in places.items()
            ],
        }
        if limits.memory_bytes:
            config |= {"Memory": limits.memory_bytes, "MemorySwap": limits.memory_bytes}
        if self.about.rootless:  # else a fresh /proc cannot be mounted
            config |= {"MaskedPaths": [], "ReadonlyPaths": []}
        return config

    def shares(self, weight: int) -> int:
        """`cpu.weight` as engines want it: shares of cgroup v1, which runc turns into weights again for v2."""
        if self.about.cgroup_version == 1:
            return max(2, min(262144, weight * 1024 // 100))
        return 2 + (weight - 1) * 262142 // 9999

    async def start(self, name: str) -> None:
        """Start a container that does not run."""
        await self.engine.json(Request("POST", f"containers/{name}/start", within=LONG, whole=True))

    async def kill(self, name: str) -> None:
        """Kill all of a container, if it runs."""
        with anyio.CancelScope(shield=True), suppress_missing():
            await self.engine.json(Request("POST", f"containers/{name}/kill", {"signal": "KILL"}, urgent=True))

    async def wait(self, name: str) -> int:
        """The exit status of a container that is about to end. Raises EngineBusyError when it does not."""
        path, params = f"containers/{name}/wait", {"interval": "10ms"}  # how often Podman looks
        answer = await self.engine.json(Request("POST", path, params, within=STOPPED_WITHIN, urgent=True))
        return int(answer["StatusCode"])

    async def remove(self, name: str) -> None:
        """Kill and remove a container, if there is one."""
        path, params = f"containers/{name}", {"force": "1", "v": "1"}
        with anyio.CancelScope(shield=True), suppress_missing():
            await self.engine.json(Request("DELETE", path, params, within=REMOVED_WITHIN, urgent=True))

    async def inspect(self, name: str, *, size: bool = False) -> dict[str, Any]:
        """Everything that the engine knows of a container."""
        path, params = f"containers/{name}/json", {"size": "1" if size else "0"}
        found: dict[str, Any] = await self.engine.json(Request("GET", path, params, within=LONG if size else SHORT))
        return found

    async def used(self, name: str) -> Used | None:
        """What a container has used, if it runs."""
        path, params = f"containers/{name}/stats", {"stream": "false", "one-shot": "true"}
        try:
            stats = await self.engine.json(Request("GET", path, params, within=10, urgent=True))
        except EngineError:
            return None
        total: int = dig(stats, "cpu_stats", "cpu_usage", "total_usage") or 0
        return Used(total / 1e9, dig(stats, "memory_stats", "max_usage") or None) if total else None

    async def reweigh(self, name: str, weight: int) -> None:
        """Change the share of CPU of a container; one that ends meanwhile, or an engine that cannot, is fine."""
        with suppress_missing():
            body = {"CpuShares": self.shares(weight)}
            await self.engine.json(Request("POST", f"containers/{name}/update", body=body, urgent=True))

    async def containers(self) -> list[dict[str, Any]]:
        """All containers of this ledger."""
        found: list[dict[str, Any]] = await self.engine.json(Request("GET", "containers/json", self._ours()))
        return found

    # Images

    async def commit(self, name: str, labels: Mapping[str, str]) -> str:
        """The files of a container that does not run as an image; its id."""
        changes = [f"LABEL {key}={value}" for key, value in self.labels(**labels).items()]
        params = {"container": name, "pause": "0", "changes": changes}
        answer = await self.engine.json(Request("POST", "commit", params, body={}, within=LONG, whole=True))
        return image_id(str(answer["Id"]))

    async def import_archive(self, archive: Archive, labels: Mapping[str, str]) -> str:
        """An image of one layer, with the files of an archive; its id."""
        changes = [f"LABEL {key}={value}" for key, value in self.labels(**labels).items()]
        if self.about.libpod:
            return await self._import_by_libpod(archive, changes)
        request = Request("POST", "images/create", {"fromSrc": "-", "changes": changes}, archive=archive, within=LONG)
        async with self.engine.send(request) as response:
            told = [json.loads(line) for line in (await response.read()).splitlines() if line.strip()]
        for message in told:
            if "error" in message:
                raise refusal(400, str(message["error"]), request.name)
        return image_id(str(told[-1]["status"]).strip() if told else "")

    async def _import_by_libpod(self, archive: Archive, changes: Sequence[str]) -> str:
        """By Podman's own call: its answer to Docker's leaves a copy of each archive among its temporary files."""
        path, params = f"v{self.about.libpod}/libpod/images/import", {"changes": changes}
        request = Request("POST", path, params, archive=archive, within=LONG, versioned=False)
        return image_id(str((await self.engine.json(request))["Id"]))

    async def image(self, image: str) -> dict[str, Any] | None:
        """Everything that the engine knows of an image; None when it has no such."""
        try:
            found: dict[str, Any] = await self.engine.json(Request("GET", f"images/{image}/json"))
        except EngineError as error:
            if error.status == 404:
                return None
            raise
        return found

    async def tag(self, image: str, name: str) -> None:
        """Give an image a name of ours."""
        params = {"repo": f"{REPOSITORY}/{self.store}", "tag": name}
        await self.engine.json(Request("POST", f"images/{image}/tag", params, whole=True))

    async def images(self) -> list[dict[str, Any]]:
        """All images of this ledger."""
        found: list[dict[str, Any]] = await self.engine.json(Request("GET", "images/json", self._ours()))
        return found

    async def remove_image(self, image: str) -> None:
        """Remove an image of ours, unless somebody else has given it a name or uses it: then only our names go."""
        inspected = await self.image(image)
        if inspected is None:
            return
        if dig(inspected, "Config", "Labels", STORE) != self.store:
            return
        names: list[str] = [name for name in inspected.get("RepoTags") or () if name != "<none>:<none>"]
        ours = [name for name in names if name.startswith(f"{REPOSITORY}/{self.store}:")]
        for name in ours:  # with the last of its names an image goes
            await self._delete_image(name)
        if not names:
            await self._delete_image(image)

    async def _delete_image(self, name: str) -> None:
        """What is in use stays, and is the next session's to remove; Podman sees late that a container is gone."""
        with anyio.CancelScope(shield=True):
            for _ in range(_TRIES):
                try:
                    params = {"force": "0", "noprune": "1"}
                    await self.engine.json(Request("DELETE", f"images/{name}", params, within=LONG))
                except EngineError as error:
                    if error.status != 409:
                        return
                    await anyio.sleep(_PAUSE)
                else:
                    return

    def _ours(self) -> dict[str, str]:
        """Parameters for all that carries the label of this ledger."""
        return {"all": "1", "filters": f'{{"label":["{STORE}={self.store}"]}}'}


def image_id(image: str) -> str:
    """An id as Docker tells it; Podman leaves the algorithm out here and there."""
    return image if image.startswith("sha256:") else f"sha256:{image}"


@contextlib.contextmanager
def suppress_missing() -> Generator[None]:
    """Ignore that something is not there, does not run, or is being removed already."""
    try:
        yield
    except EngineError as error:
        if error.status not in {304, 404, 409, 500}:
            raise
