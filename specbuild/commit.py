"""What follows a win: the files are kept, the lock is read, and the Recipe is built again from nothing."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from specbuild.clock import Clock
from specbuild.environment import Environment, Package
from specbuild.errors import SandboxError, TransientError
from specbuild.events import Replayed
from specbuild.export.lock import read_lock
from specbuild.library import Library
from specbuild.opened import OpenEnvironment
from specbuild.rebuild import rebuild
from specbuild.sandbox.contract import Backend
from specbuild.scheduler import LEADER_WEIGHT
from specbuild.together import together
from specbuild.verify import same
from specbuild.workshop import Surroundings


async def conclude(
    won: OpenEnvironment, backend: Backend, surroundings: Surroundings, clock: Clock, logs: Path
) -> Environment:
    """Keep the winner, and build it again beside that if it was asked for: neither waits for the other's disk.

    Returns the Environment with its lock and what came of its replay. Raises SandboxError if it cannot be kept.
    """
    kept, again = await together(
        lambda: _keep(won, backend, surroundings), lambda: _build_again(won, backend, surroundings, clock, logs)
    )
    return again.model_copy(update={"lock": kept.lock})


async def replayed(
    won: OpenEnvironment, backend: Backend, surroundings: Surroundings, clock: Clock, logs: Path
) -> Environment:
    """The Environment with the Verdict of its Recipe, run again from the Base without checkpoints of earlier Steps.

    Raises UsageError if its source tree is gone, SandboxError or TransientError for trouble that is not its own.
    """
    clock.phase("replay", won.strategy or "")
    began = clock.now()
    verdict = await rebuild(
        won.committed(),
        backend,
        won.workshop(backend, surroundings),
        limits=surroundings.limits,
        on_line=clock.line("replay"),
        logs=logs,
    )
    before = won.verdict
    agrees = verdict.ok and (before is None or same(before, verdict))
    clock.reporter.emit(Replayed(at=clock.now(), same=agrees, verdict=verdict))
    return won.model_copy(
        update={
            "reproducible": agrees,
            "verdict": (before or verdict).model_copy(update={"repeatable": agrees}),
            "seconds": won.seconds.model_copy(update={"replay": round(clock.now() - began, 3)}),
        }
    )


async def _keep(won: OpenEnvironment, backend: Backend, surroundings: Surroundings) -> Environment:
    """The Environment with its lock, written down once its files are on the disk; what the others left goes."""
    await backend.keep(won.committed().checkpoints[-1], won.id)
    kept = won.model_copy(update={"lock": await _lock(won, backend, surroundings)})
    Library(won.settings.cache_dir).save(kept)
    await backend.release()
    return kept


async def _build_again(
    won: OpenEnvironment, backend: Backend, surroundings: Surroundings, clock: Clock, logs: Path
) -> Environment:
    if not won.settings.replay:
        return won
    try:
        return await replayed(won, backend, surroundings, clock, logs)
    except (SandboxError, TransientError) as error:
        # What is committed stays committed: only the claim of reproducibility is not made.
        clock.notify(f"the environment could not be built again for comparison: {error.message}")
        return won


async def _lock(won: OpenEnvironment, backend: Backend, surroundings: Surroundings) -> tuple[Package, ...]:
    recipe = won.committed()
    checkpoint = await won.checkpoint(backend)
    # The build waits for it: with the weight of a follower, leaders of other builds kept it waiting for seconds.
    limits = replace(surroundings.limits, cpu_weight=LEADER_WEIGHT)
    async with backend.fork(checkpoint, limits=limits) as sandbox:
        return await read_lock(sandbox, lambda step: surroundings.command(step, recipe.base), recipe)
