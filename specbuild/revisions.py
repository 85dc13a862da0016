"""Environments of other revisions of a repository: how they are found again, and which are nearest.

Beside each committed Environment lies a small record of what it was made for, so that a build need not read them all.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import datetime
from typing import Final, Literal

from packaging.utils import canonicalize_name
from pydantic import AwareDatetime, ValidationError

from specbuild.environment import Environment
from specbuild.errors import UsageError
from specbuild.events import RepairMade
from specbuild.library import Library, Place
from specbuild.model import Frozen, digest_of
from specbuild.recipe import Recipe, salted
from specbuild.repo.facts import Facts
from specbuild.repo.source import Repo, parse_address
from specbuild.storage import write_whole
from specbuild.strategies.contract import Earlier, Needed
from specbuild.urls import without_credentials

FILE: Final = "revision.json"

MOST_PER_BASE = 2
"""Environments that a build may go on from on one base: the nearest, and one in case that it leads nowhere."""


class Revision(Frozen):
    """What an Environment was made for."""

    schema_version: Literal[1] = 1
    project: str
    """Names the repository, whatever the revision; see `project_of`."""
    manifests: str
    """Digest of what was declared; see `manifests_of`."""
    base: str
    """Digest of the base."""
    key: str
    """See `environment_key`."""
    date: AwareDatetime | None
    """Of the revision."""
    made: AwareDatetime


def environment_key(manifests: str, base: str, date: datetime | None) -> str:
    """Names what an environment is made from: equal for revisions that declare the same, on one base and day."""
    return digest_of([manifests, base, date.date().isoformat() if date else None])


def manifests_of(repo: Repo, facts: Facts) -> str:
    """The digest of what the manifests of a source tree declare; the number of its version is not part of it.

    Lock files count by their contents.
    """
    return digest_of(
        {
            "requires": sorted({(one.group, one.requirement) for one in facts.dependencies}),
            "build": [
                facts.build_backend.value if facts.build_backend else "",
                *(one.value for one in facts.build_requires),
            ],
            "python": facts.requires_python.value if facts.requires_python else "",
            "locks": sorted((one.kind, repo.tracked.get(one.evidence.file, "")) for one in facts.locks),
            "compiled": sorted({one.language for one in facts.extensions}),
        }
    )


def project_of(origin: str, facts: Facts) -> str:
    """Names a repository whatever its revision: by the name of the distribution, or by where it is fetched from."""
    if facts.name is not None:
        return canonicalize_name(facts.name.value)
    try:
        address = parse_address(origin)
    except UsageError:
        return origin
    return without_credentials(address.location).rstrip("/").removesuffix(".git")


def record(place: Place, environment: Environment, repo: Repo) -> None:
    """Note what a committed Environment was made for, in its build's folder. Raises OSError."""
    if environment.recipe is None:
        return
    base, facts = environment.recipe.base.digest, environment.facts
    manifests = manifests_of(repo, facts)
    revision = Revision(
        project=project_of(environment.repo.origin, facts),
        manifests=manifests,
        base=base,
        key=environment_key(manifests, base, repo.date),
        date=repo.date,
        made=datetime.fromisoformat(environment.created),
    )
    write_whole(place.folder / FILE, revision.model_dump_json(indent=2) + "\n")


def earlier(library: Library, repo: Repo, facts: Facts) -> tuple[Earlier, ...]:
    """The environments of the same repository that are kept here, nearest first, at most `MOST_PER_BASE` a base.

    Nearest are those whose manifests declare the same, then those nearest in time, then the newest. Blocking.
    """
    manifests, project = manifests_of(repo, facts), project_of(repo.origin, facts)
    known = [(place, revision) for place, revision in _records(library) if revision.project == project]
    known.sort(key=lambda one: _distance(one[1], manifests, repo.date))
    taken: dict[str, int] = {}
    found: list[Earlier] = []
    for place, revision in known:
        if taken.get(revision.base, 0) < MOST_PER_BASE and (kept := _committed(library, place)) is not None:
            taken[revision.base] = taken.get(revision.base, 0) + 1
            found.append(_earlier(*kept, alike=revision.manifests == manifests))
    return tuple(found)


def _distance(revision: Revision, manifests: str, date: datetime | None) -> tuple[bool, float, float]:
    apart = abs((revision.date - date).total_seconds()) if revision.date and date else float("inf")
    return revision.manifests != manifests, apart, -revision.made.timestamp()


def _records(library: Library) -> Iterator[tuple[Place, Revision]]:
    for place in library.places():
        try:
            yield place, Revision.model_validate_json((place.folder / FILE).read_bytes())
        except (OSError, ValidationError):
            continue  # it failed, goes on, is being removed, or is of another version


def _committed(library: Library, place: Place) -> tuple[Environment, Recipe] | None:
    try:
        environment = library.find(place.id)
    except UsageError:
        return None
    return (environment, salted(environment.recipe, "")) if environment.recipe else None


def _earlier(environment: Environment, recipe: Recipe, *, alike: bool) -> Earlier:
    revision = environment.repo.revision
    return Earlier(
        environment=environment.id,
        revision=revision[:12] if revision else environment.created[:10],
        recipe=recipe,
        strategy=environment.strategy or "",
        alike=alike,
        needed=tuple(_needed(environment.repairs)),
    )


def _needed(repairs: Iterable[RepairMade]) -> Iterator[Needed]:
    for one in repairs:
        if one.at is not None:
            yield Needed(failure=one.failure, at=one.at, packages=one.packages, repair=one.title)
