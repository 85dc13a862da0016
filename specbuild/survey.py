"""The first half of the journey, in which nothing of the Repo is run: Repo, Facts, bases, Candidates."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from tempfile import TemporaryDirectory

import anyio.to_thread

from specbuild.bases.choose import Chosen, choose_bases, providers
from specbuild.config import Reuse, Settings, load_settings
from specbuild.environment import RepoInfo
from specbuild.library import Library
from specbuild.model import Frozen
from specbuild.recipe import BaseRef
from specbuild.repo.facts import Facts
from specbuild.repo.fetch import fetch_repo
from specbuild.repo.inspect import inspect
from specbuild.repo.source import Repo
from specbuild.revisions import earlier
from specbuild.storage import on_disk
from specbuild.strategies import left_out, propose
from specbuild.strategies.contract import Candidate, Earlier, Request
from specbuild.verify import checks_for

Notify = Callable[[str], None]
"""Takes something that the user should know, in words."""


class Plan(Frozen):
    """What a build would try. Nothing of it has been run."""

    schema_version: int = 1
    repo: RepoInfo
    facts: Facts
    bases: tuple[BaseRef, ...]
    """Best first; the digests of those that are not made yet begin with `planned:`."""
    candidates: tuple[Candidate, ...]
    """Best first."""
    notices: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Survey:
    """What a race needs to know."""

    repo: Repo
    facts: Facts
    bases: Chosen
    candidates: tuple[Candidate, ...]
    """Those on bases that are ready."""
    propose_on: Callable[[tuple[BaseRef, ...]], tuple[Candidate, ...]]
    """The candidates on other bases."""
    earlier: tuple[Earlier, ...] = ()
    """Environments of other revisions, nearest first."""


async def plan(repo: str | Path, *, settings: Settings | None = None, **options: object) -> Plan:
    """What `build` would try, and why. Raises as `build` does."""
    chosen = settings or load_settings(**options)
    notices: list[str] = []
    with on_disk(chosen.cache_dir), TemporaryDirectory(dir=chosen.cache_dir, prefix="plan-") as work:
        found = await survey(str(repo), Path(work), chosen, notices.append, make=False)
        planned = found.bases.planned
        return Plan(
            repo=repo_info(found.repo),
            facts=found.facts,
            bases=planned,
            candidates=found.propose_on(planned),
            notices=tuple(notices),
        )


async def survey(
    spec: str,
    work: Path,
    settings: Settings,
    notify: Notify,
    phase: Callable[[str, str], None] | None = None,
    *,
    make: bool = True,
) -> Survey:
    """Fetch a Repo into `work`, read its Facts, choose bases and let strategies propose.

    With `make` unset no base is made.
    """
    phase = phase or (lambda name, detail: None)
    phase("repo", spec)
    repo = await fetch_repo(spec, work)
    phase("facts", "")
    facts = await anyio.to_thread.run_sync(read_facts, repo)
    for note in repo.notes:
        notify(note)
    for warning in facts.warnings:
        notify(f"{warning.evidence.file}: {warning.value}")
    phase("bases", ", ".join(settings.bases))
    checks = checks_for(
        facts,
        level=settings.level,
        test_command=settings.test_command,
        network=settings.test_network,
        timeout=settings.step_timeout,
    )

    before = await anyio.to_thread.run_sync(_earlier, settings, repo, facts)

    def propose_on(refs: tuple[BaseRef, ...], tell: Notify = notify) -> tuple[Candidate, ...]:
        request = Request(
            facts=facts, bases=refs, checks=checks, source_digest=repo.digest, now=datetime.now(UTC), earlier=before
        )
        for reason in left_out(request):
            tell(reason)
        return propose(request, only=settings.strategies, limit=settings.max_candidates)

    known = providers(settings, notify=notify)
    planned = await choose_bases(settings.bases, facts, providers=known, make=False)
    # A base takes a minute to make: not one that no strategy would use.
    made_for_nothing = all(base.python for base in planned.planned) and not propose_on(planned.planned, _tell_nobody)
    if make and made_for_nothing:
        return Survey(repo, facts, Chosen(planned.ready), (), propose_on, before)
    bases = await choose_bases(settings.bases, facts, providers=known, notify=notify, make=make)
    return Survey(repo, facts, bases, propose_on(bases.ready) if bases.ready else (), propose_on, before)


def _earlier(settings: Settings, repo: Repo, facts: Facts) -> tuple[Earlier, ...]:
    """What the build may go on from; nothing where it is to take no checkpoints of other builds."""
    if settings.reuse is not Reuse.BUILDS or settings.refresh:
        return ()
    return earlier(Library(settings.cache_dir), repo, facts)


def _tell_nobody(message: str) -> None:
    del message


def read_facts(repo: Repo) -> Facts:
    """The Facts of a fetched Repo."""
    return inspect(repo.path, revision_date=repo.date, has_git=(repo.path / ".git").exists())


def repo_info(repo: Repo) -> RepoInfo:
    """What leaves the process about a Repo."""
    return RepoInfo(
        origin=repo.origin,
        kind=repo.kind,
        revision=repo.revision,
        digest=repo.digest,
        date=repo.date.isoformat() if repo.date else None,
        fetch=repo.fetch,
    )
