"""The whole journey on one page: from a Repo to a verified Environment."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from importlib.util import find_spec
from pathlib import Path
from typing import TypeVar

import anyio

from specbuild import pressure
from specbuild._version import __version__
from specbuild.account import candidate_reports, timeline, waste
from specbuild.bases.choose import Pending
from specbuild.clock import Clock
from specbuild.commit import conclude, replayed
from specbuild.config import Reuse, Settings, load_settings
from specbuild.downloads import shared_downloads
from specbuild.engine_replay import EngineOptions, replay_by_engine
from specbuild.environment import Environment, Holder, Seconds
from specbuild.errors import SpecBuildError
from specbuild.events import (
    BuildEnded,
    BuildStarted,
    Fan,
    Reporter,
    Silent,
)
from specbuild.export.image import source_date
from specbuild.export.write import write_artifacts
from specbuild.field import Field
from specbuild.generation import current
from specbuild.journal import Journal
from specbuild.learned import Learned
from specbuild.library import Library, Place
from specbuild.locked import check_result, provide_base, survey_locked
from specbuild.lockfile import Lock, read_lock_file
from specbuild.mending import Mender
from specbuild.opened import OpenEnvironment, load_repo, open_environment, save_repo
from specbuild.outage import refuse_outage
from specbuild.revisions import record
from specbuild.sandbox.backends import open_backend
from specbuild.sandbox.contract import Backend
from specbuild.speculate import Later, RaceResult, race
from specbuild.storage import on_disk
from specbuild.story import Memory, predictions
from specbuild.survey import Plan, Survey, plan, repo_info, survey
from specbuild.tree import Entry
from specbuild.workshop import BuildWorkshop, Surroundings

__all__ = ["OpenEnvironment", "Plan", "build", "open_environment", "plan", "replay", "replay_docker", "run"]

T = TypeVar("T")


async def build(
    repo: str | Path,
    *,
    settings: Settings | None = None,
    output: Path | None = None,
    reporter: Reporter | None = None,
    locked: str | Path | None = None,
    **options: object,
) -> OpenEnvironment:
    """Set up `repo` by racing candidate Recipes; the first that verifies is committed.

    `repo` is a folder, an archive, a git URL with an optional `@revision`, or `pypi:NAME==VERSION`. `options` are
    fields of `Settings`. With `locked`, the path of a `specbuild.lock`, nothing is raced: exactly what it holds is done
    again. Files (Dockerfile, setup.sh, specbuild.lock, environment.json, journal.jsonl) go to `output`, or to the
    build's own folder in the cache. Returns an Environment whose `outcome` tells whether anything was committed; with
    one that was, `await environment.run("pytest -x")` runs commands in it.
    Raises UsageError for what cannot be understood, LockError if what is locked is not what is there, SandboxError
    where this machine cannot run sandboxes, or has a disk that is full or refuses, TransientError for trouble of
    network or registries. Cancelling leaves nothing running.
    """
    chosen = settings or load_settings(**options)
    lock = read_lock_file(Path(locked)) if locked is not None else None
    source_date()  # what cannot be meant is told now, not when the result is written
    with on_disk(chosen.cache_dir):
        place = Library(chosen.cache_dir).new_place()
        with Journal(place.journal) as journal:
            built = await _Build(str(repo), chosen, place, Fan(journal, reporter or Silent()), lock).run(output)
    return OpenEnvironment.of(built, chosen)


async def replay(
    environment: Environment, *, settings: Settings | None = None, reporter: Reporter | None = None
) -> Environment:
    """Build a committed Environment's Recipe again from its Base, without checkpoints of earlier Steps.

    Returns the Environment with `reproducible` and `verdict.repeatable` set. Raises UsageError if nothing was
    committed or its source tree is gone.
    """
    chosen = settings or load_settings()
    library = Library(chosen.cache_dir)
    opened = await open_environment(environment, settings=chosen)
    clock = Clock(reporter or Silent())
    with on_disk(chosen.cache_dir):
        async with (
            opened.backend() as backend,
            shared_downloads(Surroundings.of(chosen), backend, clock.notify) as surroundings,
        ):
            updated = await replayed(opened, backend, surroundings, clock, library.place(environment.id).logs)
        library.save(updated)
    return updated


async def replay_docker(
    environment: Environment,
    options: EngineOptions | None = None,
    *,
    settings: Settings | None = None,
    reporter: Reporter | None = None,
) -> Environment:
    """Have the user's container engine build the Environment's Dockerfile, and run the Check inside.

    Returns as `replay` does. Raises as `engine_replay.replay_by_engine` does.
    """
    chosen = settings or load_settings()
    opened = await open_environment(environment, settings=chosen)
    with on_disk(chosen.cache_dir):
        updated = await replay_by_engine(opened, options or EngineOptions(), Clock(reporter or Silent()))
        Library(chosen.cache_dir).save(updated)
    return updated


def run(function: Callable[[], Awaitable[T]]) -> T:
    """Run an async function to its end, on uvloop where it is installed: for callers without a loop of their own."""
    return anyio.run(function, backend_options={"use_uvloop": find_spec("uvloop") is not None})


class _Build:
    """One call of `build`, from its first event to its last."""

    def __init__(self, spec: str, settings: Settings, place: Place, reporter: Reporter, lock: Lock | None) -> None:
        self._spec = spec
        self._lock = lock
        self._settings = settings
        self._place = place
        self._generation = ""
        self._memory = Memory()
        self._reporter = Fan(reporter, self._memory)
        self._clock = Clock(self._reporter)

    async def run(self, output: Path | None) -> Environment:
        self._reporter.emit(
            BuildStarted(
                at=0.0,
                build=self._place.id,
                repo=self._spec,
                wall_time=datetime.now(UTC).isoformat(timespec="seconds"),
                version=__version__,
            )
        )
        try:
            with on_disk(self._settings.cache_dir):
                environment = await self._set_up()
        except SpecBuildError as error:
            self._end("error", error.message)
            raise
        except anyio.get_cancelled_exc_class():
            self._end("interrupted", "the build was cancelled")
            raise
        seconds = environment.seconds.model_copy(update={"total": round(self._clock.now(), 3)})
        environment = environment.model_copy(update={"seconds": seconds})
        self._end(environment.outcome, environment.message)
        library = Library(self._settings.cache_dir)
        library.save(environment)
        if environment.outcome == "committed":
            record(self._place, environment, load_repo(environment, self._place))
        folder = output or self._place.folder
        written = write_artifacts(environment, folder, journal=self._place.journal, logs=self._place.logs)
        library.save(written)
        if self._lock is not None:
            check_result(self._lock, written)
        return written

    def _end(self, outcome: str, message: str) -> None:
        self._reporter.emit(
            BuildEnded(at=self._clock.now(), outcome=outcome, seconds=self._clock.now(), message=message)
        )

    async def _set_up(self) -> Environment:
        clock, settings = self._clock, self._settings
        before = pressure.read(settings.cache_dir)
        self._generation = current(settings.cache_dir, max_age=settings.max_age, refresh=settings.refresh).salt
        opening = open_backend(settings)
        # Before anything is fetched or made: where nothing can fork, that is told at once.
        async with opening as backend:
            if opening.reason:
                clock.notify(opening.reason)
            found = await self._survey()
            save_repo(found.repo, self._place)
            holder = Holder(backend=backend.name, engine=opening.engine)
            return await self._raced(found, backend, holder, before)

    async def _raced(self, found: Survey, backend: Backend, holder: Holder, before: pressure.Reading) -> Environment:
        """What comes of the race over what was found; `before` is how busy the machine was when the build began."""
        clock, settings = self._clock, self._settings
        async with shared_downloads(Surroundings.of(settings), backend, clock.notify) as surroundings:
            if self._lock is not None:
                await provide_base(self._lock.base, settings, backend, clock.notify)
            workshop = BuildWorkshop(backend, found.repo.path, found.repo.tracked, surroundings)
            field = Field(clock.now, clock.reporter, workshop.expect, salt=self._salt)
            async with Learned(settings, clock.notify) as learned:
                mender = learned.mender(field, found, self._reporter, clock.now)
                first = field.enter(found.candidates)
                clock.phase("race", f"{len(first)} candidates, {settings.slots} at once")
                result = await race(
                    first,
                    backend,
                    workshop,
                    slots=settings.slots,
                    admitted=self._admitted(pressure.others(before, pressure.read(settings.cache_dir))),
                    later=[_later(field, found, pending) for pending in found.bases.pending],
                    mender=mender if settings.repair and self._lock is None else None,
                    ahead=settings.ahead,
                    beside=settings.beside,
                    durations=learned.durations(),
                    breadth=settings.breadth,
                    warm=settings.warm,
                    min_pass_ratio=settings.min_pass_ratio,
                    limits=surroundings.limits,
                    reporter=self._reporter,
                    time_limit=settings.time_limit,
                    logs=self._place.logs,
                    began=clock.began,
                )
                await mender.learn()
            environment = self._environment(found, field, result, mender)
            if environment.recipe is None:
                refuse_outage(environment.candidates, engine=holder.engine)
                return environment
            won = OpenEnvironment.of(environment.model_copy(update={"held_by": holder}), settings)
            return await conclude(won, backend, surroundings, clock, self._place.logs)

    async def _survey(self) -> Survey:
        clock, work = self._clock, self._place.source
        if self._lock is not None:
            return await survey_locked(self._lock, self._spec, work, clock.notify, clock.phase)
        return await survey(self._spec, work, self._settings, clock.notify, clock.phase)

    def _admitted(self, foreign: float) -> Callable[[], int]:
        """How many steps the machine bears, whose cores others kept busy as `foreign` says."""
        slots, store = self._settings.slots, self._settings.cache_dir
        admitted = pressure.admitted(slots, foreign, pressure.read(store))
        if admitted < slots:
            self._clock.notify(f"others keep {foreign:.1f} cores busy: {admitted} at once instead of {slots}")
        return lambda: pressure.admitted(slots, foreign, pressure.read(store))

    def _salt(self, candidate: str) -> str:
        """What keeps a candidate's checkpoints from being those of others."""
        match self._settings.reuse:
            case Reuse.BUILDS:
                return self._generation
            case Reuse.BUILD:
                return self._place.id
            case Reuse.NONE:
                return f"{self._place.id}.{candidate}"

    def _environment(self, found: Survey, field: Field, result: RaceResult, mender: Mender) -> Environment:
        runner = field.runners[result.winner.id] if result.winner else None
        winner = runner.candidate if runner else None
        return Environment(
            id=self._place.id,
            outcome="committed" if winner else "timeout" if result.timed_out else "failed",
            message=_message(result, found, len(field.runners)),
            specbuild_version=__version__,
            created=datetime.now(UTC).isoformat(timespec="seconds"),
            repo=repo_info(found.repo),
            base=winner.recipe.base if winner else None,
            strategy=winner.strategy if winner else None,
            reason=winner.reason if winner else "",
            recipe=winner.recipe if winner else None,
            repairs=runner.repairs if runner else (),
            verdict=result.verdict,
            seconds=Seconds(total=round(result.seconds, 3), to_commit=round(result.seconds, 3) if winner else None),
            candidates=candidate_reports(result, field, mender.advice),
            waste=waste(result),
            predictions=predictions(self._memory.events),
            facts=found.facts,
            timeline=timeline(result.executions),
        )


def _later(field: Field, found: Survey, pending: Pending) -> Later:
    """The candidates on a base that has to be made first."""

    async def bring() -> list[Entry]:
        return field.enter(found.propose_on((await pending.make(),)))

    return bring


def _message(result: RaceResult, found: Survey, count: int) -> str:
    if result.winner is not None and result.verdict is not None:
        return result.verdict.reason
    if count == 0:
        languages = ", ".join(fact.value for fact in found.facts.languages) or "none"
        return f"no strategy knows how to set up such a repository (languages seen: {languages})"
    if result.timed_out:
        return f"the time limit ended the race after {result.seconds:.0f} s; none of {count} candidates had verified"
    return f"none of {count} candidates verified"
