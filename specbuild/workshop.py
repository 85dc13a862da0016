"""How the work of a race is done: Steps and Checks become Commands in a Sandbox, bases come from their providers."""

from __future__ import annotations

import os
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol, Self

from specbuild.bases.choose import provider_of
from specbuild.config import Settings
from specbuild.recipe import CLEAR_SOURCE, SHELL, SOURCE_DIR, BaseRef, Check, Recipe, Step, StepKind
from specbuild.sandbox.caches import cache_binds
from specbuild.sandbox.contract import (
    Backend,
    Bind,
    Checkpoint,
    Command,
    Completed,
    End,
    Limits,
    LineSink,
    Sandbox,
)
from specbuild.sandbox.passthrough import HostSettings, base_environment, host_settings
from specbuild.sides import sides
from specbuild.verify import verify
from specbuild.verify.verdict import Verdict

MEMORY_SHARE = 0.75
"""Part of the machine's memory that one Sandbox may use when the user sets no bound."""


class AptRelay(Protocol):
    """The proxy through which the sandboxes' apt shares downloads."""

    @property
    def settings(self) -> HostSettings:
        """The host's settings, with apt told to use it."""
        ...

    def distrust(self, output: str) -> None:
        """Forget what a command says in its output that it could not use."""
        ...


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What Commands get besides their Step: the minimal environment, the host's settings, shared caches."""

    settings: Settings
    host: HostSettings
    caches: Path
    relay: AptRelay | None = None
    """What the downloads of apt go through, while there is one; see `specbuild.downloads`."""

    @classmethod
    def of(cls, settings: Settings) -> Self:
        """The surroundings on this machine."""
        return cls(settings, host_settings(settings.cache_dir / "settings"), settings.cache_dir / "caches")

    @property
    def limits(self) -> Limits:
        """What each Sandbox may use."""
        memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
        return Limits(
            memory_bytes=self.settings.memory_bytes or int(memory * MEMORY_SHARE),
            processes=self.settings.processes,
            disk_bytes=self.settings.disk_bytes,
        )

    def command(self, step: Step, base: BaseRef) -> Command:
        """The Command of a Step on `base`. Nothing of the caller's environment gets in but what `host` lists."""
        binds, cache_env = cache_binds(step.caches, self.caches, base=base)
        host = self.relay.settings if self.relay and "apt" in step.caches else self.host
        host_env: Mapping[str, str] = host.env if step.network else {}
        host_binds: tuple[Bind, ...] = host.binds if step.network else ()
        return Command(
            argv=(*SHELL, step.run),
            cwd=step.cwd,
            env={**base_environment(base), **host_env, **cache_env, **dict(step.env)},
            network=step.network,
            timeout=min(step.timeout, self.settings.step_timeout),
            silence=self.settings.silence_timeout,
            binds=(*host_binds, *binds),
        )


class BuildWorkshop:
    """The real workshop for one source tree. See `specbuild.execution.Workshop`."""

    def __init__(self, backend: Backend, source: Path, tracked: Mapping[str, str], surroundings: Surroundings) -> None:
        self._backend = backend
        self._source = source
        self._tracked = tracked
        self._surroundings = surroundings
        self._bases: dict[str, BaseRef] = {}

    def expect(self, recipe: Recipe) -> None:
        """Learn which states belong to which base: shared caches are kept apart by base."""
        states = (*recipe.checkpoints, *(side.key for side in sides(recipe).values()))
        self._bases |= dict.fromkeys(states, recipe.base)

    async def provide(self, base: BaseRef) -> Checkpoint:
        """The base's Checkpoint, from its provider."""
        return await provider_of(base.name, self._surroundings.settings).provide(base, self._backend)

    async def run_step(self, sandbox: Sandbox, step: Step, *, on_line: LineSink, log: Path | None) -> Completed:
        """Run a Step; the `source` Step places the private copy of the Repo."""
        if step.kind is StepKind.SOURCE:
            return await self._place_source(sandbox, on_line, log)
        done = await sandbox.run(self._command(sandbox, step), on_line=on_line, log=log)
        if not done.ok and self._surroundings.relay is not None:
            self._surroundings.relay.distrust(done.tail)
        return done

    async def verify(self, sandbox: Sandbox, check: Check, *, on_line: LineSink, log: Path | None) -> Verdict:
        """Judge a leaf by its Check."""
        return await verify(
            sandbox,
            check,
            command=lambda step: self._command(sandbox, step),
            tracked=self._tracked,
            min_pass_ratio=self._surroundings.settings.min_pass_ratio,
            on_line=on_line,
            log=log,
        )

    def _command(self, sandbox: Sandbox, step: Step) -> Command:
        return self._surroundings.command(step, self._bases[sandbox.parent.key])

    async def _place_source(self, sandbox: Sandbox, on_line: LineSink, log: Path | None) -> Completed:
        began = time.monotonic()
        if self._bases[sandbox.parent.key].is_image:
            done = await sandbox.run(self._command(sandbox, CLEAR_SOURCE), on_line=on_line, log=log)
            if not done.ok:
                return done
        await sandbox.copy_in(self._source, SOURCE_DIR)
        return Completed(
            end=End.EXITED,
            exit_code=0,
            seconds=time.monotonic() - began,
            cpu_seconds=0.0,
            peak_memory_bytes=None,
            written_bytes=0,
            tail="",
            log=None,
        )
