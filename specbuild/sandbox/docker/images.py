"""Checkpoints as images: made by commit or import, flattened when their layers become too many, removed."""

from __future__ import annotations

import contextlib
from collections.abc import Generator, Sequence
from dataclasses import dataclass
from pathlib import Path

import anyio

from specbuild.errors import BaseUnavailableError, EngineError, StoreError
from specbuild.sandbox.claims import file_name
from specbuild.sandbox.contract import Checkpoint, ImageLayer, Limits
from specbuild.sandbox.docker import archives, fidelity
from specbuild.sandbox.docker.boxes import KEY, Boxes
from specbuild.sandbox.docker.engine import dig
from specbuild.sandbox.docker.image_import import ImageImport
from specbuild.sandbox.docker.ledger import Ledger, State
from specbuild.sandbox.docker.request import LONG, Request

MOST_LAYERS = 100
"""Layers of an image that a fork may start from. Docker mounts 125 or so; the fork itself adds two."""


@contextlib.contextmanager
def _taking(what: str) -> Generator[None]:
    """What an engine refuses to take is no base; its other troubles are its own, and told as what they are."""
    try:
        yield
    except EngineError as error:
        if type(error) is not EngineError:
            raise
        raise BaseUnavailableError(f"the engine does not take {what}: {error.message}") from error


@dataclass(frozen=True, slots=True)
class Changes:
    """What a container holds beyond the state that it was made from."""

    container: str
    folder: Path | None
    """Its own layer, if that can be reached."""
    size_bytes: int
    layers: int
    """How many layers the image has that it was made from."""
    between: tuple[str, ...] = ()
    """Images of containers before it, whose changes are in that image."""


class Images:
    """The images of one session's ledger."""

    def __init__(self, boxes: Boxes, ledger: Ledger) -> None:
        self._boxes = boxes
        self._ledger = ledger
        self._checked: set[str] = set()
        """Keys whose image was seen in this session: what is leased stays."""
        self._making = anyio.Lock()

    async def find(self, key: str) -> State | None:
        """The state of that key, if its image is still in the engine."""
        state = await anyio.to_thread.run_sync(self._ledger.claims.lease, key)
        if state is None or key in self._checked:
            return state
        if await self._boxes.image(state.image) is None:
            await anyio.to_thread.run_sync(self._ledger.drop, key)  # somebody else has removed it
            return None
        self._checked.add(key)
        return state

    async def require(self, key: str) -> State:
        """As `find`. Raises StoreError where there is none."""
        state = await self.find(key)
        if state is None:
            raise StoreError(f"checkpoint {key} is not in the store", hint="build it again")
        return state

    async def import_base(self, key: str, path: Path) -> Checkpoint:
        """The archive of a root filesystem as a base. Raises BaseUnavailableError."""
        async with self._making:
            if (known := await self.find(key)) is not None:
                return known.checkpoint
            with _taking(f"the base {path}"):
                async with archives.sending(archives.base_writer(path)) as archive:
                    image = await self._boxes.import_archive(archive, {KEY: file_name(key)})
            inspected = await self._boxes.image(image) or {}
            return (await self._add(State(key, None, 1, int(inspected.get("Size", 0)), image, 1))).checkpoint

    async def import_image(self, key: str, layers: Sequence[ImageLayer]) -> Checkpoint:
        """The layers of an image as a base. Raises BaseUnavailableError, and what fetching them raises."""
        if (known := await self.find(key)) is not None:
            return known.checkpoint
        with _taking("the image"):
            return (await ImageImport(self._boxes, self._ledger).run(key, layers, self._add)).checkpoint

    async def _add(self, state: State) -> State:
        """Write a new state down; its images go when its key is taken already."""
        known = await anyio.to_thread.run_sync(self._ledger.add, state)
        self._checked.add(state.key)
        if known.image == state.image:
            await self._boxes.tag(state.image, file_name(state.key))
        else:
            await self._remove_images([*state.images])
        return known

    async def commit(self, changes: Changes, parent: State, key: str) -> Checkpoint:
        """The files of a container that does not run as the Checkpoint `key`; not given up half-way."""
        made: list[State] = []
        with anyio.CancelScope(shield=True):  # bounded: each call has its deadline
            image = await self._boxes.commit(changes.container, {KEY: file_name(key)})
            layers = await self.restore(changes.folder, image, changes.layers + 1)
            state = State(key, parent.key, parent.depth + 1, changes.size_bytes, image, layers, between=changes.between)
            made.append(await self._add(state))
        return made[0].checkpoint

    async def restore(self, source: Path | None, image: str, layers: int) -> int:
        """Put back what a commit of the layer in `source` has lost; the number of layers of the image."""
        inspected = await self._boxes.image(image) or {}
        target = fidelity.folder_of(inspected)
        if source is not None and target is not None:
            await anyio.to_thread.run_sync(fidelity.restore, source, target)
        return len(dig(inspected, "RootFS", "Layers") or ()) or layers

    async def start_of(self, state: State) -> State:
        """The state, with an image that another layer can be put on."""
        if state.flat is not None or state.layers <= MOST_LAYERS:
            return state
        async with self._making:
            known = await self.require(state.key)
            if known.flat is not None:
                return known
            flat = await self._flatten(known)
            now = await anyio.to_thread.run_sync(self._ledger.add_flat, known.key, flat)
            if now is None or now.flat != flat:
                await self._remove_images([flat])
            return now or known

    async def _flatten(self, state: State) -> str:
        """An image of one layer with the files of `state`."""
        container = f"specbuild-{self._ledger.claims.new_name()}"
        try:
            await self._boxes.create(container, state.image, Limits(), {})
            request = Request("GET", f"containers/{container}/export", within=LONG, urgent=True)
            async with self._boxes.engine.send(request) as files:
                flat = await self._boxes.import_archive(
                    files.content.iter_chunked(1 << 20), {KEY: file_name(state.key)}
                )
            await self._boxes.tag(flat, f"flat-{file_name(state.key)}")
        finally:
            with anyio.CancelScope(shield=True):
                await self._boxes.remove(container)
        return flat

    async def remove(self, states: list[State]) -> int:
        """Remove the images of states that are in the ledger no more; bytes of their layers."""
        for state in states:
            self._checked.discard(state.key)
            await self._remove_images([*state.images])
        return sum(state.size_bytes for state in states)

    async def give_up(self, key: str) -> None:
        """Remove a Checkpoint of this session that nobody else has a use for: a probe's."""
        if (state := await self.find(key)) is not None:
            await anyio.to_thread.run_sync(self._ledger.drop, key)
            await self.remove([state])

    async def _remove_images(self, images: list[str]) -> None:
        for image in images:
            await self._boxes.remove_image(image)
