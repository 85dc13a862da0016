"""Follows the output of one running command: what failures it tells of, and how its tests fare."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable

from specbuild.execution import LineReader
from specbuild.failures import Failure, Weight

TALLY = "specbuild-tally "
"""What begins the lines by which pytest's tally is told; see `specbuild.verify.program_pytest`."""


_FIGURES = re.compile(r"(?P<passed>\d{1,9}) (?P<failed>\d{1,9}) (?P<collected>\d{1,9})", re.ASCII)


class Watch:
    """Takes the lines of a command, and passes on what they tell; a line sink."""

    def __init__(
        self,
        reader: LineReader | None,
        *,
        mark: str = "",
        shown: Callable[[str], None],
        told: Callable[[list[Failure]], None],
        tallied: Callable[[int, int], None],
    ) -> None:
        """`shown` gets the lines for people, `told` new failures, `tallied` how many tests failed, and of how many.

        `mark` is the Check's: tallies without it are output as any other, and so are all where there is none.
        """
        self._reader = reader
        self._tally = f"{TALLY}{mark} " if mark else ""
        self._shown = shown
        self._told = told
        self._tallied = tallied
        self.found: list[Failure] = []
        """In the order in which the output told of them."""
        self.doomed = ""
        """Why the command is sure to fail; empty as long as it is not."""
        self.ended = False

    def __call__(self, line: str) -> None:
        if self._tally and line.startswith(self._tally):
            self._count(line.removeprefix(self._tally))
            return
        self._shown(line)
        if self._reader is not None:
            self._take(self._reader.feed(line))

    def finish(self) -> None:
        """The output has ended, and the command has failed."""
        self.ended = True
        if self._reader is not None:
            self._take(self._reader.finish())

    @property
    def causes(self) -> tuple[Failure, ...]:
        """What is to be repaired; where nothing better is known, symptoms."""
        return tuple([failure for failure in self.found if failure.weight is not Weight.WARNING] or self.found)

    def _count(self, figures: str) -> None:
        if found := _FIGURES.fullmatch(figures.strip()):
            self._tallied(int(found["failed"]), int(found["collected"]))

    def _take(self, failures: Iterable[Failure]) -> None:
        new = list(failures)
        if new:
            self.found += new
            self._told(new)
