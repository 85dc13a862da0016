"""What a runner's report says, in numbers that mean the same for every runner."""

from __future__ import annotations

from dataclasses import dataclass

NAMES_KEPT = 50
"""Names of failing tests that are carried on; a Verdict holds no more."""


class ReportError(Exception):
    """A report that cannot be believed: garbled, cut off, hostile or not a report. Its text says which."""


@dataclass(frozen=True, slots=True)
class Tally:
    """Counts of one run. Every test is counted once, by the worst that happened to it."""

    passed: int = 0
    failed: int = 0
    errors: int = 0
    skipped: int = 0
    expected_failures: int = 0
    """Failed as announced (xfail): neither passed nor failed nor skipped."""
    listed: int = 0
    """Tests that were collected without being run."""
    failing: tuple[str, ...] = ()
    """Names of failed tests and errors, at most `NAMES_KEPT`."""
    blocking: tuple[str, ...] = ()
    """Names of what did not even load (test modules, the project's own packages), at most `NAMES_KEPT`. Whatever the
    ratio of the rest, one such name makes a run not ok."""
    first_message: str = ""
    """Of the first failure, one line."""

    @property
    def collected(self) -> int:
        """Everything that the runner knew of."""
        ran = self.passed + self.failed + self.errors
        return max(self.listed, ran + self.skipped + self.expected_failures)

    @property
    def ratio(self) -> float:
        """passed ÷ (passed + failed + errors), 0 when nothing ran."""
        ran = self.passed + self.failed + self.errors
        return self.passed / ran if ran else 0.0


def one_line(text: str, limit: int = 200) -> str:
    """The first line with content, shortened to `limit` characters."""
    line = next((line.strip() for line in text.splitlines() if line.strip()), "")
    return line if len(line) <= limit else line[: limit - 1] + "…"
