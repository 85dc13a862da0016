"""The time of a build, and what it tells by it."""

from __future__ import annotations

import time
from collections.abc import Callable

from specbuild.events import Notice, Phase, Reporter, StepOutput


class Clock:
    """Seconds since a build began, and the reporter that they are told to."""

    def __init__(self, reporter: Reporter) -> None:
        self.reporter = reporter
        self.began = time.monotonic()

    def now(self) -> float:
        """Seconds since the build began."""
        return time.monotonic() - self.began

    def phase(self, name: str, detail: str = "") -> None:
        """A phase of the build begins."""
        self.reporter.emit(Phase(at=self.now(), name=name, detail=detail))

    def notify(self, message: str) -> None:
        """Something that people should know."""
        self.reporter.emit(Notice(at=self.now(), message=message))

    def line(self, node: str) -> Callable[[str], None]:
        """What takes the output of `node`, a line at a time."""
        return lambda line: self.reporter.emit(StepOutput(at=self.now(), node=node, line=line))
