"""All rules of foresight, and what they say of a Candidate together."""

from __future__ import annotations

from collections.abc import Callable, Iterable

import anyio.to_thread

from specbuild.predictors.foresee import bounds, chances, companions, drifted, history, own_build, sources, surroundings
from specbuild.predictors.foresee.contract import Foreseen, Outlook
from specbuild.predictors.foresee.view import View, look

RULES: dict[str, Callable[[View], Iterable[Foreseen]]] = {
    "bounds": bounds.foresee,
    "sources": sources.foresee,
    "own build": own_build.foresee,
    "companions": companions.foresee,
    "eras": drifted.foresee,
    "surroundings": surroundings.foresee,
    "history": history.foresee,
}
"""By kind of evidence; all are asked. They read package indexes, so they are called in a worker thread."""


async def foresee(outlook: Outlook) -> tuple[Foreseen, ...]:
    """What the Candidate will run into, likeliest first; of the same diagnosis the likeliest alone.

    Takes some seconds at most, of which nearly all are spent waiting for the package index.
    """
    view = await look(outlook)
    return await anyio.to_thread.run_sync(_told, view)


def _told(view: View) -> tuple[Foreseen, ...]:
    best: dict[str, Foreseen] = {}
    for rule in RULES.values():
        for one in rule(view):
            other = best.get(one.failure.key)
            if one.probability >= chances.LEAST and (other is None or one.probability > other.probability):
                best[one.failure.key] = one
    return tuple(sorted(best.values(), key=lambda one: -one.probability))
