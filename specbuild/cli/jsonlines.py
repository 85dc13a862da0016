"""Progress as JSON lines: the events themselves, one a line, in ASCII."""

from __future__ import annotations

import json
from dataclasses import dataclass

from specbuild.cli.terminal import Terminal
from specbuild.events import Event, StepOutput


@dataclass(frozen=True, slots=True)
class JsonLines:
    """A Reporter for other programs."""

    terminal: Terminal
    verbose: int = 0
    """Above 0 with every line of output of every step."""

    def emit(self, event: Event) -> None:
        """Write the event."""
        if isinstance(event, StepOutput) and not self.verbose:
            return
        self.terminal.line(json.dumps(event.model_dump(mode="json")))
