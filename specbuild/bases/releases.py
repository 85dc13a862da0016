"""The Debian releases that bases are made of.

Sources: the release announcements of the Debian project for the dates, the archive's `python3` and `python3.N`
packages for the versions of the interpreter.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, date, datetime


@dataclass(frozen=True, slots=True)
class Release:
    """One release, by its code name."""

    name: str
    number: str
    released: date | None
    """None while it is in the making."""
    python: str | None
    """The whole version of its `python3`; None where that still changes."""

    @property
    def stable(self) -> bool:
        """Whether it has been released: only then has it suites for updates and security fixes."""
        return self.released is not None

    @property
    def epoch(self) -> int:
        """The newest time of a file in a base of it, in seconds since 1970: the same at every making."""
        day = self.released or date(2026, 1, 1)
        return int(datetime(day.year, day.month, day.day, tzinfo=UTC).timestamp())


RELEASES = (
    Release("bullseye", "11", date(2021, 8, 14), "3.9.2"),
    Release("bookworm", "12", date(2023, 6, 10), "3.11.2"),
    Release("trixie", "13", date(2025, 8, 9), "3.13.5"),
    Release("forky", "14", None, None),
    Release("sid", "unstable", None, None),
)
"""Oldest first."""

ALIASES = {
    "oldoldstable": "bullseye",
    "oldstable": "bookworm",
    "stable": "trixie",
    "testing": "forky",
    "unstable": "sid",
}
"""What the archive calls them since August 2025. To be changed with the next release."""


def find_release(name: str) -> Release | None:
    """The release with that code name, number (`12`, `12.5`) or alias (`stable`); None if there is none here."""
    wanted = ALIASES.get(name, name)
    number = wanted.partition(".")[0]
    return next((release for release in RELEASES if wanted == release.name or number == release.number), None)
