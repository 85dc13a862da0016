"""Images as bases: their layers are loaded into the engine as layers of an image of ours, which gets the tools on top.

What the engine has of the layers already, from an image that began alike, is neither fetched nor sent again, if the
engine can do with that. Which layers an image of ours was made of is written in a label of it.
"""

from __future__ import annotations

import hashlib
import io
import json
import tarfile
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from itertools import takewhile
from pathlib import Path
from tempfile import TemporaryFile
from typing import IO, Any

import anyio

from specbuild.errors import BaseUnavailableError, EngineError
from specbuild.oci.compression import open_layer
from specbuild.oci.content import host_platform, mismatch
from specbuild.sandbox.claims import file_name
from specbuild.sandbox.contract import ImageLayer, Limits
from specbuild.sandbox.docker import archives, tools
from specbuild.sandbox.docker.boxes import KEY, LAYERS, REPOSITORY, Boxes, image_id
from specbuild.sandbox.docker.engine import dig
from specbuild.sandbox.docker.files import Files
from specbuild.sandbox.docker.image_layer import Moving, UnknownFolderError, inside
from specbuild.sandbox.docker.ledger import Ledger, State
from specbuild.sandbox.docker.refusals import refusal
from specbuild.sandbox.docker.request import LONG, Request
from specbuild.together import joined

_MOUNT_POINTS = ("/dev", "/proc", "/sys")
_COVERED = ("hosts", "resolv.conf")
"""Files of `/etc` that the engine's are shown over: plain files, so that what is shown leaves nothing behind."""
_MOST_OF_ETC = 256 << 20
"""Bytes: a hundred times what is usual."""
_LONG_AGO = "1970-01-01T00:00:00Z"
_CHUNK = 1 << 20


Add = Callable[[State], Awaitable[State]]
"""Writes a state down; the one that had its key before, if there was one."""


@dataclass(frozen=True, slots=True)
class _Fetched:
    diff_id: str
    path: Path


class ImageImport:
    """One import, or several one after the other."""

    def __init__(self, boxes: Boxes, ledger: Ledger) -> None:
        self._boxes = boxes
        self._ledger = ledger

    async def run(self, key: str, layers: Sequence[ImageLayer], add: Add) -> State:
        """Make the image the base `key`, out of what the engine has of it and what has to be fetched, and `add` it.

        Nothing is left in the engine if it fails. Raises BaseUnavailableError, what fetching raises, EngineError.
        """
        if not layers:
            raise BaseUnavailableError("the image has no layers, so there is nothing to run in it")
        added: list[State] = []
        async with self._loaded(key, layers) as loaded:
            with anyio.CancelScope(shield=True):  # bounded: each call has its deadline
                image = await self._furnish(key, loaded)
                size = int((await self._boxes.image(image) or {}).get("Size", 0))
                count = len(layers) + 1
                added.append(await add(State(key, None, count, size, image, count, between=(loaded,))))
        return added[0]

    # The layers

    @asynccontextmanager
    async def _loaded(self, key: str, layers: Sequence[ImageLayer]) -> AsyncGenerator[str]:
        """The id of an image of the layers, which is removed again if the block fails."""
        name = f"{REPOSITORY}/{self._boxes.store}:layers-{self._ledger.claims.new_name()}"
        have = await self._shared([layer.diff_id for layer in layers])
        try:
            try:
                await self._load(key, name, layers, have)
            except (UnknownFolderError, EngineError) as error:
                if not have or type(error) not in {UnknownFolderError, EngineError}:
                    raise
                await self._load(key, name, layers, [])  # not all engines can do without what they have
            loaded = await self._boxes.image(name)
            if loaded is None:
                raise EngineError(f"the container engine has loaded {name}, and does not have it")
            yield image_id(str(loaded["Id"]))
        except BaseException:
            with anyio.CancelScope(shield=True):  # bounded: each call has its deadline
                await self._boxes.remove_image(name)
            raise

    async def _shared(self, diff_ids: Sequence[str]) -> list[str]:
        """The engine's own layers for the lowest of those; of the image of ours that has most of them."""
        if self._boxes.about.name == "Podman":  # it wants all of them
            return []
        best, most = "", 0
        for image in await self._boxes.images():
            made_of = str(dig(image, "Labels", LAYERS) or "").split(",")
            alike = takewhile(lambda pair: pair[0] == pair[1], zip(made_of, diff_ids, strict=False))
            if (count := len(list(alike))) > most:
                best, most = str(image["Id"]), count
        inspected = await self._boxes.image(best) if best else None
        ids: list[str] = dig(inspected, "RootFS", "Layers") or []
        return ids[:most]

    async def _load(self, key: str, name: str, layers: Sequence[ImageLayer], have: Sequence[str]) -> None:
        fetched = await _fetch(layers[len(have) :])
        made_of = ",".join(layer.diff_id for layer in layers)
        labels = self._boxes.labels(**{KEY: file_name(key), LAYERS: made_of})
        image = _Archive(name, labels, have, fetched, self._ledger.root)
        async with archives.sending(image.write) as archive:
            request = Request("POST", "images/load", {"quiet": "1"}, archive=archive, within=LONG)
            async with self._boxes.engine.send(request) as response:
                text = await response.read()
        for line in text.splitlines():
            if line.strip() and (trouble := dig(json.loads(line), "error")):
                raise refusal(400, str(trouble), "images/load")

    # What lies on top

    async def _furnish(self, key: str, loaded: str) -> str:
        """The image with the tools, and with what every root filesystem needs to have; its id."""
        container = f"specbuild-{self._ledger.claims.new_name()}"
        try:
            await self._boxes.create(container, loaded, Limits(), {})
            files = Files(self._boxes.engine, container, None)
            await files.put("/", await _top(files), outer=True)
            return await self._boxes.commit(container, {KEY: file_name(key), LAYERS: ""})
        finally:
            with anyio.CancelScope(shield=True):  # bounded: each call has its deadline
                await self._boxes.remove(container)


