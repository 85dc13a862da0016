"""The execution of one piece of a race's work: what it is, who does it, how it went."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from specbuild.failures import Failure
from specbuild.outcome import Outcome
from specbuild.recipe import BaseRef, Check, Step
from specbuild.sandbox.contract import Checkpoint, Completed, End, LineSink, Sandbox
from specbuild.tree import Edge, Entry, Work
from specbuild.verify.verdict import Verdict

FORK_FROM = 0.45
"""Probability from which a foreseen failure is worth a fork: below it speculation cost more than it brought in
simulations on few cores, and brought nothing on many (docs/architecture.md)."""


class LineReader(Protocol):
    """Tells of failures as output comes; see `specbuild.predictors.reader`."""

    def feed(self, line: str) -> Iterable[Failure]: ...

    def finish(self) -> Iterable[Failure]: ...


@dataclass(frozen=True, slots=True)
class Foresight:
    """What is foreseen of one Recipe."""

    entries: Sequence[Entry] = ()
    """It with repairs, likeliest first."""
    odds: float | None = None
    """Its own probability of verification in the light of that; None if nothing is foreseen."""
    until: str | None = None
    """The edge whose success shows that nothing of it has come; None if none can."""


class Mends(Protocol):
    """What a race needs to repair Recipes."""

    def reader(self) -> LineReader:
        """A new reader for the output of one command."""
        ...

    async def mend(
        self, edge: Edge, broken: Sequence[Entry], failures: Sequence[Failure], *, foreseen: bool
    ) -> Sequence[Entry]:
        """Recipes in which the failures of `edge` are repaired, likeliest first; none that the race has already, unless
        it was given up.

        `broken` are the Recipes to repair. With `foreseen`, the edge is still running.
        """
        ...

    async def foresee(self, entry: Entry) -> Foresight:
        """What a Recipe will run into, told before anything of it has run."""
        ...

    async def spread(self, entry: Entry, work: Work, failures: Sequence[Failure]) -> Foresight:
        """What a live Recipe will run into, since such `work` has failed so in another branch."""
        ...

    def observe(self, done: Execution) -> None:
        """Take note of how an execution ended: it shows whether repairs work, and how long steps take."""
        ...

    def give_up(self, entry: Entry) -> None:
        """Take note that a Recipe was given up, since what it repairs did not fail: something else may need it yet."""
        ...


class Workshop(Protocol):
    """How work is done: the race's view of bases, steps and verification."""

    async def provide(self, base: BaseRef) -> Checkpoint:
        """The Checkpoint in which nothing has been run on `base` yet."""
        ...

    async def run_step(self, sandbox: Sandbox, step: Step, *, on_line: LineSink, log: Path | None) -> Completed:
        """Run a Step to its end."""
        ...

    async def verify(self, sandbox: Sandbox, check: Check, *, on_line: LineSink, log: Path | None) -> Verdict:
        """Run a Check and judge it by its report."""
        ...


@dataclass(frozen=True, slots=True)
class Execution:
    """One execution of an edge's work: a row of the timeline."""

    key: str
    work: Work
    start: float
    """Seconds since the race began."""
    end: float
    outcome: Outcome
    candidates: tuple[str, ...]
    cpu_seconds: float = 0.0
    """What its Commands have used, cancelled ones too; zero for bases, which are made once for all races."""
    written_bytes: int = 0
    completed: Completed | None = None
    verdict: Verdict | None = None
    failures: tuple[Failure, ...] = ()
    """What its output told, in order; of use when it failed."""
    ended_early: str = ""
    """Why it was ended as failed before its time; empty if it came to its own end."""
    error: str = ""
    """What our machinery said, when it was that which failed."""
    log: Path | None = None

    @property
    def is_telling(self) -> bool:
        """Whether it shows how such work fares: it ran, and neither a cancellation nor our machinery ended it."""
        return not (self.outcome.is_taken_over or self.outcome is Outcome.CANCELLED or self.error)


def title(work: Work) -> str:
    """A few words that name a piece of work for people."""
    match work:
        case BaseRef():
            return f"base {work.name}"
        case Step():
            return work.title or work.run.strip().splitlines()[0][:80]
        case Check():
            return f"verify by {work.runner}"


def kind(work: Work) -> str:
    """The kind of a piece of work: a step's own, `base`, or `test`."""
    match work:
        case BaseRef():
            return "base"
        case Step():
            return work.kind.value
        case Check():
            return "test"


def explain(done: Execution) -> str:
    """Why an execution failed, in one line."""
    if done.error:
        return f"our own machinery failed: {done.error}"
    if done.verdict is not None:
        return done.verdict.reason
    if done.ended_early:
        return f"{title(done.work)} was ended early: {done.ended_early}"
    completed = done.completed
    if completed is None:
        return f"{title(done.work)} failed"
    if completed.end is End.EXITED:
        return f"{title(done.work)} exited with status {completed.exit_code}"
    return f"{title(done.work)} ended: {completed.note or completed.end.value}"
