"""A build by a lock: the one Recipe that it holds, on the very tree and base that it names, and nothing else."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import anyio.to_thread

from specbuild._version import __version__
from specbuild.bases.choose import Chosen, provider_of
from specbuild.config import Settings
from specbuild.environment import Environment, PackageDifferences
from specbuild.errors import BaseUnavailableError, LockError
from specbuild.lockfile import Lock, compare_packages, facts_digest
from specbuild.recipe import BaseRef
from specbuild.repo.facts import Facts
from specbuild.repo.fetch import fetch_repo
from specbuild.repo.source import Repo
from specbuild.sandbox.contract import Backend
from specbuild.strategies.contract import Candidate
from specbuild.survey import Notify, Survey, read_facts
from specbuild.tail import last_lines
from specbuild.verify import same
from specbuild.verify.verdict import Verdict

_SURE = 0.99
"""The odds of a Recipe that has verified before."""

_SHOWN = 10


async def survey_locked(lock: Lock, spec: str, work: Path, notify: Notify, phase: Callable[[str, str], None]) -> Survey:
    """What a race needs to know when there is nothing to race: fetch the Repo, compare it, take the Recipe.

    Raises LockError where the tree, what is read of it, or the lock itself is not what was locked.
    """
    recipe = lock.to_recipe()
    phase("repo", spec)
    repo = await fetch_repo(spec, work)
    for note in repo.notes:
        notify(note)
    phase("facts", "")
    facts = await anyio.to_thread.run_sync(read_facts, repo)
    _compare(lock, repo, facts, notify)
    reason = f"locked by SpecBuild {lock.specbuild_version}"
    candidate = Candidate(recipe=recipe, strategy=lock.strategy or "locked", prior=_SURE, reason=reason)
    return Survey(repo, facts, Chosen((recipe.base,)), (candidate,), lambda bases: ())


def _compare(lock: Lock, repo: Repo, facts: Facts, notify: Notify) -> None:
    if repo.digest != lock.repo.digest:
        at = f" at {lock.repo.revision}" if lock.repo.revision else ""
        raise LockError(
            f"the source tree has changed: the lock is for {lock.repo.digest[:12]}{at}, and {repo.origin} is"
            f" {repo.digest[:12]}{f' at {repo.revision}' if repo.revision else ''}",
            hint="build without --locked, which writes a new lock, or name the revision that was locked",
        )
    if facts_digest(facts) == lock.facts:
        return
    if lock.specbuild_version == __version__:
        raise LockError(
            "the facts have changed: other things are read of the same source tree than when it was locked",
            hint="build without --locked, which writes a new lock",
        )
    notify(
        f"SpecBuild {__version__} reads the source tree otherwise than {lock.specbuild_version}, which wrote the lock"
    )


async def provide_base(base: BaseRef, settings: Settings, backend: Backend, notify: Notify) -> None:
    """See that the base with that very content is in the store. Raises LockError if it cannot be had any more."""
    provider = provider_of(base.name, settings, notify=notify)
    try:
        await provider.provide(base, backend)
    except BaseUnavailableError as missing:
        now = await provider.resolve(base.name)
        if now.digest != base.digest:
            raise LockError(
                f"the base has changed: the lock is for {base.name} with the content {base.digest[:19]}…, and what can"
                f" be had of it now is {now.digest[:19]}…",
                hint="build without --locked, which writes a new lock",
            ) from missing
        await provider.provide(now, backend)


def check_result(lock: Lock, environment: Environment) -> None:
    """Raises LockError if what came of the Recipe is not what was locked: it failed, other counts, other packages."""
    if environment.outcome == "failed":
        raise LockError(
            f"the locked recipe does not lead to its environment any more: {_why(environment)}",
            hint=f"see {environment.artifacts.logs}; build without --locked to find what works today",
        )
    if environment.verdict is None:
        return
    if not same(_locked_verdict(lock), environment.verdict):
        raise LockError(
            f"the tests ended differently: {environment.verdict.passed} passed, {lock.check.passed} when it was locked",
            hint=f"see {environment.artifacts.logs}; the packages are those of the lock",
        )
    differences = compare_packages(lock.packages, environment.lock)
    if differences:
        raise LockError(
            f"packages came in other versions than those of the lock:\n{_report(differences)}",
            hint="the environment works and is kept; build without --locked to lock it as it is now",
        )


def _why(environment: Environment) -> str:
    """How far its one candidate came, with the last lines of what failed."""
    if not environment.candidates:
        return environment.message
    candidate = environment.candidates[0]
    end = "\n".join(f"  {line}" for line in last_lines(candidate.tail, _SHOWN))
    return f"{candidate.why}\n{end}" if end else candidate.why


def _locked_verdict(lock: Lock) -> Verdict:
    check = lock.check
    return Verdict(level=check.check.level, ok=True, reason="", passed=check.passed, failed=check.failed)


def _report(differences: PackageDifferences) -> str:
    lines = differences.lines()
    more = [f"and {len(lines) - _SHOWN} more"] if len(lines) > _SHOWN else []
    return "\n".join(f"  {line}" for line in [*lines[:_SHOWN], *more])
