"""The story of a build, made from its journal: every failure, what it was taken for, and what each repair did.

It is also where predictions are held against what happened: a prediction is a failure that was told before its step had
ended, by output or by what was known beforehand.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from pydantic import TypeAdapter, ValidationError

from specbuild.environment import Predictions
from specbuild.errors import UsageError
from specbuild.events import (
    BuildEnded,
    BuildStarted,
    CandidateEnded,
    CandidateProposed,
    Event,
    FailureSeen,
    RepairJudged,
    RepairMade,
    StepEnded,
    StepOutput,
    StepStarted,
)
from specbuild.failures import Failure, Weight
from specbuild.model import Frozen

_EVENT: TypeAdapter[Any] = TypeAdapter(Event)


Source = Literal["before", "output", "end"]
"""Whether a failure was told before anything ran, by output while its step ran, or at the step's end."""


class Tried(Frozen):
    """A repair, and what it did."""

    candidate: str
    """The first that has it."""
    repair: RepairMade
    outcome: Literal["worked", "failed", "unknown"]
    what: str = ""
    """What showed it; or how the candidate ended before it could show."""


class Told(Frozen):
    """A failure in the story."""

    failure: Failure
    words: str
    """What it was taken for."""
    step: str
    """The title of the step."""
    step_kind: str
    candidates: tuple[str, ...]
    at: float
    """Seconds since the build began, when it was first told of."""
    source: Source
    probability: float
    why: str = ""
    came: bool | None
    """Whether the step failed so; None if that was never seen, as with a step that was cancelled."""
    lead: float | None = None
    """Seconds from the telling to the end of the step, if it came."""
    repairs: tuple[Tried, ...] = ()


class Story(Frozen):
    """What happened in a build, as far as failures go."""

    schema_version: int = 1
    build: str
    repo: str
    outcome: str
    message: str
    winner: str | None
    """The candidate that was committed."""
    seconds: float
    failures: tuple[Told, ...]
    """In order of time."""


_NATIVE = frozenset(
    ("missing-header", "missing-library", "missing-pkg-config", "missing-config-tool", "missing-cmake-package")
) | {"missing-development-files", "missing-macro", "missing-toolchain", "compiler-failed", "missing-command"}
"""Kinds by which a build tells that the same thing is missing: which one depends on what it looks for first."""

_SERVICES = frozenset(("service-needed", "service-unprepared"))


def kin(failure: Failure) -> str:
    """What failures share that are foreseen in one form and observed in another; else the failure's own key."""
    if failure.kind in _NATIVE:
        return "something native is missing"
    return "a service is missing" if failure.kind in _SERVICES else failure.key


def read_journal(path: Path) -> Iterator[Event]:
    """The events of a journal, one after another; a last line that is not whole (yet) is left out.

    Raises UsageError.
    """
    try:
        with path.open(encoding="utf-8", errors="replace", newline="\n") as file:
            for line in file:
                if line.endswith("\n"):
                    yield _EVENT.validate_json(line)
    except OSError as error:
        raise UsageError(
            f"the journal {path} cannot be read: {error.strerror}", hint="builds that were removed have none"
        ) from error
    except ValidationError as error:
        raise UsageError(
            f"{path} is no journal of this version of SpecBuild: {error.errors(include_url=False)[0]['msg']}",
            hint="build the repository again",
        ) from error


def predictions(events: Iterable[Event]) -> Predictions:
    """How good the predictions of a build were."""
    told = [one for one in tell(events).failures if one.failure.weight is not Weight.WARNING]
    ahead = [one for one in told if one.source != "end"]
    return Predictions(
        told=len(ahead),
        hit=sum(one.came is True for one in ahead),
        missed=sum(one.came is False for one in ahead),
        open=sum(one.came is None for one in ahead),
        unforeseen=sum(one.came is True for one in told if one.source == "end"),
        lead_seconds=round(sum(one.lead or 0.0 for one in ahead if one.came), 3),
    )


class Memory:
    """A reporter that keeps what `tell` needs: every event but lines of output."""

    def __init__(self) -> None:
        self.events: list[Event] = []

    def emit(self, event: Event) -> None:
        """Keep the event."""
        if not isinstance(event, StepOutput):
            self.events.append(event)


def tell(events: Iterable[Event]) -> Story:
    """The story of a build."""
    return _Teller().tell(events)


