"""What a verification found."""

from __future__ import annotations

from specbuild.model import Frozen
from specbuild.recipe import Level


class Verdict(Frozen):
    """The outcome of one Check. Counts come from the runner's own machine-readable report."""

    level: Level
    ok: bool
    """Whether the level was reached: the only thing that may commit a Recipe."""
    reason: str
    """Why it is or is not ok, in words."""
    passed: int = 0
    failed: int = 0
    errors: int = 0
    skipped: int = 0
    collected: int = 0
    ratio: float = 0.0
    """passed ÷ (passed + failed + errors); 0 when nothing ran. Skipped tests do not count."""
    failing: tuple[str, ...] = ()
    """Names of failed tests and errors, at most 50."""
    tainted: tuple[str, ...] = ()
    """Tracked files that the Recipe changed, at most 50; any one makes the Verdict not ok."""
    repeatable: bool | None = None
    """Whether a replay from the base gave the same counts; None until one was made."""
    seconds: float = 0.0
