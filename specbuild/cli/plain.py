"""Progress as log lines: one a happening, with the time and the candidates that it concerns.

Parallel steps never mix their output: a step's last lines are shown in one block when it fails (GitHub and GitLab
fold it), the whole is in its log.
"""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from specbuild.cli.race import Race
from specbuild.cli.terminal import Terminal, clean
from specbuild.cli.words import abbreviated, counts, duration, ending, last_lines_of, plural
from specbuild.events import (
    BuildEnded,
    BuildStarted,
    CandidateEnded,
    CandidateProposed,
    Event,
    FailureSeen,
    Notice,
    Phase,
    RepairJudged,
    Replayed,
    StepEnded,
    StepOutput,
    StepStarted,
    Verified,
)
from specbuild.failures import Weight


@dataclass(slots=True)
class Plain:
    """A Reporter of log lines."""

    terminal: Terminal
    verbose: int = 0
    quiet: bool = False
    """Warnings and the outcome only."""
    fold: Fold | None = None
    _race: Race = field(default_factory=Race)

    def emit(self, event: Event) -> None:
        """Write what is to be said about the event."""
        self._race.see(event)
        match event:
            case Notice(warning=True):
                self._say(event.at, f"{self._paint('warning', 'yellow')}: {clean(event.message)}")
            case BuildEnded():
                self._outcome(event)
            case _ if self.quiet:
                pass
            case StepOutput() if not self.verbose:
                pass
            case StepStarted() | StepEnded() | StepOutput():
                self._step(event)
            case CandidateProposed() | Verified() | CandidateEnded():
                self._candidate(event)
            case FailureSeen() | RepairJudged():
                self._failure(event)
            case BuildStarted() | Phase() | Notice() | Replayed():
                self._journey(event)

    def _journey(self, event: BuildStarted | Phase | Notice | Replayed) -> None:
        match event:
            case BuildStarted():
                self._say(event.at, f"build {event.build} of {clean(event.repo)} (specbuild {event.version})")
            case Phase():
                detail = f": {clean(event.detail)}" if event.detail else ""
                self._say(event.at, self._paint(event.name, None, bold=True) + detail)
            case Notice():
                self._say(event.at, f"note: {clean(event.message)}")
            case Replayed(same=True):
                self._say(event.at, f"replayed from the base with the same verdict: {counts(event.verdict)}")
            case Replayed():
                warning = self._paint("warning", "yellow")
                self._say(event.at, f"{warning}: the replay from the base ended differently: {ending(event.verdict)}")

    def _failure(self, event: FailureSeen | RepairJudged) -> None:
        match event:
            case FailureSeen() if event.failure.weight is Weight.WARNING and not self.verbose:
                pass
            case FailureSeen():
                sure = "" if event.probability == 1 else f", {event.probability:.0%} likely"
                who = abbreviated(event.candidates)
                self._say(event.at, f"{who} {self._paint('sees', 'yellow')}: {clean(event.words)}{sure}")
            case RepairJudged():
                how = "worked" if event.worked else "did not work"
                self._say(event.at, f"{event.candidate} repair {clean(event.name)} {how}: {clean(event.why)}")

    def _candidate(self, event: CandidateProposed | Verified | CandidateEnded) -> None:
        mark = self.terminal.symbols
        match event:
            case CandidateProposed(repairs=repairs) if event.of:
                new = " and ".join(dict.fromkeys(clean(repair.title) for repair in repairs))
                self._say(event.at, f"{event.candidate} repairs {event.of}: {new}, {event.prior:.0%} likely")
            case CandidateProposed():
                what = f"{clean(event.strategy)} on {event.base}, {event.prior:.0%} likely"
                self._say(event.at, f"{event.candidate} {what}: {clean(event.reason)}")
            case Verified(verdict=verdict) if verdict.ok:
                what = f"{abbreviated(event.candidates)} {mark.won} verified: {counts(verdict)}"
                self._say(event.at, self._paint(what, "green"))
            case Verified():
                what = f"{abbreviated(event.candidates)} {mark.lost} not verified: {clean(event.verdict.reason)}"
                self._say(event.at, self._paint(what, "red"))
            case CandidateEnded(end="failed" | "cancelled") if not self.verbose:
                pass  # the step's line has told it of all its candidates at once
            case CandidateEnded():
                why = f": {clean(event.why)}" if event.why else ""
                self._say(event.at, f"{event.candidate} {event.end}{why}")

    def _step(self, event: StepStarted | StepEnded | StepOutput) -> None:
        mark = self.terminal.symbols
        match event:
            case StepStarted():
                self._say(event.at, f"{abbreviated(event.candidates)} {mark.running} {clean(event.title)}")
            case StepOutput():
                who = abbreviated(self._race.who(event.node), 1)
                self._say(event.at, self._paint(f"{who} {mark.bar} {clean(event.line)}", None, dim=True))
            case StepEnded(cancelled=True):
                self._say(event.at, self._ended(event, mark.cancelled, "cancelled"))
            case StepEnded(ok=True):
                self._say(event.at, self._ended(event, mark.won, clean(event.note)))
            case StepEnded():
                self._failed(event)

    def _ended(self, event: StepEnded, mark: str, how: str) -> str:
        who = abbreviated(self._race.who(event.node))
        return f"{who} {mark} {clean(event.title)}{': ' if how else ''}{how} ({duration(event.seconds)})"

    def _failed(self, event: StepEnded) -> None:
        code = "" if event.exit_code is None else f"exit code {event.exit_code}"
        end = code if event.end in ("", "exited") else event.end
        how = ", ".join(filter(None, (end, clean(event.note))))
        headline = self._ended(event, self.terminal.symbols.lost, how)
        self._say(event.at, self._paint(headline, "red"))
        lines = [] if self.verbose else last_lines_of(event.log)
        if lines:
            self._block(f"last lines of {clean(event.title)!r}", lines)
        if event.log:
            self._indented(f"log: {event.log}")

    def _block(self, title: str, lines: list[str]) -> None:
        opening, closing = self.fold.around(title) if self.fold else ([], [])
        for line in opening:
            self.terminal.line(line)
        for line in lines:
            self._indented(f"{self.terminal.symbols.bar} {line}")
        for line in closing:
            self.terminal.line(line)

    def _outcome(self, event: BuildEnded) -> None:
        if event.outcome == "error":  # told in full, with what to try, when the command ends
            return
        tried = plural(len(self._race.branches), "candidate")
        winner = self._race.winner
        who = f" {winner.id} ({clean(winner.strategy)} on {winner.base})" if winner else ""
        text = f"{event.outcome}{who} after {duration(event.seconds)}, {tried}"
        self._say(event.at, self._paint(text, "green" if event.outcome == "committed" else "red", bold=True))

    def _say(self, at: float, text: str) -> None:
        self.terminal.line(f"[{duration(at):>7}] {text}")

    def _indented(self, text: str) -> None:
        self.terminal.line(" " * 10 + text)

    def _paint(self, text: str, color: str | None, *, bold: bool = False, dim: bool = False) -> str:
        return self.terminal.paint(text, color, bold=bold, dim=dim)


@dataclass(frozen=True, slots=True)
class Fold:
    """How a CI service is told to fold lines, and not to obey any that foreign code printed."""

    around: Callable[[str], tuple[list[str], list[str]]]

    @classmethod
    def for_service(cls, environ: Mapping[str, str]) -> Fold | None:
        """The way of the CI service that this runs in; None elsewhere."""
        if environ.get("GITHUB_ACTIONS") == "true":
            return cls(_github)
        if environ.get("GITLAB_CI") == "true":
            return cls(_gitlab)
        return None


def _github(title: str) -> tuple[list[str], list[str]]:
    """Workflow commands of GitHub Actions; `stop-commands` so that output cannot forge others."""
    token = secrets.token_hex(16)
    return [f"::group::{title}", f"::stop-commands::{token}"], [f"::{token}::", "::endgroup::"]


def _gitlab(title: str) -> tuple[list[str], list[str]]:
    """Collapsible sections of GitLab CI job logs."""
    now, name = int(time.time()), f"specbuild_{secrets.token_hex(4)}"
    return (
        [f"\x1b[0Ksection_start:{now}:{name}[collapsed=true]\r\x1b[0K{title}"],
        [f"\x1b[0Ksection_end:{now}:{name}\r\x1b[0K"],
    )
