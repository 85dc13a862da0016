"""What follows a win: the files are kept, the lock is read, and the Recipe is built again from nothing."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

from specbuild.clock import Clock
from specbuild.environment import Environment, Package, PackageDifferences
from specbuild.errors import SandboxError, TransientError
from specbuild.events import Replayed
from specbuild.export.lock import Artifacts, read_lock
from specbuild.knowledge.artifacts import IndexArtifacts
from specbuild.knowledge.wheels import PackageIndex
from specbuild.library import Library
from specbuild.lockfile import compare_packages
from specbuild.opened import OpenEnvironment
from specbuild.rebuild import rebuild
from specbuild.sandbox.contract import Backend, Sandbox
from specbuild.scheduler import LEADER_WEIGHT
from specbuild.together import together
from specbuild.verify import same
from specbuild.verify.verdict import Verdict
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
    return again.outcome(kept.lock) if again else won.model_copy(update={"lock": kept.lock})


@dataclass(frozen=True, slots=True)
class Replay:
    """What came of building an Environment again."""

    of: Environment
    verdict: Verdict
    packages: tuple[Package, ...] | None
    """None if a step failed before they could be read."""
    seconds: float

    @property
    def agrees(self) -> bool:
        """Whether the Verdict is the same."""
        before = self.of.verdict
        return self.verdict.ok and (before is None or same(before, self.verdict))

    def outcome(self, lock: tuple[Package, ...]) -> Environment:
        """The Environment with what the replay says of it; `lock` is what its own files hold.

        It is reproducible if the Verdict is the same and no package came in another version.
        """
        differences = PackageDifferences() if self.packages is None else compare_packages(lock, self.packages)
        return self.of.model_copy(
            update={
                "lock": lock,
                "reproducible": self.agrees and not differences,
                "differences": differences,
                "verdict": (self.of.verdict or self.verdict).model_copy(update={"repeatable": self.agrees}),
                "replayed": self.verdict,
                "seconds": self.of.seconds.model_copy(update={"replay": round(self.seconds, 3)}),
            }
        )


async def replayed(
    won: OpenEnvironment, backend: Backend, surroundings: Surroundings, clock: Clock, logs: Path
) -> Environment:
    """The Environment with the Verdict of its Recipe, run again from the Base without checkpoints of earlier Steps.

    Raises UsageError if its source tree is gone, SandboxError or TransientError for trouble that is not its own.
    """
    return (await _replay(won, backend, surroundings, clock, logs)).outcome(won.lock)


async def _replay(
    won: OpenEnvironment, backend: Backend, surroundings: Surroundings, clock: Clock, logs: Path
) -> Replay:
    clock.phase("replay", won.strategy or "")
    began = clock.now()
    packages: tuple[Package, ...] | None = None

    async def look(sandbox: Sandbox) -> None:
        nonlocal packages
        packages = await _packages(won, sandbox, surroundings)

    verdict = await rebuild(
        won.committed(),
        backend,
        won.workshop(backend, surroundings),
        limits=surroundings.limits,
        on_line=clock.line("replay"),
        on_step=lambda title: clock.phase("replay", title),
        logs=logs,
        look=look,
    )
    found = Replay(won, verdict, packages, clock.now() - began)
    clock.reporter.emit(Replayed(at=clock.now(), same=found.agrees, verdict=verdict))
    return found


async def _keep(won: OpenEnvironment, backend: Backend, surroundings: Surroundings) -> Environment:
    """The Environment with its lock, written down once its files are on the disk; what the others left goes."""
    await backend.keep(won.committed().checkpoints[-1], won.id)
    kept = won.model_copy(update={"lock": await _lock(won, backend, surroundings)})
    Library(won.settings.cache_dir).save(kept)
    await backend.release()
    return kept


async def _build_again(
    won: OpenEnvironment, backend: Backend, surroundings: Surroundings, clock: Clock, logs: Path
) -> Replay | None:
    if not won.settings.replay:
        return None
    try:
        return await _replay(won, backend, surroundings, clock, logs)
    except (SandboxError, TransientError) as error:
        # What is committed stays committed: only the claim of reproducibility is not made.
        clock.notify(f"the environment could not be built again for comparison: {error.message}")
        return None


async def _lock(won: OpenEnvironment, backend: Backend, surroundings: Surroundings) -> tuple[Package, ...]:
    checkpoint = await won.checkpoint(backend)
    # The build waits for it: with the weight of a follower, leaders of other builds kept it waiting for seconds.
    limits = replace(surroundings.limits, cpu_weight=LEADER_WEIGHT)
    async with backend.fork(checkpoint, limits=limits) as sandbox, PackageIndex(won.settings.cache_dir) as index:
        return await _packages(won, sandbox, surroundings, IndexArtifacts(index))


async def _packages(
    won: OpenEnvironment, sandbox: Sandbox, surroundings: Surroundings, artifacts: Artifacts | None = None
) -> tuple[Package, ...]:
    recipe = won.committed()
    return await read_lock(sandbox, lambda step: surroundings.command(step, recipe.base), recipe, artifacts=artifacts)
