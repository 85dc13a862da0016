"""Clears up after sessions whose process was killed: their containers, and images that no Checkpoint has.

Only what carries the label of this ledger is looked at.
"""

from __future__ import annotations

import shutil

import anyio
import anyio.to_thread

from specbuild.sandbox.docker.boxes import SESSION, Boxes
from specbuild.sandbox.docker.engine import dig
from specbuild.sandbox.docker.images import Images
from specbuild.sandbox.docker.ledger import Ledger
from specbuild.sandbox.docker.outgoing import FOLDER


async def reap(boxes: Boxes, images: Images, ledger: Ledger) -> None:
    """Remove what belongs to no session that is alive."""
    await anyio.to_thread.run_sync(_end_dead_sessions, ledger)
    await _reap_containers(boxes, ledger)
    await _reap_images(boxes, ledger)
    await anyio.to_thread.run_sync(_reap_exports, ledger)
    gone = await anyio.to_thread.run_sync(lambda: ledger.collect(bases=False))
    await images.remove(gone)


def _end_dead_sessions(ledger: Ledger) -> None:
    with ledger.claims.locked():
        for session in ledger.claims.dead():
            ledger.claims.end(session)


def _alive_sessions(ledger: Ledger) -> set[str]:
    with ledger.claims.locked():
        return ledger.claims.alive()


async def _reap_containers(boxes: Boxes, ledger: Ledger) -> None:
    found = await boxes.containers()
    alive = await anyio.to_thread.run_sync(_alive_sessions, ledger)
    async with anyio.create_task_group() as group:
        for container in found:
            if dig(container, "Labels", SESSION) not in alive:
                group.start_soon(boxes.remove, container["Id"])


def _reap_exports(ledger: Ledger) -> None:
    alive = _alive_sessions(ledger)
    for folder in (ledger.root / FOLDER).glob("*"):
        if folder.name not in alive:
            shutil.rmtree(folder, ignore_errors=True)


async def _reap_images(boxes: Boxes, ledger: Ledger) -> None:
    """A commit whose process was killed before it was written down; what is being made now has a session that lives."""
    found = await boxes.images()
    alive = await anyio.to_thread.run_sync(_alive_sessions, ledger)
    states = await anyio.to_thread.run_sync(ledger.states)
    known = {image for state in states for image in state.images}
    for image in found:
        if image["Id"] not in known and dig(image, "Labels", SESSION) not in alive:
            await boxes.remove_image(image["Id"])
