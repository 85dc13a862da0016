"""Plots in plain SVG: of `bench race` the mean seconds of each mode, the oracle as a line, each project as a dot; of
`bench simulate` the mean seconds of each mode over slots."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from xml.sax.saxutils import escape

COLOURS = ("#1f77b4", "#7f7f7f", "#9467bd", "#ff7f0e", "#8c564b", "#2ca02c")
"""Of modes, in order."""

CURVES_HEIGHT = 380

WIDTH, ROW, LEFT, TOP, RIGHT = 760, 44, 110, 48, 70


def plot(means: Mapping[str, float], projects: Mapping[str, Sequence[float]], title: str) -> str:
    """An SVG of bars: mode → mean seconds, and mode → seconds of each project. `oracle` becomes a line."""
    modes = [mode for mode in means if mode != "oracle"]
    longest = max([*means.values(), 1.0])
    scale = (WIDTH - LEFT - RIGHT) / longest
    height = TOP + ROW * len(modes) + 36
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{height}" font-family="sans-serif">',
        f'<rect width="{WIDTH}" height="{height}" fill="white"/>',
        f'<text x="{LEFT}" y="26" font-size="15">{escape(title)}</text>',
        *_bars(modes, means, projects, scale),
        *_oracle(means, scale, TOP + ROW * len(modes)),
        "</svg>",
    ]
    return "\n".join(parts) + "\n"


def _bars(
    modes: Sequence[str], means: Mapping[str, float], projects: Mapping[str, Sequence[float]], scale: float
) -> Iterator[str]:
    for row, mode in enumerate(modes):
        y, length = TOP + ROW * row, means[mode] * scale
        yield f'<text x="{LEFT - 8}" y="{y + 20}" font-size="13" text-anchor="end">{escape(mode)}</text>'
        yield f'<rect x="{LEFT}" y="{y + 4}" width="{length:.1f}" height="24" fill="#7aa6c2"/>'
        yield f'<text x="{LEFT + length + 6:.1f}" y="{y + 21}" font-size="12">{means[mode]:.1f} s</text>'
        for seconds in projects.get(mode, ()):
            x = LEFT + min(seconds * scale, WIDTH - LEFT - RIGHT)
            yield f'<circle cx="{x:.1f}" cy="{y + 16}" r="3" fill="#1f3d52" fill-opacity="0.5"/>'


def _oracle(means: Mapping[str, float], scale: float, bottom: int) -> Iterator[str]:
    if "oracle" in means:
        x = LEFT + means["oracle"] * scale
        yield f'<line x1="{x:.1f}" y1="{TOP}" x2="{x:.1f}" y2="{bottom}" stroke="#b03a2e" stroke-dasharray="5 4"/>'
        yield f'<text x="{x:.1f}" y="{bottom + 18}" font-size="12" fill="#b03a2e" text-anchor="middle">oracle</text>'


def curves(lines: Mapping[str, Sequence[tuple[int, float]]], title: str) -> str:
    """An SVG of mode → (slots, seconds), slots on a logarithmic axis. `oracle` is dashed."""
    points = [point for some in lines.values() for point in some] or [(1, 1.0)]
    most, longest = max(max(slots for slots, _ in points), 2), max(seconds for _, seconds in points)
    bottom, width = CURVES_HEIGHT - 40, WIDTH - LEFT - RIGHT

    def place(slots: int, seconds: float) -> tuple[float, float]:
        return LEFT + width * math.log(slots) / math.log(most), bottom - (bottom - TOP) * seconds / longest

    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{CURVES_HEIGHT}" font-family="sans-serif">',
        f'<rect width="{WIDTH}" height="{CURVES_HEIGHT}" fill="white"/>',
        f'<text x="{LEFT}" y="26" font-size="15">{escape(title)}</text>',
        f'<path d="M{LEFT},{TOP} V{bottom} H{WIDTH - RIGHT}" fill="none" stroke="black"/>',
        f'<text x="{LEFT - 8}" y="{TOP + 4}" font-size="12" text-anchor="end">{longest:.0f} s</text>',
    ]
    for slots in sorted({slots for slots, _ in points}):
        x = place(slots, 0)[0]
        parts.append(f'<text x="{x:.1f}" y="{bottom + 18}" font-size="12" text-anchor="middle">{slots}</text>')
    for row, (mode, some) in enumerate(lines.items()):
        parts += _curve(mode, [place(*point) for point in some], row)
    return "\n".join([*parts, "</svg>"]) + "\n"


def _curve(mode: str, points: Sequence[tuple[float, float]], row: int) -> Iterator[str]:
    """The line of a mode, and its name in the legend."""
    colour = "#b03a2e" if mode == "oracle" else COLOURS[row % len(COLOURS)]
    dashes = ' stroke-dasharray="5 4"' if mode == "oracle" else ""
    path = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
    yield f'<polyline points="{path}" fill="none" stroke="{colour}" stroke-width="2"{dashes}/>'
    x, y = WIDTH - RIGHT + 8, TOP + 10 + 18 * row
    yield f'<text x="{x}" y="{y}" font-size="11" fill="{colour}">{escape(mode)}</text>'
