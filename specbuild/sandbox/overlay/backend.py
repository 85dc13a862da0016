"""The backend: a session on a store, with a helper for each realm that is used."""

from __future__ import annotations

import os
from collections.abc import AsyncGenerator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import asdict, replace
from itertools import pairwise
from pathlib import Path

import anyio

from specbuild.errors import BaseUnavailableError, SandboxError, StoreError, UsageError
from specbuild.sandbox.contract import (
    BaseSource,
    Checkpoint,
    HostRoot,
    ImageLayers,
    Limits,
    Probe,
    RootfsTar,
    Sandbox,
)
from specbuild.sandbox.limits import Controller, detect
from specbuild.sandbox.overlay import bwrap, host, idmap, images, reap, seccomp
from specbuild.sandbox.overlay.client import HelperClient, WorkError
from specbuild.sandbox.overlay.probe import look
from specbuild.sandbox.overlay.sandbox import Machine, OverlaySandbox
from specbuild.sandbox.overlay.stage import EMPTY_FOLDER, Stack
from specbuild.sandbox.overlay.store import About, Layer, Realm, Store
from specbuild.storage import FULL, as_store_error

FLATTEN_AT = 48
"""Layers above the base. Few enough for the one page of options of older kernels; the newer call takes 500."""
_SETTLE_WITHIN = 120.0
_DISCARD_WITHIN = 60.0


