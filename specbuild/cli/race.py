"""Where every candidate stands, followed from the events of a build. No terminal in here."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum

from specbuild.events import (
    BuildEnded,
    BuildStarted,
    CandidateEnded,
    CandidateProposed,
    Event,
    Phase,
    StepEnded,
    StepStarted,
)


class State(StrEnum):
    """What a candidate is doing."""

    WAITING = "waiting"
    RUNNING = "running"
    COMMITTED = "committed"
    FAILED = "failed"
    CANCELLED = "cancelled"


@dataclass(slots=True)
class Branch:
    """One candidate."""

    id: str
    strategy: str
    base: str
    total: int
    """Steps of its recipe; the check is one more."""
    state: State = State.WAITING
    done: int = 0
    step: str = ""
    """Title of the running step."""
    since: float = 0.0
    """Seconds since the build began, when that step or the present state began."""
    why: str = ""


@dataclass(slots=True)
class Race:
    """A build as it stands after the events that were seen."""

    repo: str = ""
    build: str = ""
    phase: str = ""
    branches: dict[str, Branch] = field(default_factory=dict[str, Branch])
    outcome: str | None = None
    message: str = ""
    seconds: float = 0.0
    _running: dict[str, tuple[str, ...]] = field(default_factory=dict[str, tuple[str, ...]])

    def see(self, event: Event) -> None:
        """Take the next event into account."""
        match event:
            case BuildStarted():
                self.repo, self.build = event.repo, event.build
            case Phase():
                self.phase = event.name
            case CandidateProposed():
                self.branches[event.candidate] = Branch(
                    event.candidate, event.strategy, event.base, len(event.steps), since=event.at
                )
            case StepStarted():
                self._step_started(event)
            case StepEnded():
                self._step_ended(event)
            case CandidateEnded():
                self._candidate_ended(event)
            case BuildEnded():
                self.outcome, self.message, self.seconds = event.outcome, event.message, event.seconds
            case _:
                pass

    def who(self, node: str) -> tuple[str, ...]:
        """The candidates for which the step that leads to `node` was started."""
        return self._running.get(node, ())

    @property
    def winner(self) -> Branch | None:
        """The committed candidate, if there is one yet."""
        return next((b for b in self.branches.values() if b.state is State.COMMITTED), None)

    def _step_started(self, event: StepStarted) -> None:
        self._running[event.node] = event.candidates
        for branch in self._live(event.candidates):
            branch.state, branch.step, branch.since = State.RUNNING, event.title, event.at

    def _step_ended(self, event: StepEnded) -> None:
        for branch in self._live(self.who(event.node)):
            branch.state, branch.step, branch.since = State.WAITING, "", event.at
            branch.done += event.ok

    def _candidate_ended(self, event: CandidateEnded) -> None:
        if branch := self.branches.get(event.candidate):
            branch.state, branch.why, branch.since, branch.step = State(event.end), event.why, event.at, ""

    def _live(self, candidates: tuple[str, ...]) -> list[Branch]:
        known = (self.branches.get(candidate) for candidate in candidates)
        return [b for b in known if b and b.state in (State.WAITING, State.RUNNING)]
