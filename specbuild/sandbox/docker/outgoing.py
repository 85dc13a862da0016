"""Files of Checkpoints on their way out of an engine: layer by layer, or all of them.

An engine gives the layers of an image all at once, so they are taken when the first is wanted, and lie in a folder of
the ledger until the session ends. What they have outside of the root of Sandboxes stays behind.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Sequence
from functools import partial
from itertools import pairwise
from pathlib import Path
from tempfile import TemporaryFile
from typing import IO

import anyio
import anyio.to_thread

from specbuild.errors import DownloadError, StoreError
from specbuild.oci.compression import open_layer
from specbuild.oci.engine import EngineImage, SavedLayers
from specbuild.sandbox.contract import Limits
from specbuild.sandbox.docker.boxes import Boxes
from specbuild.sandbox.docker.engine import Engine, dig
from specbuild.sandbox.docker.images import Images
from specbuild.sandbox.docker.ledger import Ledger, State
from specbuild.sandbox.docker.outside import take_out
from specbuild.sandbox.docker.request import LONG, Request
from specbuild.together import joined

FOLDER = "outgoing"
"""The folder of a ledger that has one for each session that exports."""
_CHUNK = 1 << 20


class Outgoing:
    """What one session exports. See `contract.LayerSource`."""

    def __init__(self, boxes: Boxes, images: Images, ledger: Ledger) -> None:
        self._boxes = boxes
        self._images = images
        self._ledger = ledger
        self._wanted: dict[str, set[str]] = {}
        """Layers that were named, by the image that they are taken from."""
        self._taken: dict[str, dict[str, Path]] = {}
        self._taking = anyio.Lock()

    @property
    def _folder(self) -> Path:
        folder = self._ledger.root / FOLDER / self._ledger.claims.session
        folder.mkdir(parents=True, exist_ok=True)
        return folder

    def close(self) -> None:
        """Remove what was taken."""
        shutil.rmtree(self._ledger.root / FOLDER / self._ledger.claims.session, ignore_errors=True)

    async def layers(self, key: str) -> tuple[tuple[str, ...], ...]:
        """Names of the layers of a Checkpoint; each names the image that it is taken from, too."""
        states = [await self._images.require(key)]
        while (parent := states[-1].parent) is not None:
            states.append(await self._images.require(parent))
        image, names = states[0].image, list[tuple[str, ...]]()
        for state, below in pairwise(states):
            own, from_flat = await self._own(state, below)
            names.append(self._name(image, own))
            image = below.image if from_flat else image
        names.append(self._name(image, await self._diff_ids(states[-1].image)))
        return tuple(reversed(names))

    async def _own(self, state: State, below: State) -> tuple[Sequence[str], bool]:
        """What lies between a state and the one below it, and whether that was flattened first."""
        ids = await self._diff_ids(state.image)
        for image in (below.flat, below.image):
            start = await self._diff_ids(image) if image else ()
            if start and tuple(ids[: len(start)]) == tuple(start):
                return ids[len(start) :], image == below.flat
        raise StoreError(f"the image of checkpoint {state.key} does not lie on that of its parent", hint="build again")

    async def _diff_ids(self, image: str) -> Sequence[str]:
        inspected = await self._boxes.image(image)
        if inspected is None:
            raise StoreError(f"the image {image} is not in the container engine any more", hint="build again")
        return tuple(dig(inspected, "RootFS", "Layers") or ())

    def _name(self, image: str, diff_ids: Sequence[str]) -> tuple[str, ...]:
        self._wanted.setdefault(image, set()).update(diff_ids)
        return tuple(f"{image} {diff_id}" for diff_id in diff_ids)

    async def write_layer(self, layer: str, fd: int, *, without: str = "") -> int:
        """Write a layer as a tar stream; how many entries it has."""
        image, _, diff_id = layer.partition(" ")
        async with self._taking:
            if image not in self._taken:
                self._taken[image] = await self._take(image)
        path = self._taken[image][diff_id]
        return await anyio.to_thread.run_sync(partial(_write_layer, path, fd, without))

    async def _take(self, image: str) -> dict[str, Path]:
        """Layers of an image as files."""
        told = await self._boxes.image(image)
        if told is None:
            raise StoreError(f"the image {image} is not in the container engine any more", hint="build again")
        folder = self._folder / image.removeprefix("sha256:")
        folder.mkdir()
        saved = SavedLayers(_Saving(self._boxes.engine), EngineImage(image, told), folder)
        paths: dict[str, Path] = {}

        async def fetch(diff_id: str) -> None:
            paths[diff_id] = await saved.fetch(diff_id)

        try:
            async with joined() as tasks:
                for diff_id in self._wanted.get(image, ()):
                    tasks.start_soon(fetch, diff_id)
        except DownloadError as error:
            raise StoreError(error.message) from None
        return paths

    async def write_root(self, key: str, fd: int, *, without: str = "") -> int:
        """Write all files of a Checkpoint as a tar stream; how many entries it has."""
        state = await self._images.require(key)
        container = f"specbuild-{self._ledger.claims.new_name()}"
        with TemporaryFile(dir=self._ledger.root) as spool:
            try:
                await self._boxes.create(container, state.start, Limits(), {})
                request = Request("GET", f"containers/{container}/export", within=LONG, urgent=True)
                async with self._boxes.engine.send(request) as files:
                    async for chunk in files.content.iter_chunked(_CHUNK):
                        await anyio.to_thread.run_sync(spool.write, chunk)
            finally:
                with anyio.CancelScope(shield=True):  # bounded: the call has its deadline
                    await self._boxes.remove(container)
            spool.seek(0)
            return await anyio.to_thread.run_sync(partial(_write, spool, fd, without))


class _Saving:
    """See `oci.engine.Saver`."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    async def save(self, image: EngineImage, sink: int) -> None:
        """Write the image's archive to a pipe."""
        async with self._engine.send(Request("GET", f"images/{image.id}/get", within=LONG)) as files:
            async for chunk in files.content.iter_chunked(_CHUNK):
                await anyio.to_thread.run_sync(_write_all, sink, chunk)


def _write_all(fd: int, data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(fd, view) :]


def _write_layer(path: Path, fd: int, without: str) -> int:
    with open_layer(path) as layer:
        return _write(layer, fd, without)


def _write(archive: IO[bytes], fd: int, without: str) -> int:
    with open(fd, "wb", closefd=False) as sink:
        return take_out(archive, sink, without=without)