@dataclass(slots=True)
class _Teller:
    started: BuildStarted | None = None
    ended: BuildEnded | None = None
    winner: str | None = None
    seen: list[FailureSeen] = field(default_factory=list[FailureSeen])
    repairs: dict[str, dict[str, tuple[str, RepairMade]]] = field(
        default_factory=dict[str, dict[str, tuple[str, RepairMade]]]
    )
    """Failure → the name of a repair → the first candidate that has it."""
    judged: dict[tuple[str, str], RepairJudged] = field(default_factory=dict[tuple[str, str], RepairJudged])
    ends: dict[str, CandidateEnded] = field(default_factory=dict[str, CandidateEnded])
    steps: dict[str, StepStarted] = field(default_factory=dict[str, StepStarted])
    done: dict[str, StepEnded] = field(default_factory=dict[str, StepEnded])
    failed: dict[tuple[str, str], StepEnded] = field(default_factory=dict[tuple[str, str], StepEnded])
    """What a failure is kin to, and the kind of step → the end of the first step that failed so."""
    passed: dict[str, set[str]] = field(default_factory=dict[str, set[str]])
    """Kind of step → the candidates that came through one."""

    def tell(self, events: Iterable[Event]) -> Story:
        last = 0.0
        for event in events:
            last = event.at
            self._take(event)
        self._compare()
        told = [self._told(event) for event in self._once()]
        return Story(
            build=self.started.build if self.started else "",
            repo=self.started.repo if self.started else "",
            outcome=self.ended.outcome if self.ended else "interrupted",
            message=self.ended.message if self.ended else "",
            winner=self.winner,
            seconds=self.ended.seconds if self.ended else last,
            failures=tuple(told),
        )

    def _take(self, event: Event) -> None:
        match event:
            case BuildStarted():
                self.started = event
            case BuildEnded():
                self.ended = event
            case CandidateProposed():
                for repair in event.repairs:
                    self.repairs.setdefault(repair.failure.key, {}).setdefault(repair.name, (event.candidate, repair))
            case RepairJudged():
                self.judged[event.failure.key, event.name] = event
            case CandidateEnded():
                self.ends[event.candidate] = event
                if event.end == "committed":
                    self.winner = event.candidate
            case StepStarted():
                self.steps[event.node] = event
            case StepEnded():
                self.done[event.node] = event
            case FailureSeen():
                self.seen.append(event)
            case _:
                pass

    def _compare(self) -> None:
        """Note what came of every step, by what predictions are held against."""
        for event in self.seen:
            if event.node and self._failed(event.node):
                self.failed.setdefault((kin(event.failure), event.step_kind), self.done[event.node])
        for node, step in self.steps.items():
            end = self.done.get(node)
            if end is not None and end.ok:
                self.passed.setdefault(step.step_kind, set()).update(step.candidates)

    def _once(self) -> Iterator[FailureSeen]:
        """Each failure of a step once, when it was first told of; warnings only where the step failed."""
        known: set[tuple[str, str]] = set()
        for event in self.seen:
            key = (event.node, event.failure.key)
            minor = event.failure.weight is Weight.WARNING and event.node and not self._failed(event.node)
            if key not in known and not minor:
                known.add(key)
                yield event

    def _failed(self, node: str) -> bool:
        end = self.done.get(node)
        return end is not None and not end.ok and not end.cancelled

    def _told(self, event: FailureSeen) -> Told:
        came, end = self._came(event)
        source: Source = "before" if not event.node else "output" if event.probability < 1 else "end"
        return Told(
            failure=event.failure,
            words=event.words,
            step=event.title,
            step_kind=event.step_kind,
            candidates=event.candidates,
            at=event.at,
            source=source,
            probability=event.probability,
            why=event.why,
            came=came,
            lead=round(end.at - event.at, 3) if came and end else None,
            repairs=tuple(self._tried(event.failure)),
        )

    def _came(self, event: FailureSeen) -> tuple[bool | None, StepEnded | None]:
        """Whether the failure came, and the end of the step in which it did or did not."""
        if event.node:
            end = self.done.get(event.node)
            return (None, end) if end is None or end.cancelled else (not end.ok, end)
        if end := self.failed.get((kin(event.failure), event.step_kind)):
            return True, end
        return self._passed(event), None

    def _passed(self, event: FailureSeen) -> bool | None:
        """False if one of the candidates for which it was foreseen came through such a step; else nobody knows."""
        return None if self.passed.get(event.step_kind, set()).isdisjoint(event.candidates) else False

    def _tried(self, failure: Failure) -> Iterator[Tried]:
        for candidate, repair in self.repairs.get(failure.key, {}).values():
            judged = self.judged.get((failure.key, repair.name))
            if judged is not None:
                yield Tried(
                    candidate=judged.candidate,
                    repair=repair,
                    outcome="worked" if judged.worked else "failed",
                    what=judged.why,
                )
            else:
                end = self.ends.get(candidate)
                what = f"{candidate} was {end.end}: {end.why}" if end else "the build ended before"
                yield Tried(candidate=candidate, repair=repair, outcome="unknown", what=what)
