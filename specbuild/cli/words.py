"""Figures and findings in words, the same in progress, plans and results."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from specbuild import tail
from specbuild.cli.terminal import clean

if TYPE_CHECKING:  # help is shown without the models
    from specbuild.verify.verdict import Verdict

TAIL_LINES = 12
"""Lines of the end of an output that are shown."""


def duration(seconds: float) -> str:
    """`4.2s`, `3m07s`, `1h02m`."""
    if seconds < 59.95:
        return f"{seconds:.1f}s"
    whole = round(seconds)
    if whole < 3600:
        return f"{whole // 60}m{whole % 60:02}s"
    return f"{whole // 3600}h{whole % 3600 // 60:02}m"


def size(count: int) -> str:
    """`812 B`, `3.4 MiB`."""
    amount = float(count)
    for unit in ("B", "KiB", "MiB", "GiB"):
        if amount < 1024:
            return f"{amount:.0f} {unit}" if unit == "B" else f"{amount:.1f} {unit}"
        amount /= 1024
    return f"{amount:.1f} TiB"


def plural(count: int, noun: str) -> str:
    """`1 candidate`, `3 candidates`."""
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"


def counts(verdict: Verdict) -> str:
    """`312 passed, 2 failed, 5 skipped`, or the reason where nothing was counted."""
    named = {
        "passed": verdict.passed,
        "failed": verdict.failed,
        "errors": verdict.errors,
        "skipped": verdict.skipped,
    }
    ran = bool(verdict.collected) and verdict.level != "collect"
    shown = [f"{count} {name}" for name, count in named.items() if count or (name == "passed" and ran)]
    return ", ".join(shown) or verdict.reason


def ending(verdict: Verdict) -> str:
    """How a verification ended, on one line: its counts, and why it is not ok."""
    if verdict.ok:
        return counts(verdict)
    first, _, more = verdict.reason.partition("\n")
    why = clean(first.removesuffix("; its last lines:") if more else first)
    return f"{counts(verdict)}: {why}" if verdict.collected else why


def last_lines(text: str, limit: int = TAIL_LINES) -> list[str]:
    """The last lines that say something, cleaned of what a terminal would obey."""
    return [line.rstrip() for line in tail.last_lines("\n".join(map(clean, text.split("\n"))), limit)]


def last_lines_of(log: str | None, limit: int = TAIL_LINES) -> list[str]:
    """The same of a log file; nothing where it cannot be read."""
    return last_lines(tail.end_of(Path(log)), limit) if log else []


def abbreviated(names: Iterable[str], limit: int = 3) -> str:
    """`c1 c2 c3 +4`."""
    all_names = list(names)
    rest = len(all_names) - limit
    return " ".join(all_names[:limit]) + (f" +{rest}" if rest > 0 else "")
