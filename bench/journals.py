"""What journals tell of the builds of one repository: what was proposed, what ran, what was told and made of it.

Candidates become Recipes of the same shape whose commands are the digests of the real ones: what keeps the checkpoints
of builds and modes apart is left out, so that the same work at the same place is one node in all journals.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from specbuild.errors import UsageError
from specbuild.events import (
    CandidateEnded,
    CandidateProposed,
    Event,
    FailureSeen,
    Notice,
    Phase,
    Planned,
    RepairMade,
    StepEnded,
    StepStarted,
    Verified,
)
from specbuild.failures import Failure
from specbuild.outcome import Outcome
from specbuild.recipe import BaseRef, Check, Level, Recipe, Step, StepKind
from specbuild.sides import sides
from specbuild.story import read_journal
from specbuild.strategies.contract import Candidate
from specbuild.strategies.steps import packages
from specbuild.tree import check_key
from specbuild.verify.verdict import Verdict

SECONDS_IF_UNKNOWN = 60.0
"""Expected seconds of a candidate whose journal does not tell."""

_EARLY = "tests had failed"
"""In the note of a check that was ended before its time."""

_LEAST_SECONDS = 0.001

_AT_ONCE = re.compile(r"(\d+) at once", re.ASCII)


@dataclass(frozen=True, slots=True)
class Sample:
    """One execution of a piece of work."""

    node: str
    kind: str
    digest: str
    start: float
    end: float
    cpu_seconds: float
    ok: bool | None
    """None: it was cancelled, or our machinery failed."""
    early: bool = False
    """Whether it was ended as failed before its time."""
    grafted: bool = False
    """Whether it was not run, since the same work on an earlier state was grafted."""
    told: tuple[tuple[float, Failure], ...] = ()
    """What its output told of, each after so many seconds."""
    verdict: Verdict | None = None
    busy: float = 0.0
    """How many cores it and what ran beside it kept busy meanwhile, on average."""

    @property
    def seconds(self) -> float:
        return self.end - self.start


@dataclass(frozen=True, slots=True)
class Proposal:
    """A candidate as it came into a race."""

    candidate: Candidate
    at: float
    """Seconds after the race began; not above 0 if it was there from the start."""
    repairs: tuple[RepairMade, ...] = ()
    """What is new in it."""
    of: Recipe | None = None
    """What it repairs."""
    delay: float = 0.0
    """Seconds since what it repairs was told of."""


@dataclass(frozen=True, slots=True)
class Foretold:
    """What was foreseen of a candidate before anything of it ran."""

    recipe: str
    """Digest."""
    failure: Failure
    probability: float
    place: int
    """Of the work that is to fail so, see `specbuild.sites`."""
    delay: float
    """Seconds since it was proposed."""


@dataclass(frozen=True, slots=True)
class Recording:
    """One build."""

    mode: str
    before: float
    """Seconds from its start until the race began."""
    slots: int
    """As many as the machine bore."""
    seconds: float | None
    """From its start to the commit; None if there was none."""
    proposals: tuple[Proposal, ...]
    samples: tuple[Sample, ...]
    foretold: tuple[Foretold, ...]
    winner: Recipe | None


def read_project(folder: Path) -> list[Recording]:
    """The recordings of `folder`, whose journals are named `mode-repeat.jsonl`. Raises UsageError."""
    paths = sorted(folder.glob("*-*.jsonl"))
    return [recording(path.stem.rpartition("-")[0], read_journal(path)) for path in paths]


def recording(mode: str, events: Iterable[Event]) -> Recording:
    """What the journal of one build tells. Raises UsageError if it does not tell of nodes."""
    return _Reading().read(mode, events)


def plain_recipe(event: CandidateProposed) -> Recipe:
    """The Recipe of a candidate, with digests for commands; what could run before its turn still can."""
    base, *steps, check = event.path
    made = [_plain_step(one, title) for one, title in zip(steps, event.steps, strict=True)]
    last = Step(kind=StepKind.TEST, run=check.digest)
    return Recipe(
        base=BaseRef(name=event.base, digest=base.digest),
        steps=tuple(made),
        check=Check(level=Level.TESTS, runner="recorded", step=last),
    )


def _plain_step(one: Planned, title: str) -> Step:
    if one.side:
        return packages([one.digest]).model_copy(update={"run": one.digest, "title": title, "env": ()})
    return Step(kind=StepKind(one.kind), run=one.digest, title=title)


@dataclass(slots=True)
class _Begun:
    event: StepStarted
    told: list[tuple[float, Failure]] = field(default_factory=list[tuple[float, Failure]])


@dataclass(slots=True)
class _Reading:
    before: float = 0.0
    slots: int = 1
    recipes: dict[str, Recipe] = field(default_factory=dict[str, Recipe])
    """Candidate → its Recipe."""
    proposed: dict[str, CandidateProposed] = field(default_factory=dict[str, CandidateProposed])
    works: dict[str, tuple[str, str]] = field(default_factory=dict[str, tuple[str, str]])
    """Node as the journal names it → its name without salt, and the digest of the work."""
    running: dict[str, _Begun] = field(default_factory=dict[str, _Begun])
    samples: list[Sample] = field(default_factory=list[Sample])
    proposals: list[tuple[CandidateProposed, float]] = field(default_factory=list[tuple[CandidateProposed, float]])
    """With the time at which what they repair was told of."""
    foretold: list[Foretold] = field(default_factory=list[Foretold])
    seen: dict[str, float] = field(default_factory=dict[str, float])
    """Failure → when it was last told of."""
    failed: float = 0.0
    """When a step last failed."""
    winner: str = ""
    committed: float = 0.0

    def read(self, mode: str, events: Iterable[Event]) -> Recording:
        for event in events:
            self._take(event)
        return Recording(
            mode=mode,
            before=self.before,
            slots=self.slots,
            seconds=self.committed if self.winner else None,
            proposals=tuple(self._proposal(event, told) for event, told in self.proposals),
            samples=tuple(_busy(self.samples)),
            foretold=tuple(self.foretold),
            winner=self.recipes[self.winner] if self.winner else None,
        )

    def _take(self, event: Event) -> None:
        match event:
            case Phase(name="race"):
                self.before = event.at
                self._allow(event.detail)
            case Notice():
                self._allow(event.message)
            case CandidateProposed():
                self._propose(event)
            case StepStarted():
                self.running[event.node] = _Begun(event)
            case FailureSeen():
                self._see(event)
            case StepEnded():
                self._end(event)
            case Verified() if self.samples:
                self.samples[-1] = replace(self.samples[-1], verdict=event.verdict, ok=event.verdict.ok)
            case CandidateEnded(end="committed"):
                self.winner, self.committed = event.candidate, event.at
            case _:
                pass

    def _allow(self, text: str) -> None:
        """What the race begins with, or what is left of that where others keep the machine busy."""
        if found := _AT_ONCE.search(text):
            self.slots = int(found[1])

    def _propose(self, event: CandidateProposed) -> None:
        if not event.path:
            raise UsageError(
                "the journal does not tell which work its candidates share",
                hint="record it with this version: python -m bench race --traces FOLDER",
            )
        recipe = self.recipes[event.candidate] = plain_recipe(event)
        self.proposed[event.candidate] = event
        beside = sides(recipe)
        for key, one in zip((*recipe.checkpoints, check_key(recipe)), event.path, strict=True):
            self.works[one.node] = key, one.digest
            if one.side and key in beside:
                self.works[one.side] = beside[key].key, one.digest
        told = max([self.failed, *(self.seen.get(repair.failure.key, 0.0) for repair in event.repairs)])
        self.proposals.append((event, told))

    def _see(self, event: FailureSeen) -> None:
        self.seen[event.failure.key] = event.at
        if event.node in self.running:
            self.running[event.node].told.append((event.at, event.failure))
        elif not event.node:
            self.foretold += self._foretold(event)

    def _foretold(self, event: FailureSeen) -> Iterator[Foretold]:
        for name in event.candidates:
            proposed, recipe = self.proposed[name], self.recipes[name]
            places = (
                n for n, step in enumerate(recipe.steps) if (step.kind, step.title) == (event.step_kind, event.title)
            )
            place = next(places, len(recipe.steps))
            delay = event.at - max(proposed.at, self.before)
            yield Foretold(recipe.digest, event.failure, event.probability, place, max(delay, 0.0))

    def _end(self, event: StepEnded) -> None:
        begun = self.running.pop(event.node, None)
        if begun is None or event.note == Outcome.REUSED or event.node not in self.works:
            return
        node, digest = self.works[event.node]
        start, early = begun.event.at, _EARLY in event.note
        if not event.ok and not event.cancelled:
            self.failed = event.at
        # Where neither a command nor a verdict tells of an end, our machinery failed.
        known = event.ok or early or event.exit_code is not None or bool(event.end)
        self.samples.append(
            Sample(
                node=node,
                kind=begun.event.step_kind,
                digest=digest,
                start=start,
                end=max(event.at, start),
                cpu_seconds=event.cpu_seconds,
                ok=event.ok if known and not event.cancelled else None,
                early=early,
                grafted=event.note == Outcome.GRAFTED,
                told=tuple((at - start, failure) for at, failure in begun.told),
            )
        )

    def _proposal(self, event: CandidateProposed, told: float) -> Proposal:
        candidate = Candidate(
            recipe=self.recipes[event.candidate],
            strategy=event.strategy,
            prior=event.prior,
            expected_seconds=event.expected_seconds or SECONDS_IF_UNKNOWN,
            reason=event.reason,
        )
        return Proposal(
            candidate=candidate,
            at=event.at - self.before,
            repairs=event.repairs,
            of=self.recipes[event.of] if event.of else None,
            delay=max(event.at - max(told, self.before), 0.0),
        )


def _busy(samples: Sequence[Sample]) -> Iterator[Sample]:
    """The samples, each with how busy the machine was, as if each spread its CPU seconds evenly."""
    for one in samples:
        used = 0.0
        for other in samples:
            shared = min(one.end, other.end) - max(one.start, other.start)
            used += other.cpu_seconds * max(shared, 0.0) / max(other.seconds, _LEAST_SECONDS)
        yield replace(one, busy=used / max(one.seconds, _LEAST_SECONDS))
