"""Progress as a live tree on a terminal: a branch a candidate; one line is left of it at the end."""

from __future__ import annotations

import time
from collections.abc import Callable, Generator
from contextlib import contextmanager

from rich.console import Console
from rich.live import Live
from rich.markup import escape
from rich.text import Text
from rich.tree import Tree

from specbuild.cli.race import Branch, Race, State
from specbuild.cli.terminal import Terminal, clean
from specbuild.cli.words import duration, ending, plural
from specbuild.events import Event, Notice, Replayed

_FRAMES = "⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏"
_ASCII_FRAMES = "|/-\\"
_ORDER = (State.COMMITTED, State.RUNNING, State.FAILED, State.WAITING, State.CANCELLED)
"""What is shown first where the window is too low for all."""
_STYLES = {
    State.COMMITTED: "bold green",
    State.RUNNING: "cyan",
    State.FAILED: "red",
    State.WAITING: "dim",
    State.CANCELLED: "dim",
}


class LiveTree:
    """A Reporter that takes events into a tree. `tick` draws it, a few times a second; `close` at the end.

    Drawing is no part of `emit`, so that a flood of events costs nothing.
    """

    def __init__(
        self,
        terminal: Terminal,
        *,
        clock: Callable[[], float] = time.monotonic,
        width: int | None = None,
        height: int | None = None,
    ) -> None:
        self._terminal = terminal
        self._clock = clock
        self._race = Race()
        self._offset = clock()
        self._frame = 0
        self._gone = False
        self._console = Console(
            file=terminal.stream,
            force_terminal=True,
            no_color=not terminal.color,
            width=width,
            height=height,
            highlight=False,
            safe_box=not terminal.unicode,
        )
        self._live = Live(console=self._console, auto_refresh=False, transient=True)

    def emit(self, event: Event) -> None:
        """Take the event into the tree."""
        self._race.see(event)
        self._offset = self._clock() - event.at
        match event:
            case Notice():
                self._note("[yellow]warning[/]" if event.warning else "note", event.message)
            case Replayed(same=False):
                self._note("[yellow]warning[/]", f"the replay from the base ended differently: {ending(event.verdict)}")
            case _:
                pass

    def tick(self) -> None:
        """Draw the present state."""
        if self._gone or self._race.outcome is not None or not self._race.repo:
            return
        with self._quiet_when_gone():
            if not self._live.is_started:
                self._live.start()
            self._frame += 1
            self._live.update(self._tree(), refresh=True)

    def close(self) -> None:
        """Leave one line in place of the tree."""
        if self._gone:
            return
        with self._quiet_when_gone():
            self._live.stop()
            if self._race.outcome not in (None, "error"):
                self._console.print(self._last_line(), no_wrap=True, overflow="ellipsis")

    def _note(self, label: str, message: str) -> None:
        with self._quiet_when_gone():
            self._console.print(f"{label}: {escape(clean(message))}")

    @contextmanager
    def _quiet_when_gone(self) -> Generator[None]:
        """A terminal that was closed ends the drawing, never the build."""
        try:
            yield
        except OSError:
            self._gone = True

    def _tree(self) -> Tree:
        now = self._clock() - self._offset
        title = Text(no_wrap=True, overflow="ellipsis")
        title.append(clean(self._race.repo), style="bold").append(f"  {self._race.phase}  {duration(now)}", "dim")
        tree = Tree(title, guide_style="dim")
        shown = self._most_telling(max(3, self._console.height - 4))
        for branch in shown:
            tree.add(self._row(branch, now))
        if rest := len(self._race.branches) - len(shown):
            tree.add(Text(f"{self._terminal.symbols.more} {rest} more", style="dim"))
        return tree

    def _most_telling(self, room: int) -> list[Branch]:
        """As many branches as there is room for, each always in the same place."""
        branches = list(self._race.branches.values())
        chosen = sorted(branches, key=lambda branch: _ORDER.index(branch.state))[:room]
        return [branch for branch in branches if branch in chosen]

    def _row(self, branch: Branch, now: float) -> Text:
        row = Text(no_wrap=True, overflow="ellipsis")
        row.append(f"{self._mark(branch.state)} {branch.id:<3} ", style=_STYLES[branch.state])
        row.append(f"{clean(branch.strategy)}", style="dim" if branch.state is State.CANCELLED else "")
        row.append(f" {self._terminal.symbols.waiting} {branch.base} ", style="dim")
        match branch.state:
            case State.RUNNING:
                row.append(
                    f" {branch.done + 1}/{branch.total + 1} {clean(branch.step)}  {duration(now - branch.since)}"
                )
            case State.WAITING:
                row.append(f" {branch.done}/{branch.total + 1}", style="dim")
            case State.COMMITTED | State.FAILED | State.CANCELLED:
                why = f": {clean(branch.why)}" if branch.why else ""
                row.append(f" {branch.state}{why}", style=_STYLES[branch.state])
        return row

    def _mark(self, state: State) -> str:
        symbols = self._terminal.symbols
        frames = _FRAMES if self._terminal.unicode else _ASCII_FRAMES
        return {
            State.RUNNING: frames[self._frame % len(frames)],
            State.COMMITTED: symbols.won,
            State.FAILED: symbols.lost,
            State.CANCELLED: symbols.cancelled,
            State.WAITING: symbols.waiting,
        }[state]

    def _last_line(self) -> Text:
        winner = self._race.winner
        won = self._race.outcome == "committed"
        line = Text(f"{self._mark(State.COMMITTED if won else State.FAILED)} ", style="green" if won else "red")
        line.append(clean(self._race.repo), style="bold")
        line.append(f" {self._race.outcome} after {duration(self._race.seconds)}")
        if winner:
            line.append(f": {winner.id} {clean(winner.strategy)} on {winner.base}")
        line.append(f", of {plural(len(self._race.branches), 'candidate')}", style="dim")
        return line
