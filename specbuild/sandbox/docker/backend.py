"""The backend: a session on a ledger and an engine."""

from __future__ import annotations

import hashlib
from collections.abc import AsyncGenerator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path

import anyio

from specbuild.errors import BaseUnavailableError, StoreError
from specbuild.sandbox.contract import BaseSource, Checkpoint, HostRoot, ImageLayers, Limits, Probe, RootfsTar, Sandbox
from specbuild.sandbox.docker.boxes import Boxes
from specbuild.sandbox.docker.endpoint import Endpoint, find_endpoint
from specbuild.sandbox.docker.engine import About, Engine
from specbuild.sandbox.docker.images import Images
from specbuild.sandbox.docker.ledger import Ledger
from specbuild.sandbox.docker.outgoing import Outgoing
from specbuild.sandbox.docker.probe import look
from specbuild.sandbox.docker.reap import reap
from specbuild.sandbox.docker.sandbox import DockerSandbox, Shop

_SETTLE_WITHIN = 300.0
_DISCARD_WITHIN = 300.0
"""Seconds to remove a container and what lies between it and its parent; each call has its own deadline too."""


class DockerBackend:
    """See `contract.Backend`. `root` is the folder of the ledgers; without `endpoint`, the engine is docker's own."""

    name = "docker"

    def __init__(self, root: Path, endpoint: Endpoint | None = None) -> None:
        self.root = root.absolute()
        self._endpoint = endpoint
        self._engine: Engine | None = None
        self._shop: Shop | None = None
        self._outgoing: Outgoing | None = None

    async def __aenter__(self) -> DockerBackend:
        self._engine = await Engine(self._endpoint or find_endpoint()).__aenter__()
        try:
            about = await self._engine.about()
            endpoint = self._engine.endpoint
            ledger = Ledger(self.root / _ledger_name(endpoint, about), endpoint.address)
            await anyio.to_thread.run_sync(ledger.open)
            boxes = Boxes(self._engine, about, ledger.id, ledger.claims.session)
            self._shop = Shop(boxes, Images(boxes, ledger), ledger, {})
            await reap(boxes, self._shop.images, ledger)
        except BaseException:
            await self.__aexit__()
            raise
        return self

    async def __aexit__(self, *exc: object) -> None:
        with anyio.CancelScope(shield=True):  # bounded: each part has its own limit
            try:
                if self._shop is not None:
                    with anyio.move_on_after(_SETTLE_WITHIN):
                        await self.release()
                    if self._outgoing is not None:
                        await anyio.to_thread.run_sync(self._outgoing.close)
                    await anyio.to_thread.run_sync(self._shop.ledger.claims.close)
            finally:
                self._shop = self._outgoing = None
                if self._engine is not None:
                    await self._engine.__aexit__()
                    self._engine = None

    @property
    def is_open(self) -> bool:
        """Whether a session is open."""
        return self._shop is not None

    @property
    def shop(self) -> Shop:
        """What the open session works with. Raises StoreError."""
        if self._shop is None:
            raise StoreError("no session is open on the container engine")
        return self._shop

    @property
    def address(self) -> str:
        """Where the engine of the open session is. Raises StoreError."""
        return self.shop.boxes.engine.endpoint.address

    async def probe(self) -> Probe:
        """Fork, run, freeze and discard for real; opens a session of its own if none is."""
        return Probe(self.name, await look(self))

    async def find(self, key: str) -> Checkpoint | None:
        """The Checkpoint of that key, leased to this session."""
        state = await self.shop.images.find(key)
        return state.checkpoint if state else None

    async def import_base(self, key: str, source: BaseSource) -> Checkpoint:
        """Make `source` the Checkpoint `key`."""
        match source:
            case RootfsTar(path):
                return await self.shop.images.import_base(key, path)
            case HostRoot():
                raise BaseUnavailableError(
                    "the running system cannot be a base in a container engine, which has its own files",
                    hint="use a portable base, such as debian:bookworm, or the overlay backend",
                )
            case ImageLayers(layers):
                return await self.shop.images.import_image(key, layers)

    def fork(self, parent: Checkpoint, *, limits: Limits | None = None) -> AbstractAsyncContextManager[Sandbox]:
        """A writable Sandbox on `parent`."""
        return self._fork(parent, limits or Limits())

    @asynccontextmanager
    async def _fork(self, parent: Checkpoint, limits: Limits) -> AsyncGenerator[Sandbox, None]:
        shop = self.shop
        state = await shop.images.start_of(await shop.images.require(parent.key))
        sandbox = DockerSandbox(shop, state, shop.ledger.claims.new_name(), limits)
        try:
            yield sandbox
        finally:
            with anyio.move_on_after(_DISCARD_WITHIN, shield=True):
                await sandbox.discard()

    async def graft(self, onto: Checkpoint, side: Checkpoint, key: str) -> Checkpoint | None:
        """The Checkpoint `key` if there is one; an engine's API cannot put the layer of one image on another."""
        return await self.find(key)

    async def layers(self, key: str) -> tuple[tuple[str, ...], ...]:
        """See `contract.LayerSource`."""
        return await self._exports.layers(key)

    async def write_layer(self, layer: str, fd: int, *, without: str = "") -> int:
        """See `contract.LayerSource`; what is kept of the files is what the engine's own archives keep."""
        return await self._exports.write_layer(layer, fd, without=without)

    async def write_root(self, key: str, fd: int, *, without: str = "") -> int:
        """See `contract.LayerSource`."""
        return await self._exports.write_root(key, fd, without=without)

    @property
    def _exports(self) -> Outgoing:
        shop = self.shop
        if self._outgoing is None:
            self._outgoing = Outgoing(shop.boxes, shop.images, shop.ledger)
        return self._outgoing

    async def keys(self) -> list[str]:
        """All Checkpoints in the ledger."""
        return [state.key for state in await anyio.to_thread.run_sync(self.shop.ledger.states)]

    async def keep(self, key: str, name: str) -> None:
        """Keep a Checkpoint and its chain beyond this session under a name."""
        await anyio.to_thread.run_sync(self.shop.ledger.claims.keep, key, name)

    async def forget(self, name: str) -> None:
        """End what `keep` promised for that name."""
        await anyio.to_thread.run_sync(self.shop.ledger.claims.forget, name)

    async def release(self) -> None:
        """Give up the Checkpoints of this session that nobody keeps and no other session leases."""
        await self._collect(bases=False, ending=True)

    async def prune(self, *, everything: bool = False) -> int:
        """Remove Checkpoints that nobody keeps or leases; bytes freed."""
        return await self._collect(bases=everything, ending=False)

    async def _collect(self, *, bases: bool, ending: bool) -> int:
        shop = self.shop
        gone = await anyio.to_thread.run_sync(lambda: shop.ledger.collect(bases=bases, ending=ending))
        return await shop.images.remove(gone)


def _ledger_name(endpoint: Endpoint, about: About) -> str:
    """A ledger for each engine. Podman tells another id each time, so that its address and folder have to do."""
    return hashlib.sha256(f"{endpoint.address}\0{about.root}".encode()).hexdigest()[:16]
