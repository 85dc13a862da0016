"""What a repairer is given and what it answers."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Literal

from pydantic import Field

from specbuild.failures import Failure
from specbuild.knowledge.query import Knowledge
from specbuild.model import Frozen
from specbuild.recipe import Check, Recipe, Step
from specbuild.repairs.edits import Edit
from specbuild.repo.facts import Facts

Source = Literal["rule", "index", "facts", "model"]
"""Where a Repair is known from: a rule of ours, a package index, the Repo's own facts, a language model."""


class Repair(Frozen):
    """Edits of a Recipe that may cure a Failure."""

    name: str
    """Names it in every build: `apt:libpq-dev`, `pip:pytest-mock`, `service:postgresql`. Outcomes are kept by it."""
    title: str
    """What it does in words, as an order to a reader: `install libpq-dev`."""
    why: str
    """Why it could help: `bookworm's libpq-dev has the program pg_config`."""
    edits: tuple[Edit, ...]
    probability: float = Field(gt=0, lt=1)
    """That the failure is gone with it, given that the diagnosis is right, before any outcome is known."""
    source: Source = "rule"


@dataclass(frozen=True, slots=True)
class Case:
    """Where a Failure was seen or is foreseen: everything that a Repair of it may depend on."""

    recipe: Recipe
    index: int
    """Of the failing Step in `recipe.steps`; their number when it is the Check."""
    facts: Facts
    knowledge: Knowledge
    install: str
    """The shell command that installs further Python distributions in keeping with the Recipe's dependency policy;
    requirements are to follow. It needs the Step of `strategies.steps.uv`."""
    subject: str = ""
    """The Python distribution whose build fails, where the output named it."""

    @property
    def work(self) -> Step | Check:
        """What fails."""
        return self.recipe.check if self.index == len(self.recipe.steps) else self.recipe.steps[self.index]

    @property
    def step(self) -> Step:
        """The Step that fails; of a Check its own."""
        work = self.work
        return work.step if isinstance(work, Check) else work

    @property
    def release(self) -> str:
        """Debian's release that the base is of; empty if it is not known."""
        return self.recipe.base.release or ""


Repairer = Callable[[Failure, Case], Iterable[Repair]]
"""Answers with the Repairs of a Failure, likeliest first; with none for what it does not know. Reads indexes, so it
is called in a worker thread. Never raises for odd payloads."""