async def _top(files: Files) -> bytes:
    """The archive of the topmost layer."""
    folders = [folder for folder in _MOUNT_POINTS if not await files.exists(folder)]
    kinds: Mapping[str, bytes] = {}
    if await files.exists("/etc"):
        kinds = await files.kinds("/etc", _MOST_OF_ETC)
    else:
        folders.append("/etc")
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w", format=tarfile.PAX_FORMAT) as tar:
        tools.add(tar)
        for folder in folders:
            tar.addfile(_entry(folder, tarfile.DIRTYPE, 0o755))
        for name in _COVERED:
            if kinds.get(name) != tarfile.REGTYPE:
                tar.addfile(_entry(f"/etc/{name}", tarfile.REGTYPE, 0o644))
    return buffer.getvalue()


def _entry(path: str, kind: bytes, mode: int) -> tarfile.TarInfo:
    info = tarfile.TarInfo(inside(path))
    info.type, info.mode = kind, mode
    return info


async def _fetch(layers: Sequence[ImageLayer]) -> list[_Fetched]:
    """All at once, as their source wants it. The first failure ends the others."""
    paths: dict[int, Path] = {}

    async def fetch(at: int) -> None:
        paths[at] = await layers[at].fetch()

    async with joined() as tasks:
        for at in range(len(layers)):
            tasks.start_soon(fetch, at)
    return [_Fetched(layer.diff_id, paths[at]) for at, layer in enumerate(layers)]


@dataclass(frozen=True, slots=True)
class _Archive:
    """An image as `docker load` takes it (moby, image/spec/v1.2): layers, a configuration, and a list of both."""

    name: str
    labels: Mapping[str, str]
    have: Sequence[str]
    """The lowest layers, which the engine has, by their digests."""
    layers: Sequence[_Fetched]
    """Those above."""
    spool: Path
    """A folder with room for one layer at a time."""

    def write(self, sink: IO[bytes]) -> None:
        """See `archives.Writer`. Raises IntegrityError, DownloadError, BaseUnavailableError."""
        moving = Moving(whole=not self.have)
        diff_ids, names = [*self.have], [f"{digest.partition(':')[2]}.tar" for digest in self.have]
        with tarfile.open(fileobj=sink, mode="w|", format=tarfile.PAX_FORMAT) as tar:
            for layer in self.layers:
                names.append(f"{len(names)}.tar")
                with TemporaryFile(dir=self.spool) as moved:
                    _move(moving, layer, moved, self.spool)
                    diff_ids.append(f"sha256:{_digest(moved, 'sha256')}")
                    _add(tar, names[-1], moved)
            config = self._config(diff_ids)
            config_name = f"{hashlib.sha256(config).hexdigest()}.json"
            _add(tar, config_name, io.BytesIO(config))
            manifest = [{"Config": config_name, "RepoTags": [self.name], "Layers": names}]
            _add(tar, "manifest.json", io.BytesIO(json.dumps(manifest).encode()))

    def _config(self, diff_ids: Sequence[str]) -> bytes:
        platform = host_platform()
        config: dict[str, Any] = {
            **platform.model_dump(exclude_defaults=True),
            "os": platform.os,
            "created": _LONG_AGO,
            "config": {"Labels": dict(self.labels)},
            "rootfs": {"type": "layers", "diff_ids": list(diff_ids)},
            "history": [{"created": _LONG_AGO, "created_by": "a layer of the image"} for _ in diff_ids],
        }
        return json.dumps(config).encode()


def _move(moving: Moving, layer: _Fetched, target: IO[bytes], spool: Path) -> None:
    """Write the layer as that of a container, once it has turned out to be the right one."""
    algorithm = layer.diff_id.partition(":")[0]
    with TemporaryFile(dir=spool) as plain:
        with open_layer(layer.path) as archive:
            while chunk := archive.read(_CHUNK):
                plain.write(chunk)
        if (found := f"{algorithm}:{_digest(plain, algorithm)}") != layer.diff_id:
            raise mismatch("a layer", found, layer.diff_id)
        plain.seek(0)
        try:
            moving.move(plain, target)
        except tarfile.TarError as error:
            raise BaseUnavailableError(f"a layer of the image cannot be unpacked: {error}") from error


def _digest(file: IO[bytes], algorithm: str) -> str:
    file.seek(0)
    return hashlib.file_digest(file, algorithm).hexdigest()  # type: ignore[arg-type]


def _add(tar: tarfile.TarFile, name: str, file: IO[bytes]) -> None:
    info = tarfile.TarInfo(name)
    info.size = file.seek(0, io.SEEK_END)
    file.seek(0)
    tar.addfile(info, file)
