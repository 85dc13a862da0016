"""What a race tells of itself: its events, with the seconds since the build began."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

from specbuild.events import (
    CandidateEnded,
    FailureSeen,
    Notice,
    Reporter,
    StepEnded,
    StepOutput,
    StepStarted,
    Verified,
)
from specbuild.execution import Execution, kind, title
from specbuild.failures import Failure
from specbuild.outcome import Outcome
from specbuild.tree import Edge


class Chronicle:
    """Emits the events of one race."""

    def __init__(self, reporter: Reporter, clock: Callable[[], float], began: float | None = None) -> None:
        """`clock` gives seconds; the build began when it gave `began`, or begins now."""
        self._reporter = reporter
        self._clock = clock
        self._began = clock() if began is None else began
        self._candidates: dict[str, tuple[str, ...]] = {}

    def now(self) -> float:
        """Seconds since the build began."""
        return self._clock() - self._began

    def candidates(self, edge: Edge) -> tuple[str, ...]:
        """Those for which an edge was started."""
        return self._candidates[edge.key]

    def started(self, edge: Edge, candidates: tuple[str, ...]) -> None:
        """The work of an edge begins, for `candidates`."""
        self._candidates[edge.key] = candidates
        self._reporter.emit(
            StepStarted(
                at=self.now(),
                node=edge.key,
                title=title(edge.work),
                step_kind=kind(edge.work),
                candidates=candidates,
            )
        )

    def line(self, edge: Edge, line: str) -> None:
        """A line of its output."""
        self._reporter.emit(StepOutput(at=self.now(), node=edge.key, line=line))

    def seen(self, edge: Edge, failure: Failure, probability: float) -> None:
        """Its output tells of a failure, and so it fails with `probability`."""
        self._reporter.emit(
            FailureSeen(
                at=self.now(),
                node=edge.key,
                title=title(edge.work),
                step_kind=kind(edge.work),
                candidates=self.candidates(edge),
                failure=failure,
                words=str(failure),
                probability=probability,
            )
        )

    def ended(self, done: Execution) -> None:
        """An execution has ended, one way or another."""
        completed = done.completed
        self._reporter.emit(
            StepEnded(
                at=self.now(),
                node=done.key,
                title=title(done.work),
                ok=done.outcome.is_good,
                cancelled=done.outcome is Outcome.CANCELLED,
                exit_code=completed.exit_code if completed else None,
                end=completed.end.value if completed else "",
                seconds=done.end - done.start,
                cpu_seconds=done.cpu_seconds,
                written_bytes=done.written_bytes,
                note=_note(done),
                log=str(done.log) if done.log else None,
            )
        )
        if done.verdict is not None:
            self._reporter.emit(Verified(at=self.now(), candidates=done.candidates, verdict=done.verdict))

    def left(self, candidate: str, end: Literal["committed", "failed", "cancelled"], why: str) -> None:
        """A candidate is out of the race, or has won it."""
        self._reporter.emit(CandidateEnded(at=self.now(), candidate=candidate, end=end, why=why))

    def warn(self, message: str) -> None:
        """Something that people should know went wrong."""
        self._reporter.emit(Notice(at=self.now(), message=message, warning=True))


def _note(done: Execution) -> str:
    if done.outcome.is_taken_over:
        return done.outcome.value
    return done.error or done.ended_early or (done.completed.note if done.completed else "")
