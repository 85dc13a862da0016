"""Clears up after sessions whose process was killed: their containers, and images that no Checkpoint has.

Only what carries the label of this ledger is looked at. A session is dead when nobody holds the lock on its file,
which the kernel takes from a process however it ends.
"""

from __future__ import annotations

import anyio

from specbuild.sandbox.docker.boxes import SESSION, Boxes
from specbuild.sandbox.docker.engine import dig
from specbuild.sandbox.docker.images import Images
from specbuild.sandbox.docker.ledger import Ledger


async def reap(boxes: Boxes, images: Images, ledger: Ledger) -> None:
    """Remove what belongs to no session that is alive."""
    await anyio.to_thread.run_sync(ledger.end_dead_sessions)
    await _reap_containers(boxes, ledger)
    await _reap_images(boxes, ledger)
    gone = await anyio.to_thread.run_sync(lambda: ledger.collect(bases=False))
    await images.remove(gone)


async def _reap_containers(boxes: Boxes, ledger: Ledger) -> None:
    found = await boxes.containers()
    alive = await anyio.to_thread.run_sync(ledger.alive_sessions)
    async with anyio.create_task_group() as group:
        for container in found:
            if dig(container, "Labels", SESSION) not in alive:
                group.start_soon(boxes.remove, container["Id"])


async def _reap_images(boxes: Boxes, ledger: Ledger) -> None:
    """A commit whose process was killed before it was written down; what is being made now has a session that lives."""
    found = await boxes.images()
    alive = await anyio.to_thread.run_sync(ledger.alive_sessions)
    states = await anyio.to_thread.run_sync(ledger.states)
    known = {image for state in states for image in state.images}
    for image in found:
        if image["Id"] not in known and dig(image, "Labels", SESSION) not in alive:
            await boxes.remove_image(image["Id"])
