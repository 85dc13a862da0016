"""What foresight is given and what it answers."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

from pydantic import Field

from specbuild.failures import Failure
from specbuild.knowledge.query import Knowledge
from specbuild.knowledge.releases import Release
from specbuild.model import Frozen
from specbuild.recipe import StepKind
from specbuild.repo.facts import Evidence, Facts
from specbuild.repo.index_page import IndexFile
from specbuild.strategies.contract import Candidate, Earlier


class Foreseen(Frozen):
    """A Failure that is to be expected."""

    failure: Failure
    probability: float = Field(gt=0, lt=1)
    """That it shows, if nothing is done about it."""
    at: StepKind
    """In the first Step of this kind that the Recipe has (`test`: in the Check)."""
    why: str
    """What tells, in words."""
    evidence: tuple[Evidence, ...] = ()
    subject: str = ""
    """The Python distribution whose build is to fail, by its normalised name; empty for what is no build."""


class Releases(Protocol):
    """What the user's package index says of Python distributions. Never raises: what cannot be had is nothing."""

    async def releases(self, project: str) -> Sequence[Release]:
        """Every release, newest first; none for a project that is unknown, or when the index cannot be had."""
        ...

    async def metadata(self, file: IndexFile) -> str | None:
        """The core metadata of a file, where the index has them by themselves."""
        ...


class NoIndex:
    """Releases of nothing, for where no index is to be asked."""

    async def releases(self, project: str) -> Sequence[Release]:
        """None."""
        del project
        return ()

    async def metadata(self, file: IndexFile) -> str | None:
        """None."""
        del file
        return None


NO_INDEX = NoIndex()


@dataclass(frozen=True, slots=True)
class Outlook:
    """What there is to foresee from."""

    candidate: Candidate
    facts: Facts
    knowledge: Knowledge
    now: datetime
    index: Releases = NO_INDEX
    """`specbuild.knowledge.wheels.PackageIndex`, for what distributions will be installed."""
    earlier: tuple[Earlier, ...] = ()
    """Environments of other revisions of the Repo."""

    @property
    def release(self) -> str:
        """Debian's release that the base is of; empty if it is not known."""
        return self.candidate.recipe.base.release or ""


Foreseer = Callable[[Outlook], Awaitable[Iterable[Foreseen]]]
"""Tells what a Candidate will run into. Reads indexes at most: runs nothing of the Repo. An index that cannot be had
tells nothing; that is no error."""
