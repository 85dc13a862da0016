"""Runs pytest with a plugin that tells of failures and of the tally while tests run, as pytest itself does at the end.

Lines that begin with `E   ` are the message of a test or module that has just failed. `specbuild-tally M P F T` says
that P tests have passed and F failed of T that were collected, M being the first argument: what tests print has no such
mark. At most MOST messages are told.
"""

import contextlib
import os
import sys
from typing import Any

MOST = 200
LINES = 8
COLUMNS = 400


class Teller:
    def __init__(self, mark: str) -> None:
        self.mark = mark
        # Taken before pytest captures what tests write.
        self.out = os.dup(2)
        self.told = 0
        self.passed = self.collected = 0
        # By their names: a test fails once, however many of its parts do.
        self.failed: set[str] = set()

    def pytest_collection_modifyitems(self, items: Any) -> None:
        self.collected = len(items)

    def pytest_collectreport(self, report: Any) -> None:
        if report.failed:
            self.tell(report)

    def pytest_runtest_logreport(self, report: Any) -> None:
        if getattr(report, "when", "") == "call" and report.passed:
            self.passed += 1
        elif report.failed:
            self.failed.add(report.nodeid)
            self.tell(report)
            # Where other processes run the tests, as with xdist, this one does not know how many there are.
            if self.collected:
                self.write(f"specbuild-tally {self.mark} {self.passed} {len(self.failed)} {self.collected}")

    def tell(self, report: Any) -> None:
        self.told += 1
        if self.told > MOST:
            return
        message = getattr(getattr(report.longrepr, "reprcrash", None), "message", None)
        lines = [line.strip() for line in (message or str(report.longrepr)).splitlines() if line.strip()]
        for line in lines[:LINES] if message else lines[-LINES:]:
            self.write("E   " + (line[1:].strip() if line.startswith("E  ") else line)[:COLUMNS])

    def write(self, line: str) -> None:
        # pytest may be in the middle of a line of dots.
        with contextlib.suppress(OSError):
            os.write(self.out, f"\n{line}\n".encode("utf-8", "replace"))


def main() -> int:
    import pytest

    # As with `python -m`.
    sys.path[0] = os.getcwd()  # noqa: PTH109 - as that does
    sys.argv[0] = pytest.__file__.replace("__init__", "__main__")
    teller = Teller(sys.argv.pop(1))
    return int(pytest.main(sys.argv[1:], plugins=[teller]))


if __name__ == "__main__":
    sys.exit(main())
