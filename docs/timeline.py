"""Draws the race of a build as a picture: `python docs/timeline.py specbuild-out/environment.json docs/race.svg`."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from html import escape
from pathlib import Path

from specbuild.environment import Environment, TimelineEntry

WIDTH, LABEL, ROW, TOP, BOTTOM = 920, 90, 22, 44, 30
"""Pixels: of the picture, of the names on the left, of a row, of the title, of the axis."""
TICKS = (1, 2, 5, 10, 20, 30, 60, 120, 300, 600)
"""Seconds between marks of the axis; the first that needs at most ten."""
COLORS = {
    "won": "#2da44e",
    "ok": "#54aeff",
    "failed": "#cf222e",
    "cancelled": "#afb8c1",
    "reused": "#bf8700",
    "grafted": "#8250df",
}
MEANINGS = {
    "won": "the winner's path",
    "ok": "ran for others",
    "failed": "failed",
    "cancelled": "cancelled at the commit",
    "reused": "kept from an earlier build",
    "grafted": "taken over from beside",
}
INK = "#6e7781"
ON_BAR = "#0d1117"
LETTER = 6.6
"""Pixels that a letter of this size takes, on average."""


def race_of(environment: Environment) -> list[TimelineEntry]:
    """What ran until the commit, in the order in which it began."""
    end = environment.seconds.to_commit or environment.seconds.total
    return sorted((entry for entry in environment.timeline if entry.start <= end), key=lambda entry: entry.start)


def draw(environment: Environment) -> str:
    """The picture as SVG, readable on light and on dark ground."""
    entries = race_of(environment)
    seconds = max((entry.end for entry in entries), default=1.0)
    scale = (WIDTH - LABEL - 20) / seconds
    height = TOP + ROW * len(entries) + BOTTOM
    font = 'font-family="ui-sans-serif, system-ui, sans-serif" font-size="12"'
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" {font} fill="{INK}">',
        f"<title>{escape(_title(environment))}</title>",
        f'<text x="4" y="16" font-size="14" font-weight="600">{escape(_title(environment))}</text>',
        *_legend({_state(entry, environment) for entry in entries}),
        *_axis(seconds, scale, height),
    ]
    for row, entry in enumerate(entries):
        parts.extend(_bar(entry, row, scale, environment))
    return "\n".join([*parts, "</svg>", ""])


def _title(environment: Environment) -> str:
    verified = f"{environment.seconds.to_commit:.1f} s" if environment.seconds.to_commit else "never"
    verdict = f", {environment.verdict.passed} tests passed" if environment.verdict else ""
    return f"{environment.repo.origin}: {len(environment.candidates)} candidates, verified after {verified}{verdict}"


def _legend(states: set[str]) -> Iterator[str]:
    x = 4
    for name, meaning in MEANINGS.items():
        if name not in states:
            continue
        yield f'<rect x="{x}" y="24" width="12" height="10" rx="2" fill="{COLORS[name]}"/>'
        yield f'<text x="{x + 17}" y="33">{meaning}</text>'
        x += 40 + 7 * len(meaning)


def _axis(seconds: float, scale: float, height: int) -> Iterator[str]:
    every = next((tick for tick in TICKS if seconds / tick <= 10), TICKS[-1])
    for mark in range(0, int(seconds) + 1, every):
        x = LABEL + mark * scale
        yield f'<line x1="{x:.1f}" y1="{TOP}" x2="{x:.1f}" y2="{height - BOTTOM}" stroke="{INK}" opacity="0.25"/>'
        yield f'<text x="{x:.1f}" y="{height - 10}" text-anchor="middle">{mark} s</text>'


def _bar(entry: TimelineEntry, row: int, scale: float, environment: Environment) -> Iterator[str]:
    y, x, width = TOP + row * ROW, LABEL + entry.start * scale, max(2.0, (entry.end - entry.start) * scale)
    state = _state(entry, environment)
    names = " ".join(entry.candidates[:3]) + ("…" if len(entry.candidates) > 3 else "")
    text = f"{_short(entry.title, 60)}  {entry.end - entry.start:.1f} s"
    yield f'<text x="4" y="{y + 15}">{escape(names)}</text>'
    yield f'<rect x="{x:.1f}" y="{y + 4}" width="{width:.1f}" height="{ROW - 7}" rx="3" fill="{COLORS[state]}"/>'
    if x + width + 6 + LETTER * len(text) < WIDTH:
        yield f'<text x="{x + width + 6:.1f}" y="{y + 15}">{escape(text)}</text>'
    elif LETTER * len(text) < width:
        yield f'<text x="{x + 6:.1f}" y="{y + 15}" fill="{ON_BAR}">{escape(text)}</text>'
    else:
        yield f'<text x="{x - 6:.1f}" y="{y + 15}" text-anchor="end">{escape(text)}</text>'


def _state(entry: TimelineEntry, environment: Environment) -> str:
    winner = next((candidate.id for candidate in environment.candidates if candidate.end == "committed"), None)
    return "won" if entry.outcome == "ok" and winner in entry.candidates else entry.outcome


def _short(text: str, limit: int) -> str:
    return text if len(text) <= limit else text[: limit - 1].rstrip(" ,") + "…"


def main() -> None:
    """Read the Environment that the first argument names, and write the picture to the second."""
    source, target = map(Path, sys.argv[1:3])
    environment = Environment.model_validate_json(source.read_bytes())
    target.write_text(draw(environment), encoding="utf-8")


if __name__ == "__main__":
    main()
