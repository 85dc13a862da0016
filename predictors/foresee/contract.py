"""What foresight is given and what it answers."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass
from datetime import datetime

from pydantic import Field

from specbuild.failures import Failure
from specbuild.knowledge.query import Knowledge
from specbuild.model import Frozen
from specbuild.recipe import StepKind
from specbuild.repo.facts import Evidence, Facts
from specbuild.strategies.contract import Candidate


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


@dataclass(frozen=True, slots=True)
class Outlook:
    """What there is to foresee from."""

    candidate: Candidate
    facts: Facts
    knowledge: Knowledge
    now: datetime


Foreseer = Callable[[Outlook], Awaitable[Iterable[Foreseen]]]
"""Tells what a Candidate will run into. Reads indexes at most: runs nothing of the Repo. An index that cannot be had
tells nothing; that is no error."""
