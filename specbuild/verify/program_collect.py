"""Lets pytest collect without running anything, and reports how many tests there are and what did not load.

usage: python -c PROGRAM REPORT [PYTEST-ARG...]

A program of `specbuild.verify.programs` (see there).
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

NAMES_KEPT = 50


def cause(text: str) -> str:
    """The first line of the last exception, which pytest marks with an E."""
    found, before = "", ""
    for line in text.splitlines():
        if line.startswith("E ") and not before.startswith("E "):
            found = line[2:].strip()
        before = line
    return found or (text.strip().splitlines() or [""])[-1]


class Collector:
    """A pytest plugin that takes note of what collection finds."""

    def __init__(self) -> None:
        self.listed = 0
        self.skipped = 0
        self.blocking: list[str] = []
        self.first_message = ""
        self.finished = False

    def pytest_collectreport(self, report: Any) -> None:
        """One module or class was looked at."""
        if report.failed:
            self.blocking.append(report.nodeid)
            self.first_message = self.first_message or cause(str(report.longrepr))
        elif report.skipped:
            self.skipped += 1

    def pytest_collection_finish(self, session: Any) -> None:
        """All that would be run is known; what the project deselects itself is not among it."""
        self.listed = len(session.items)
        self.finished = True


def main() -> None:
    """Collect, then write the report."""
    import pytest

    report, args = sys.argv[1], sys.argv[2:]
    sys.path[0] = str(Path.cwd())
    collector = Collector()
    code = int(pytest.main(["--collect-only", "-q", *args], plugins=[collector]))
    if not collector.finished and not collector.blocking:
        sys.exit(code or 3)
    found = {
        "schema_version": 1,
        "listed": collector.listed,
        "errors": len(collector.blocking),
        "skipped": collector.skipped,
        "failing": collector.blocking[:NAMES_KEPT],
        "blocking": collector.blocking[:NAMES_KEPT],
        "first_message": collector.first_message[:500],
    }
    Path(report).write_text(json.dumps(found), encoding="utf-8")
    sys.exit(code)


if __name__ == "__main__":
    main()
