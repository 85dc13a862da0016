"""How one execution of a piece of a race's work ended."""

from __future__ import annotations

from enum import StrEnum


class Outcome(StrEnum):
    """The end of an execution; as it stands in results and journals."""

    OK = "ok"
    FAILED = "failed"
    CANCELLED = "cancelled"
    """Killed, because no live Recipe needed it any more."""
    REUSED = "reused"
    """Not run: an earlier build has left its Checkpoint."""
    GRAFTED = "grafted"
    """Not run: what its twin has changed, which ran beside, was taken over."""

    @staticmethod
    def of(*, ok: bool) -> Outcome:
        """That of work which ran to its own end."""
        return Outcome.OK if ok else Outcome.FAILED

    @property
    def is_good(self) -> bool:
        """Whether what the work leaves is there now."""
        return self is Outcome.OK or self.is_taken_over

    @property
    def is_taken_over(self) -> bool:
        """Whether nothing ran, since what the work leaves was there already."""
        return self in {Outcome.REUSED, Outcome.GRAFTED}