class OverlayBackend:
    """See `contract.Backend`. `root` is the folder of the store."""

    name = "overlay"

    def __init__(self, root: Path, *, unprivileged: bool | None = None) -> None:
        self.root = root.absolute()
        self.unprivileged = os.geteuid() != 0 if unprivileged is None else unprivileged
        self.ids = idmap.choose(unprivileged=self.unprivileged)
        self._store = Store(self.root, owner=None if self.unprivileged else self.ids.root)
        self._machines: dict[Realm, Machine] = {}
        self._lost: list[Machine] = []
        """Those whose helper was killed: Sandboxes may still refer to them."""
        self._lock = anyio.Lock()
        self._controller: Controller | None = None

    async def __aenter__(self) -> OverlayBackend:
        await anyio.to_thread.run_sync(self._store.open, self._about())
        try:
            await self._trash(await anyio.to_thread.run_sync(reap.reap, self._store))
        except BaseException:
            await self.__aexit__()
            raise
        return self

    @property
    def is_open(self) -> bool:
        """Whether a session is open."""
        return self._store.claims.is_open

    def _about(self) -> About:
        """What a reaper needs to know."""
        helpers = [machine.helper.pid for machine in self._machines.values()]
        return {"pid": os.getpid(), "helpers": [(pid, reap.start_time(pid)) for pid in helpers]}

    async def _trash(self, trash: dict[Realm, list[str]]) -> None:
        for realm, paths in trash.items():
            if paths:
                await (await self._machine(realm)).helper.trash(paths)

    async def __aexit__(self, *exc: object) -> None:
        with anyio.CancelScope(shield=True):  # bounded: each part has its own limit
            try:
                await self._settle()
            finally:
                for machine in (*self._lost, *self._machines.values()):
                    if machine.userns is not None:
                        os.close(machine.userns)
                    await machine.helper.close()
                self._lost.clear()
                self._machines.clear()
                await anyio.to_thread.run_sync(self._store.close)

    async def _settle(self) -> None:
        """Give up what nobody else needs, and wait until it is gone."""
        with anyio.move_on_after(_SETTLE_WITHIN):
            await self.release()
            for machine in self._machines.values():
                await machine.helper.settle()

    async def _machine(self, realm: Realm) -> Machine:
        """The helper of a realm, started when it is first needed, and again when it has been killed."""
        async with self._lock:
            if realm in self._machines and not self._machines[realm].helper.alive:
                self._lost.append(self._machines.pop(realm))
            if realm not in self._machines:
                self._machines[realm] = await self._start_machine(realm)
                self._store.describe(self._about())
        return self._machines[realm]

    async def _start_machine(self, realm: Realm) -> Machine:
        if self._controller is None:
            self._controller = await anyio.to_thread.run_sync(detect)
        program = await anyio.to_thread.run_sync(bwrap.find)
        ids = self.ids if realm is Realm.MAPPED or self.unprivileged else None
        folder = self._store.realm(realm)
        complaints = self.root / "logs" / f"{self._store.claims.session}.{realm}"
        helper = await HelperClient.start(folder, ids, program, complaints)
        mapped = ids is not None and ids.direct
        try:
            userns = os.open(f"/proc/{helper.pid}/ns/user", os.O_RDONLY | os.O_CLOEXEC) if mapped else None
        except OSError as error:  # it has been killed already
            await helper.close()
            raise helper.died() from error
        owner = self.ids.root if mapped else None
        return Machine(
            self._store, realm, helper, self._controller, seccomp.program(), folder=folder, userns=userns, owner=owner
        )

    async def probe(self) -> Probe:
        """Fork, run, freeze and discard for real; opens a session of its own if none is."""
        return Probe(self.name, await look(self))

    async def find(self, key: str) -> Checkpoint | None:
        """The Checkpoint of that key, leased to this session."""
        layer = await anyio.to_thread.run_sync(self._store.claims.lease, key)
        return layer.checkpoint if layer else None

    async def import_base(self, key: str, source: BaseSource) -> Checkpoint:
        """Make `source` the Checkpoint `key`."""
        if existing := await self.find(key):
            return existing
        match source:
            case RootfsTar(path):
                return await self._import_tar(key, path)
            case HostRoot(masked):
                return await self._import_host(key, masked)
            case ImageLayers(layers):
                return await images.ImageImport(self._store, self._new_base, self._lowers).run(key, layers)

    async def _import_host(self, key: str, masked: tuple[str, ...]) -> Checkpoint:
        if self.unprivileged:
            raise BaseUnavailableError(
                "the running system can be a base for root only: the kernel does not let an ordinary user lay an "
                "overlay over a root filesystem with others mounted in it, and its files would belong to nobody",
                hint="use a portable base, such as debian:bookworm",
            )
        host.check_mounts(masked)
        entries = await anyio.to_thread.run_sync(host.masks, [*masked, str(self.root)])

        async def fill(machine: Machine, name: str) -> Layer:
            await machine.helper.work("mask", root=f"live/{name}/diff", entries=[asdict(entry) for entry in entries])
            return Layer(key, None, 1, 0, Realm.HOST, ("/",))

        return (await self._new_base(Realm.HOST, fill)).checkpoint

    async def _import_tar(self, key: str, path: Path) -> Checkpoint:
        try:
            with path.open("rb") as archive:
                return await self.import_stream(key, archive.fileno(), None)
        except OSError as error:
            raise BaseUnavailableError(f"the base {path} cannot be read: {error}") from error

    async def import_stream(self, key: str, fd: int, parent: str | None) -> Checkpoint:
        """A tar archive; with a `parent`, in name only, it is no base and lasts no longer than the session."""

        async def fill(machine: Machine, name: str) -> Layer:
            await machine.helper.work("unpack", [fd], root=f"live/{name}/diff")
            return Layer(key, parent, 1, 0, Realm.MAPPED, ())

        return (await self._new_base(Realm.MAPPED, fill)).checkpoint

    async def _new_base(self, realm: Realm, fill: images.Fill, below: str | None = None) -> Layer:
        """A new layer of what `fill` puts into a live folder, which looks like `below` before."""
        machine = await self._machine(realm)
        name = await anyio.to_thread.run_sync(self._store.new_live, realm, below)
        try:
            layer = await fill(machine, name)
            size = await machine.helper.work("measure", path=f"live/{name}/diff")
        except (OSError, WorkError) as error:
            await self._give_up(machine, name)
            raise _no_base(error) from error
        except BaseException:
            await self._give_up(machine, name)
            raise
        if layer.parent is None:  # a base, which stays
            await anyio.to_thread.run_sync(self._store.make_durable)
        frozen, trash = await anyio.to_thread.run_sync(self._store.freeze, name, replace(layer, size_bytes=size))
        await machine.helper.trash(trash)
        return frozen

    async def _give_up(self, machine: Machine, name: str) -> None:
        with anyio.move_on_after(_DISCARD_WITHIN, shield=True):
            await machine.helper.trash([self._store.to_trash(machine.realm, f"live/{name}")])

    def fork(self, parent: Checkpoint, *, limits: Limits | None = None) -> AbstractAsyncContextManager[Sandbox]:
        """A writable Sandbox on `parent`."""
        return self._fork(parent, limits or Limits())

    @asynccontextmanager
    async def _fork(self, parent: Checkpoint, limits: Limits) -> AsyncGenerator[Sandbox, None]:
        layer = await anyio.to_thread.run_sync(self._store.claims.require, parent.key)
        machine = await self._machine(layer.realm)
        lowers = await self._lowers(layer)
        name = await anyio.to_thread.run_sync(self._store.new_live, layer.realm, f"{layer.folder}/diff")
        sandbox = OverlaySandbox(machine, layer, name, lowers, limits)
        try:
            yield sandbox
        finally:
            with anyio.move_on_after(_DISCARD_WITHIN, shield=True):
                await sandbox.discard()

    async def _lowers(self, layer: Layer) -> tuple[str, ...]:
        """The layers under a Sandbox, merged into two when they have become too many."""
        machine = await self._machine(layer.realm)
        lowers = self._store.stack_on(layer)
        if len(lowers) <= FLATTEN_AT:
            return lowers
        name = await anyio.to_thread.run_sync(self._store.new_live, layer.realm)
        try:
            await machine.helper.work("flatten", layers=lowers[1:], target=f"live/{name}/diff", below=lowers[0])
        except WorkError as error:
            await self._give_up(machine, name)
            raise StoreError(f"the layers of {layer.key} cannot be merged: {error}") from error
        except BaseException:
            await self._give_up(machine, name)
            raise
        await machine.helper.trash(await anyio.to_thread.run_sync(self._store.add_flat, layer, f"live/{name}/diff"))
        return self._store.stack_on(layer)

    async def graft(self, onto: Checkpoint, side: Checkpoint, key: str) -> Checkpoint | None:
        """The Checkpoint `key`: `onto` with the layers that `side` alone has, if nothing was changed on both ways."""
        if existing := await self.find(key):
            return existing
        stock, scion = [await anyio.to_thread.run_sync(self._store.claims.require, one.key) for one in (onto, side)]
        below, above = self._store.stack_on(stock), self._store.stack_on(scion)
        own = tuple(path for path in above if path not in below)
        others = tuple(path for path in below if path not in above)
        apart = stock.realm is scion.realm and own == above[len(above) - len(own) :] and len(own) < len(above)
        if not own or not apart or len(below) + len(own) >= FLATTEN_AT:
            return None
        machine = await self._machine(stock.realm)
        try:
            if await machine.helper.work("overlap", ours=own, theirs=others):
                return None
        except WorkError as error:
            raise StoreError(f"the layers of {side.key} and {onto.key} cannot be compared: {error}") from error
        made, trash = await anyio.to_thread.run_sync(self._store.graft, stock, own, key)
        await machine.helper.trash(trash)
        return made.checkpoint

    async def rootfs_chain(self, key: str) -> list[Path]:
        """The layers of a Checkpoint, lowest first: overlay folders with `user.overlay.*` attributes, or `/`.

        Raises StoreError for an unknown key.
        """
        layer = await anyio.to_thread.run_sync(self._store.claims.require, key)
        return [self._store.realm(layer.realm) / path for path in self._store.stack_on(layer)]

    async def layers(self, key: str) -> tuple[tuple[str, ...], ...]:
        """See `contract.LayerSource`."""
        states = [await anyio.to_thread.run_sync(self._store.claims.require, key)]
        while (parent := states[-1].parent) is not None:
            states.append(await anyio.to_thread.run_sync(self._store.claims.require, parent))
        states.reverse()
        _refuse_host(states[0])
        below = [states[0].below, *(_own(state, parent) for parent, state in pairwise(states))]
        return tuple(
            tuple(f"{state.realm}:{path}" for path in (*own, f"{state.folder}/diff"))
            for own, state in zip(below, states, strict=True)
        )

    async def write_layer(self, layer: str, fd: int, *, without: str = "") -> int:
        """See `contract.LayerSource`."""
        realm, _, path = layer.partition(":")
        self._store.check_lowers((path,))
        machine = await self._machine(Realm(realm))
        try:
            entries: int = await machine.helper.work("layer", [fd], path=path, without=without)
        except WorkError as error:
            raise StoreError(f"the layer {path} cannot be written: {error}") from error
        return entries

    async def write_root(self, key: str, fd: int, *, without: str = "") -> int:
        """See `contract.LayerSource`."""
        layer = await anyio.to_thread.run_sync(self._store.claims.require, key)
        _refuse_host(layer)
        machine = await self._machine(layer.realm)
        lowers = await self._lowers(layer)
        stack = Stack((EMPTY_FOLDER, *lowers))  # a mount that is only for reading needs two
        self._store.check_lowers(lowers)
        try:
            entries: int = await machine.helper.work("root", [fd], stack=asdict(stack), without=without)
        except WorkError as error:
            raise StoreError(f"the files of {layer.key} cannot be written: {error}") from error
        return entries

    async def keys(self) -> list[str]:
        """All Checkpoints in the store."""
        return [layer.key for layer in await anyio.to_thread.run_sync(self._store.layers)]

    async def size_bytes(self) -> int:
        """Bytes of all Checkpoints in the store."""
        return await anyio.to_thread.run_sync(self._store.size_bytes)

    async def keep(self, key: str, name: str) -> None:
        """Keep a Checkpoint and its chain beyond this session under a name."""
        await anyio.to_thread.run_sync(self._store.keep, key, name)

    async def forget(self, name: str) -> None:
        """End what `keep` promised for that name."""
        await anyio.to_thread.run_sync(self._store.claims.forget, name)

    async def release(self) -> None:
        """Give up the Checkpoints of this session that nobody keeps and no other session leases."""
        await self._trash(await anyio.to_thread.run_sync(lambda: self._store.collect(bases=False, ending=True)))

    async def prune(self, *, everything: bool = False) -> int:
        """Remove Checkpoints that nobody keeps or leases; bytes freed."""
        trash = await anyio.to_thread.run_sync(lambda: self._store.collect(bases=everything))
        freed = 0
        for realm, paths in trash.items():
            if paths:
                machine = await self._machine(realm)
                freed += await machine.helper.work("remove", paths=paths)
        return freed


def _refuse_host(layer: Layer) -> None:
    """Raises UsageError for what lies on the running system: its files are nobody else's business."""
    if layer.below[:1] == ("/",):
        raise UsageError(
            "the environment lies on the running system, whose files are not given away",
            hint="build on a portable base, such as debian:bookworm; a Dockerfile can be had all the same",
        )


def _own(layer: Layer, parent: Layer) -> tuple[str, ...]:
    """What lies between the layer and its parent: the layers that were grafted on."""
    ends = [at for at, path in enumerate(layer.below) if path.startswith(f"{parent.folder}/")]
    return layer.below[ends[-1] + 1 :] if ends else ()


def _no_base(error: OSError | WorkError) -> SandboxError:
    """A disk that is full says nothing of a base, and others would not fit either."""
    number = error.number if isinstance(error, WorkError) else error.errno
    full = as_store_error(OSError(number, os.strerror(number))) if number in FULL and number else None
    return full or BaseUnavailableError(f"the base cannot be made: {error}")
