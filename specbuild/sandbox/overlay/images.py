"""The layers of an image as layers of the store: each by itself, under the digest of the chain that ends in it.

On top comes one layer more, under the key of the base: it holds what every base needs to have.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Protocol

import anyio
import anyio.to_thread

from specbuild.errors import BaseUnavailableError, IntegrityError
from specbuild.model import digest_of
from specbuild.oci.compression import open_layer
from specbuild.oci.content import chain_ids, mismatch
from specbuild.sandbox.contract import Checkpoint, ImageLayer
from specbuild.sandbox.overlay.client import WorkError
from specbuild.sandbox.overlay.sandbox import Machine
from specbuild.sandbox.overlay.store import Layer, Realm, Store
from specbuild.together import joined

Fill = Callable[[Machine, str], Awaitable[Layer]]
"""Fills the live folder of that name; what it is then, but for its size."""


class NewLayer(Protocol):
    """Makes a layer of what is filled in."""

    async def __call__(self, realm: Realm, fill: Fill, below: str | None = None) -> Layer: ...


class ImageImport:
    """One import, or several one after the other."""

    def __init__(
        self, store: Store, new_layer: NewLayer, lowers: Callable[[Layer], Awaitable[tuple[str, ...]]]
    ) -> None:
        self._store = store
        self._new_layer = new_layer
        self._lowers = lowers

    async def run(self, key: str, layers: Sequence[ImageLayer]) -> Checkpoint:
        """Make the image the Checkpoint `key`, out of what the store has of it and what has to be fetched."""
        if not layers:
            raise BaseUnavailableError("the image has no layers, so there is nothing to run in it")
        keys = [chain_key(chain) for chain in chain_ids(layer.diff_id for layer in layers)]
        below, have = await anyio.to_thread.run_sync(self._highest, keys)
        async with joined() as tasks:
            fetches = [_Fetch(layer) for layer in layers[have:]]
            for fetch in fetches:
                tasks.start_soon(fetch.run)
            for layer_key, fetch in zip(keys[have:], fetches, strict=True):
                below = await self._add(layer_key, below, fetch)
        assert below is not None, "there is a layer"  # noqa: S101
        return (await self._top(key, below)).checkpoint

    def _highest(self, keys: Sequence[str]) -> tuple[Layer | None, int]:
        """The topmost layer that the store has, leased, and how many it stands for."""
        for index in range(len(keys), 0, -1):
            if layer := self._store.claims.lease(keys[index - 1]):
                return layer, index
        return None, 0

    async def _add(self, key: str, below: Layer | None, fetch: _Fetch) -> Layer:
        lowers = self._store.stack_on(below) if below else ()
        path = await fetch.path()

        async def fill(machine: Machine, name: str) -> Layer:
            opaque = await _unpack(machine, fetch.layer.diff_id, path, f"live/{name}/diff", lowers)
            depth = below.depth + 1 if below else 1
            # No parent: it stays, as bases do, for the next image that begins alike.
            return Layer(key, None, depth, 0, Realm.MAPPED, () if opaque else lowers)

        return await self._new_layer(Realm.MAPPED, fill, lowers[-1] if lowers else None)

    async def _top(self, key: str, below: Layer) -> Layer:
        lowers = await self._lowers(below)

        async def fill(machine: Machine, name: str) -> Layer:
            work = self._store.new_work(Realm.MAPPED, name, 1)
            await machine.helper.work("cover", stack={"lowers": lowers, "upper": f"live/{name}/diff", "work": work})
            return Layer(key, None, below.depth + 1, 0, Realm.MAPPED, lowers)

        return await self._new_layer(Realm.MAPPED, fill, lowers[-1])


class _Fetch:
    """A layer that is being fetched."""

    def __init__(self, layer: ImageLayer) -> None:
        self.layer = layer
        self._done = anyio.Event()
        self._path: Path | None = None

    async def run(self) -> None:
        self._path = await self.layer.fetch()
        self._done.set()

    async def path(self) -> Path:
        """Where it is, once it is there. A failure to get it cancels whoever waits."""
        await self._done.wait()
        assert self._path is not None, "set before the event"  # noqa: S101
        return self._path


def chain_key(chain_id: str) -> str:
    """The key of the layer that ends a chain."""
    return digest_of(["image", chain_id])


async def _unpack(machine: Machine, diff_id: str, path: Path, root: str, lowers: Sequence[str]) -> bool:
    """Unpack an archive below `root`, and check that it was the right one; whether it hides what is below."""
    read, write = os.pipe2(os.O_CLOEXEC)
    pumped: list[str] = []
    over = anyio.Event()
    opaque: bool = False

    async def pump() -> None:
        pumped.append(await anyio.to_thread.run_sync(partial(_pump, path, write, diff_id.partition(":")[0])))
        over.set()

    async with joined() as tasks:
        tasks.start_soon(pump)
        try:
            try:
                opaque = await machine.helper.work("unpack_layer", [read], root=root, lowers=lowers[::-1])
            finally:
                os.close(read)  # a pump that nobody reads from ends
        except WorkError:
            await over.wait()  # or until the pump's own error ends this: to who unpacks it, it only looks cut off
            raise
    if pumped != [diff_id]:
        raise mismatch("a layer", pumped[0], diff_id)
    return opaque


def _pump(path: Path, write: int, algorithm: str) -> str:
    """Write the plain archive to a pipe; its digest. A reader that has gone ends it, too."""
    digest = hashlib.new(algorithm, usedforsecurity=False)
    try:
        with open_layer(path) as archive:
            while chunk := archive.read(1 << 18):
                digest.update(chunk)
                view = memoryview(chunk)
                while view:
                    view = view[os.write(write, view) :]
    except BrokenPipeError:
        return "nothing whole"
    except OSError as error:
        raise IntegrityError(f"the layer {path} cannot be read: {error}", hint="try again") from error
    finally:
        os.close(write)
    return f"{algorithm}:{digest.hexdigest()}"
