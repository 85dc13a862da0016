"""A committed Environment, opened for use: run commands in it, rebuild it."""

from __future__ import annotations

import shlex
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Self

from pydantic import PrivateAttr, TypeAdapter, ValidationError

from specbuild.config import Settings, load_settings
from specbuild.environment import Environment
from specbuild.errors import UsageError
from specbuild.export.deliver import deliver
from specbuild.export.targets import Exported, parse_target
from specbuild.library import Library, Place
from specbuild.recipe import Recipe, Step, StepKind, with_services
from specbuild.repo.source import Repo
from specbuild.sandbox.backends import Opening, open_backend
from specbuild.sandbox.contract import Backend, Checkpoint, Completed, LayerSource, LineSink
from specbuild.scheduler import LEADER_WEIGHT
from specbuild.workshop import BuildWorkshop, Surroundings

_REPO = TypeAdapter(Repo)


def save_repo(repo: Repo, place: Place) -> None:
    """Keep what a rebuild has to know of the Repo beside its source."""
    (place.folder / "repo.json").write_bytes(_REPO.dump_json(repo))


def load_repo(environment: Environment, place: Place) -> Repo:
    """The Repo of an Environment that was built here. Raises UsageError if its source tree is gone."""
    try:
        repo = _REPO.validate_json((place.folder / "repo.json").read_bytes())
    except (OSError, ValidationError) as error:
        raise UsageError(
            f"the source tree of environment {environment.id} is not in the cache any more",
            hint=f"build it again: specbuild build {environment.repo.origin}",
        ) from error
    return repo


class OpenEnvironment(Environment):
    """An Environment with what it takes to use it: what `build` and `open_environment` return."""

    _settings: Settings = PrivateAttr()

    @classmethod
    def of(cls, environment: Environment, settings: Settings) -> Self:
        """The same Environment, ready for use under `settings`."""
        opened = cls.model_construct(**dict(environment))
        opened._settings = settings
        return opened

    @property
    def settings(self) -> Settings:
        """Where its store is."""
        return self._settings

    def committed(self) -> Recipe:
        """The committed Recipe. Raises UsageError if nothing was committed."""
        if self.recipe is None:
            raise UsageError(
                f"environment {self.id} was not committed: {self.message}",
                hint="only verified environments can be used",
            )
        return self.recipe

    async def run(
        self,
        command: str | Sequence[str],
        *,
        network: bool | None = None,
        timeout: float | None = None,
        on_line: LineSink | None = None,
        log: Path | None = None,
    ) -> Completed:
        """Run a shell command line, or a program with its arguments, in a fresh fork of the Environment.

        It starts in the source tree with the Environment's variables, its services running; files that it writes are
        gone afterwards. `network` is by default as for the tests where there are services, which would meet those of
        others on the machine's ports; else there is one.
        Raises UsageError if the Environment's files were pruned, SandboxError for trouble of our own.
        """
        recipe = self.committed()
        surroundings = Surroundings.of(self._settings)
        line = command if isinstance(command, str) else shlex.join(command)
        line = with_services(recipe.check.services, line)
        if network is None:
            network = recipe.check.step.network if recipe.check.services else True
        step = Step(kind=StepKind.TEST, run=line, env=recipe.test_env, network=network)
        full = replace(surroundings.command(step, recipe.base), timeout=timeout, silence=None)
        async with self.backend() as backend:
            checkpoint = await self.checkpoint(backend)
            # Somebody waits for it, as nobody does for the speculation of other builds.
            limits = replace(surroundings.limits, cpu_weight=LEADER_WEIGHT)
            async with backend.fork(checkpoint, limits=limits) as sandbox:
                return await sandbox.run(full, on_line=on_line, log=log)

    def backend(self) -> Opening:
        """A session on the backend that holds its files, whatever is usual here; on another if the settings name one.

        Raises ConfigError for an unknown name.
        """
        held, named = self.held_by, self._settings.backend
        if held is None or named not in {"auto", held.backend}:
            return open_backend(self._settings)
        return open_backend(self._settings.model_copy(update={"backend": held.backend}), engine=held.engine)

    async def checkpoint(self, backend: Backend) -> Checkpoint:
        """The Environment's files in the store. Raises UsageError if they were pruned, or are on another backend."""
        found = await backend.find(self.committed().checkpoints[-1])
        if found is not None:
            return found
        if self.held_by is not None and self.held_by.backend != backend.name:
            raise UsageError(
                f"the files of environment {self.id} are held by {self.held_by}, not by {backend.name}",
                hint="leave out --backend, and SPECBUILD_BACKEND or `backend` in the settings",
            )
        where = self.held_by or "the store"
        raise UsageError(
            f"the files of environment {self.id} are not in {where} any more",
            hint=f"build it again: specbuild build {self.repo.origin}",
        )

    async def export(self, to: str, *, force: bool = False) -> Exported:
        """Export to `FORMAT` or `FORMAT:PLACE`, as `specbuild export --to` takes it; see `export.targets.Format`.

        Raises UsageError for a format that is unknown, a place that is taken (unless `force`), or files that were
        pruned; SandboxError for trouble of our own.
        """
        self.committed()
        return await deliver(self, parse_target(to), self.files, force=force, client=self.settings.client)

    @asynccontextmanager
    async def files(self) -> AsyncGenerator[tuple[LayerSource, str]]:
        """The store that has the Environment's files, and the key of its Checkpoint."""
        async with self.backend() as backend:
            checkpoint = await self.checkpoint(backend)
            yield layer_source(backend), checkpoint.key

    def workshop(self, backend: Backend, surroundings: Surroundings | None = None) -> BuildWorkshop:
        """A workshop over the Environment's own source tree; `surroundings` where there are some already."""
        place = Library(self._settings.cache_dir).place(self.id)
        repo = load_repo(self, place)
        around = surroundings or Surroundings.of(self._settings)
        made = BuildWorkshop(backend, repo.path, repo.tracked, around)
        made.expect(self.committed())
        return made


def layer_source(backend: Backend) -> LayerSource:
    """The backend as what gives layers away. Raises UsageError if it is none."""
    if not isinstance(backend, LayerSource):
        raise UsageError(
            f"layers cannot be exported from the backend {backend.name}",
            hint="export a Dockerfile, or build with --backend overlay",
        )
    return backend


async def open_environment(ref: str | Path | Environment, *, settings: Settings | None = None) -> OpenEnvironment:
    """An Environment by its file, output folder, id, or `last`. Raises UsageError if there is none."""
    chosen = settings or load_settings()
    found = ref if isinstance(ref, Environment) else Library(chosen.cache_dir).find(str(ref))
    return OpenEnvironment.of(found, chosen)
