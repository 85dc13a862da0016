"""What happens in a build, as a stream of frozen events; reporters turn them into progress, a journal, a report."""

from __future__ import annotations

from typing import Annotated, Literal, Protocol

from pydantic import Field

from specbuild.failures import Failure
from specbuild.model import Frozen
from specbuild.recipe import StepKind
from specbuild.verify.verdict import Verdict

SCHEMA_VERSION = 1


class _Event(Frozen):
    at: float
    """Seconds since the build began (monotonic clock)."""


class BuildStarted(_Event):
    """The first event."""

    kind: Literal["build-started"] = "build-started"
    schema_version: int = SCHEMA_VERSION
    build: str
    """Id of the build."""
    repo: str
    wall_time: str
    """ISO 8601, UTC."""
    version: str
    """Of SpecBuild."""


class Phase(_Event):
    """A part of the journey began: `repo`, `facts`, `bases`, `race`, `replay`, `export`."""

    kind: Literal["phase"] = "phase"
    name: str
    detail: str = ""


class Notice(_Event):
    """Something that the user should know: a choice made and why, or a degraded way of working."""

    kind: Literal["notice"] = "notice"
    message: str
    warning: bool = False


class RepairMade(Frozen):
    """A repair that a candidate has over another one."""

    failure: Failure
    """What it is to cure."""
    name: str
    """`apt:libpq-dev`; outcomes are kept by it."""
    title: str
    why: str
    probability: float
    """That it cures the failure, as it was believed."""
    foreseen: bool = False
    """Whether it was made before the failure was observed."""
    at: StepKind | None = None
    """Kind of the Step that fails without it; `test` for the Check."""
    packages: bool = False
    """Whether it installs system packages and does nothing else."""


class Planned(Frozen):
    """A piece of a candidate's work."""

    node: str
    """Key of the state that it leaves, as in the events of steps."""
    kind: str
    """As in the events of steps: `base`, the kind of a step, or `test`."""
    digest: str
    """Of the base, step or check by itself: the same in every build, whatever keeps their checkpoints apart."""
    side: str = ""
    """Key of the state that it leaves where it runs before its turn, if it can."""


class CandidateProposed(_Event):
    kind: Literal["candidate-proposed"] = "candidate-proposed"
    candidate: str
    """Short id, `c1`, `c2`, … in order of preference."""
    strategy: str
    base: str
    prior: float
    reason: str
    steps: tuple[str, ...]
    repairs: tuple[RepairMade, ...] = ()
    """What is repaired in it that was not in the candidate `of`; empty for what a strategy proposed."""
    of: str = ""
    """The candidate that this one repairs."""
    expected_seconds: float = 0.0
    """Of all its work, run alone without any checkpoint; 0 if unknown."""
    path: tuple[Planned, ...] = ()
    """All its work: the base, the steps, the check."""


class StepStarted(_Event):
    kind: Literal["step-started"] = "step-started"
    node: str
    """Key of the state that the step will leave."""
    title: str
    step_kind: str
    candidates: tuple[str, ...]
    """Who needs it, best first."""


class StepOutput(_Event):
    """One line of output; emitted only to reporters that ask for it."""

    kind: Literal["step-output"] = "step-output"
    node: str
    line: str


class StepEnded(_Event):
    kind: Literal["step-ended"] = "step-ended"
    node: str
    title: str
    ok: bool
    cancelled: bool = False
    """Killed because no live candidate needed it any more."""
    exit_code: int | None = None
    end: str = ""
    seconds: float = 0.0
    cpu_seconds: float = 0.0
    written_bytes: int = 0
    note: str = ""
    log: str | None = None
    """Path of the whole output."""


class FailureSeen(_Event):
    """The output of a running step tells of a failure; or one is foreseen before anything runs (`node` is empty)."""

    kind: Literal["failure-seen"] = "failure-seen"
    node: str
    title: str
    """Of the step."""
    step_kind: str
    candidates: tuple[str, ...]
    failure: Failure
    words: str
    """The diagnosis in a sentence."""
    probability: float = 1.0
    """That the step fails of it; 1 once it has failed."""
    why: str = ""
    """What tells, where it is not the failure's evidence."""


class RepairJudged(_Event):
    """It has shown what a repair did."""

    kind: Literal["repair-judged"] = "repair-judged"
    candidate: str
    failure: Failure
    name: str
    worked: bool
    why: str


class Verified(_Event):
    """A Check ended with a Verdict."""

    kind: Literal["verified"] = "verified"
    candidates: tuple[str, ...]
    verdict: Verdict


class CandidateEnded(_Event):
    kind: Literal["candidate-ended"] = "candidate-ended"
    candidate: str
    end: Literal["committed", "failed", "cancelled"]
    why: str


class Replayed(_Event):
    """The winner was built again from its Base without earlier checkpoints."""

    kind: Literal["replayed"] = "replayed"
    same: bool
    verdict: Verdict


class BuildEnded(_Event):
    """The last event."""

    kind: Literal["build-ended"] = "build-ended"
    outcome: str
    seconds: float
    message: str = ""


Event = Annotated[
    BuildStarted
    | Phase
    | Notice
    | CandidateProposed
    | StepStarted
    | StepOutput
    | StepEnded
    | FailureSeen
    | RepairJudged
    | Verified
    | CandidateEnded
    | Replayed
    | BuildEnded,
    Field(discriminator="kind"),
]


class Reporter(Protocol):
    """Receives every event in order, on the event loop; must return at once and must not raise."""

    def emit(self, event: Event) -> None: ...


class Silent:
    """Ignores everything."""

    def emit(self, event: Event) -> None:
        """Do nothing."""


class Fan:
    """Passes events on to several reporters, in order."""

    def __init__(self, *reporters: Reporter) -> None:
        self._reporters = reporters

    def emit(self, event: Event) -> None:
        """Pass the event on."""
        for reporter in self._reporters:
            reporter.emit(event)
