"""A plot of `bench race`: mean seconds of each mode, the oracle as a line, each project as a dot. Plain SVG."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from xml.sax.saxutils import escape

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
