"""Dates of files that can be believed."""

from __future__ import annotations

import time
from collections.abc import Iterable
from datetime import UTC, datetime

EARLIEST = datetime(1990, 1, 1, tzinfo=UTC).timestamp()
"""Anything before is an artefact: 1970 (no date, poetry), 1980 (the first date of zip), 1985 (npm)."""

WRITTEN_BY_TOOLS = frozenset(
    {
        1153704088,  # 2006-07-24, cargo and maturin (deterministic tar headers)
        1580601600,  # 2020-02-02, hatchling without SOURCE_DATE_EPOCH
    }
)
"""Seconds since 1970 that build tools write into every archive."""

DAY = 86400.0


def newest_credible(times: Iterable[float]) -> datetime | None:
    """The newest of `times` (seconds since 1970) that is neither absurd nor in the future; None when none is left."""
    latest = time.time() + DAY
    found = [each for each in times if EARLIEST <= each <= latest and int(each) not in WRITTEN_BY_TOOLS]
    return datetime.fromtimestamp(max(found), UTC) if found else None
