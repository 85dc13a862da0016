"""The journal: every event of a build as a line of JSON, written as it happens."""

from __future__ import annotations

import fcntl
from pathlib import Path
from types import TracebackType
from typing import Self, TextIO

from specbuild.events import Event, StepOutput


class Journal:
    """A reporter that appends events to a file. Output lines are left to the step logs. Use as a context manager."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._file: TextIO | None = None

    def __enter__(self) -> Self:
        self.path.parent.mkdir(parents=True, exist_ok=True)
        self._file = self.path.open("w", encoding="utf-8")
        fcntl.flock(self._file, fcntl.LOCK_SH | fcntl.LOCK_NB)  # the kernel ends it with us, whatever kills us
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._file is not None:
            self._file.close()
            self._file = None

    def emit(self, event: Event) -> None:
        """Write the event, at once and whole."""
        if self._file is not None and not isinstance(event, StepOutput):
            self._file.write(event.model_dump_json() + "\n")
            self._file.flush()


def is_being_written(path: Path) -> bool:
    """Whether a build writes that journal now, in this process or another."""
    try:
        with path.open("rb") as file:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except OSError:  # there is none, or it is another user's, whose builds lie in a cache of their own
        return False
    return False
