"""A committed Environment, opened for use: run commands in it, rebuild it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from pydantic import TypeAdapter, ValidationError

from specbuild.config import Settings, load_settings
from specbuild.environment import Environment
from specbuild.errors import UsageError
from specbuild.library import Library, Place
from specbuild.recipe import SOURCE_DIR, Recipe, Step, StepKind
from specbuild.repo.source import Repo
from specbuild.sandbox.backends import open_backend
from specbuild.sandbox.contract import Backend, Checkpoint, Completed, LineSink
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


@dataclass(frozen=True, slots=True)
class OpenEnvironment:
    """A committed Environment on a backend. Use as an async context manager, or only for one `run`."""

    environment: Environment
    settings: Settings

    @property
    def recipe(self) -> Recipe:
        """The committed Recipe. Raises UsageError if nothing was committed."""
        if self.environment.recipe is None:
            raise UsageError(
                f"environment {self.environment.id} was not committed: {self.environment.message}",
                hint="only verified environments can be used",
            )
        return self.environment.recipe

    async def run(
        self,
        command: str | Sequence[str],
        *,
        network: bool = True,
        timeout: float | None = None,
        on_line: LineSink | None = None,
        log: Path | None = None,
    ) -> Completed:
        """Run a shell command line, or a program with its arguments, in a fresh fork of the Environment.

        It starts in the source tree with the Environment's variables; files that it writes are gone afterwards.
        Raises UsageError if the Environment's files were pruned, SandboxError for trouble of our own.
        """
        async with open_backend(self.settings) as backend:
            checkpoint = await self.checkpoint(backend)
            base = self.recipe.base
            surroundings = Surroundings.of(self.settings)
            line = command if isinstance(command, str) else ""
            step = Step(
                kind=StepKind.TEST, run=line, cwd=SOURCE_DIR, env=self.recipe.test_env, network=network, timeout=1e9
            )
            full = surroundings.command(step, base)
            argv = full.argv if isinstance(command, str) else tuple(command)
            limits = surroundings.limits
            async with backend.fork(checkpoint, limits=limits) as sandbox:
                return await sandbox.run(
                    replace(full, argv=argv, timeout=timeout, silence=None), on_line=on_line, log=log
                )

    async def checkpoint(self, backend: Backend) -> Checkpoint:
        """The Environment's files in the store. Raises UsageError if they were pruned."""
        found = await backend.find(self.recipe.checkpoints[-1])
        if found is None:
            raise UsageError(
                f"the files of environment {self.environment.id} are not in the store any more",
                hint=f"build it again: specbuild build {self.environment.repo.origin}",
            )
        return found

    def workshop(self, backend: Backend) -> BuildWorkshop:
        """A workshop over the Environment's own source tree."""
        place = Library(self.settings.cache_dir).place(self.environment.id)
        repo = load_repo(self.environment, place)
        made = BuildWorkshop(backend, repo.path, repo.tracked, Surroundings.of(self.settings))
        made.expect(self.recipe)
        return made


async def open_environment(ref: str | Path | Environment, *, settings: Settings | None = None) -> OpenEnvironment:
    """An Environment by its file, output folder, id, or `last`. Raises UsageError if there is none."""
    chosen = settings or load_settings()
    found = ref if isinstance(ref, Environment) else Library(chosen.cache_dir).find(str(ref))
    return OpenEnvironment(found, chosen)
