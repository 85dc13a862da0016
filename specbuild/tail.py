"""The end of an output: what a report shows of it."""

from __future__ import annotations

import os
from pathlib import Path

END_BYTES = 64 << 10
"""Of a log of any size, the bytes that are read of its end."""


def last_lines(text: str, count: int) -> list[str]:
    """The last `count` lines of a text that are not blank."""
    return [line for line in text.splitlines() if line.strip()][-count:]


def end_of(log: Path) -> str:
    """The end of a log; nothing where it cannot be read."""
    try:
        with log.open("rb") as file:
            file.seek(max(0, file.seek(0, os.SEEK_END) - END_BYTES))
            return file.read().decode(errors="replace")
    except OSError:
        return ""
