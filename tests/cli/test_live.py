"""The live tree, drawn on terminals of several sizes and kinds."""

from __future__ import annotations

import io

import pytest

from specbuild.cli.live import LiveTree
from specbuild.cli.terminal import Terminal, clean
from specbuild.events import (
    BuildEnded,
    BuildStarted,
    CandidateEnded,
    CandidateProposed,
    Event,
    Notice,
    StepEnded,
    StepStarted,
)


class Clock:
    """Stands still until it is set."""

    now = 100.0

    def __call__(self) -> float:
        return self.now


class Screen:
    """A terminal of a given size, and what was drawn on it last."""

    def __init__(self, width: int = 100, height: int = 30, *, unicode: bool = True, color: bool = False) -> None:
        self.stream = io.StringIO()
        self.clock = Clock()
        terminal = Terminal(self.stream, unicode=unicode, color=color, tty=True)
        self.tree = LiveTree(terminal, clock=self.clock, width=width, height=height)

    def drawn(self, events: list[Event], now: float) -> list[str]:
        for event in events:
            self.clock.now = 100.0 + event.at
            self.tree.emit(event)
        self.stream.seek(0)
        self.stream.truncate()
        self.clock.now = 100.0 + now
        self.tree.tick()
        return [clean(line).rstrip() for line in self.stream.getvalue().splitlines()]

    def left(self) -> str:
        self.stream.seek(0)
        self.stream.truncate()
        self.tree.close()
        return self.stream.getvalue()


def started(candidates: int = 3) -> list[Event]:
    proposals = [
        CandidateProposed(
            at=1.0, candidate=f"c{n}", strategy=f"route-{n}", base="host", prior=0.5, reason="", steps=("a", "b")
        )
        for n in range(1, candidates + 1)
    ]
    first = BuildStarted(at=0.0, build="b1", repo="pypi:thing==1.0", wall_time="", version="0.1.0")
    return [first, *proposals]


def under_way() -> list[Event]:
    return [
        *started(),
        StepStarted(at=2.0, node="n1", title="install uv", step_kind="toolchain", candidates=("c1", "c2")),
        StepEnded(at=3.0, node="n1", title="install uv", ok=True, seconds=1.0),
        StepStarted(at=3.0, node="n2", title="sync the lock", step_kind="dependencies", candidates=("c1",)),
        CandidateEnded(at=4.0, candidate="c2", end="failed", why="no such package"),
        CandidateEnded(at=4.0, candidate="c3", end="cancelled", why="c1 won"),
    ]


def test_every_branch_shows_its_mark_its_step_and_its_time() -> None:
    lines = Screen().drawn(under_way(), now=5.5)
    assert lines[0] == "pypi:thing==1.0    5.5s"
    assert lines[1].startswith("├── ⠙ c1  route-1 · host  2/3 sync the lock  2.5s")
    assert lines[2:] == [
        "├── ✗ c2  route-2 · host  failed: no such package",
        "└── ◌ c3  route-3 · host  cancelled: c1 won",
    ]


def test_success_leaves_one_line() -> None:
    screen = Screen()
    committed = [
        *under_way(),
        CandidateEnded(at=6.0, candidate="c1", end="committed", why=""),
        BuildEnded(at=7.0, outcome="committed", seconds=7.0),
    ]
    screen.drawn(committed, now=7.0)
    lines = [line for line in map(clean, screen.left().splitlines()) if line.strip()]
    assert lines == ["✓ pypi:thing==1.0 committed after 7.0s: c1 route-1 on host, of 3 candidates"]


@pytest.mark.parametrize("width", [20, 40, 80])
def test_no_line_is_wider_than_the_terminal(width: int) -> None:
    lines = Screen(width=width).drawn(under_way(), now=5.0)
    assert max(map(len, lines)) <= width
    assert len(lines) == 4


def test_a_low_window_shows_running_branches_and_counts_the_rest() -> None:
    running = StepStarted(at=2.0, node="n", title="install", step_kind="system", candidates=("c20",))
    lines = Screen(height=8).drawn([*started(24), running], now=3.0)
    assert [line[6:9] for line in lines[1:-1]] == ["c1 ", "c2 ", "c3 ", "c20"]
    assert lines[-1] == "└── … 20 more"
    assert len(lines) <= 8


def test_a_terminal_without_unicode_gets_marks_in_ascii() -> None:
    lines = Screen(unicode=False).drawn(under_way(), now=5.0)
    assert "x c2  route-2" in lines[2]


def test_notices_stay_above_the_tree_and_markup_in_them_is_text() -> None:
    screen = Screen()
    screen.tree.emit(started()[0])
    screen.tree.emit(Notice(at=0.5, message="[bold]not markup[/bold] \x1b[2J", warning=True))
    assert "warning: [bold]not markup[/bold]" in clean(screen.stream.getvalue().replace("\n", " "))


def test_a_closed_terminal_does_not_end_the_build() -> None:
    class Hangup(io.StringIO):
        def write(self, text: str, /) -> int:
            raise OSError(5, "Input/output error")

    tree = LiveTree(Terminal(Hangup(), tty=True), width=80, height=24)
    for event in under_way():
        tree.emit(event)
    tree.tick()
    tree.close()
