"""A race in real sandboxes: the loser is gone when the winner is there, whatever way the race ends."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

import anyio
import pytest

from specbuild.events import CandidateEnded, Event, StepStarted
from specbuild.recipe import BaseRef, Check, Level, Recipe, Step, StepKind
from specbuild.sandbox.contract import Command, RootfsTar
from specbuild.sandbox.overlay import OverlayBackend
from specbuild.speculate import race
from specbuild.testing.fakes import Recorder, ScriptWorkshop
from specbuild.testing.leftovers import leftovers, stray_processes
from specbuild.testing.remote import interpreter
from specbuild.testing.trial import new_marker, processes
from specbuild.tree import Entry

pytestmark = [pytest.mark.sandbox, pytest.mark.root]

STUBBORN = "trap '' TERM INT HUP; (setsid sh -c \"trap '' TERM; exec sleep {m}\" &) ; touch /begun; exec sleep {m}"
"""Ignores signals and has a process in a session of its own."""


def entries(better: str, worse: str) -> list[Entry]:
    def entry(name: str, script: str, prior: float, order: int) -> Entry:
        steps = (Step(kind=StepKind.DEPENDENCIES, run=script),)
        check = Check(level=Level.TESTS, runner="command", step=Step(kind=StepKind.TEST, run="true"))
        base = BaseRef(name="tiny", digest="sha256:tiny")
        return Entry(name, Recipe(base=base, steps=steps, check=check), prior, 10.0, order)

    return [entry("better", better, 0.9, 0), entry("worse", worse, 0.3, 1)]


class Witness(Recorder):
    """Looks at the machine at the moment of the commit, and how long what it sees needs to be gone."""

    def __init__(self, marker: str) -> None:
        super().__init__()
        self._marker = marker
        self.seen_before: list[int] = []

    def emit(self, event: Event) -> None:
        super().emit(event)
        if isinstance(event, StepStarted) and event.step_kind == "test":
            self.seen_before = processes(self._marker)


async def test_a_better_ranked_candidate_that_hangs_loses_and_is_gone_at_the_commit(tmp_path: Path, tiny: Path) -> None:
    marker = new_marker()
    witness = Witness(marker)
    store = tmp_path / "store"
    async with OverlayBackend(store) as backend:
        result = await race(
            entries(STUBBORN.format(m=marker), "sleep 0.5"),
            backend,
            ScriptWorkshop(backend, source=RootfsTar(tiny)),
            slots=2,
            reporter=witness,
        )
        assert processes(marker) == []
        assert result.winner is not None
        assert result.winner.id == "worse"
        assert len(witness.seen_before) == 2, (
            "the loser was running, in both of its sessions, while the winner verified"
        )
    assert leftovers(store) == []
    ends = {event.candidate: event.end for event in witness.events if isinstance(event, CandidateEnded)}
    assert ends == {"better": "cancelled", "worse": "committed"}


async def test_the_winners_files_are_there_and_the_losers_are_not(tmp_path: Path, tiny: Path) -> None:
    async with OverlayBackend(tmp_path / "store") as backend:
        result = await race(
            entries("echo loser > /who; sleep 60", "echo winner > /who"),
            backend,
            ScriptWorkshop(backend, source=RootfsTar(tiny)),
            slots=2,
            reporter=Recorder(),
        )
        assert result.winner is not None
        winner = await backend.find(result.winner.recipe.checkpoints[-1])
        assert winner is not None
        async with backend.fork(winner) as sandbox:
            done = await sandbox.run(Command(("/bin/cat", "/who")))
        assert done.tail.strip() == "winner"


async def test_a_cancelled_race_leaves_nothing(tmp_path: Path, tiny: Path) -> None:
    marker = new_marker()
    store = tmp_path / "store"
    hang = STUBBORN.format(m=marker)
    async with OverlayBackend(store) as backend:
        with anyio.move_on_after(1.5) as scope:
            await race(
                entries(hang, "true;" + hang),
                backend,
                ScriptWorkshop(backend, source=RootfsTar(tiny)),
                slots=2,
                reporter=Recorder(),
            )
        assert scope.cancelled_caught
        assert processes(marker) == []
    assert leftovers(store) == []


RACER = """
import sys
from functools import partial
from pathlib import Path
import anyio
from specbuild.cli.interrupts import run_to_end
from specbuild.cli.failures import Interrupted
from specbuild.cli.terminal import Terminal
from specbuild.recipe import BaseRef, Check, Level, Recipe, Step, StepKind
from specbuild.sandbox.contract import RootfsTar
from specbuild.sandbox.overlay import OverlayBackend
from specbuild.speculate import race
from specbuild.testing.fakes import Recorder, ScriptWorkshop
from specbuild.tree import Entry

store, tar, *scripts = sys.argv[1:]

def entry(order, script):
    check = Check(level=Level.TESTS, runner="command", step=Step(kind=StepKind.TEST, run="true"))
    steps = (Step(kind=StepKind.BUILD, run=script),)
    recipe = Recipe(base=BaseRef(name="tiny", digest="sha256:tiny"), steps=steps, check=check)
    return Entry(str(order), recipe, 0.5, 10.0, order)

async def main():
    async with OverlayBackend(Path(store)) as backend:
        workshop = ScriptWorkshop(backend, source=RootfsTar(Path(tar)))
        entries = [entry(order, script) for order, script in enumerate(scripts)]
        await race(entries, backend, workshop, slots=2, reporter=Recorder())

try:
    run_to_end(main, Terminal(sys.stderr))
except Interrupted:
    sys.exit(130)
"""


@contextmanager
def racing(store: Path, tiny: Path, marker: str) -> Generator[subprocess.Popen[bytes]]:
    """An engine in a process of its own, with two stubborn candidates that run."""
    python, path = interpreter(None)
    hang = STUBBORN.format(m=marker)
    command = [python, "-c", RACER, str(store), str(tiny), hang, "true;" + hang]
    process = subprocess.Popen(command, env={**os.environ, "PYTHONPATH": path}, stderr=subprocess.DEVNULL)
    try:
        wait_for(lambda: len(processes(marker)) == 4, "both candidates run")
        yield process
    finally:
        process.kill()
        process.wait()


def wait_for(condition: object, what: str, seconds: float = 60.0) -> None:
    deadline = time.monotonic() + seconds
    assert callable(condition)
    while not condition():
        assert time.monotonic() < deadline, f"within {seconds:.0f} s: {what}"
        time.sleep(0.01)


@pytest.mark.parametrize("presses", [1, 2])
def test_ctrl_c_once_or_twice_leaves_nothing(tmp_path: Path, tiny: Path, presses: int) -> None:
    marker = new_marker()
    store = tmp_path / "store"
    with racing(store, tiny, marker) as engine:
        for _ in range(presses):
            engine.send_signal(signal.SIGINT)
            time.sleep(0.02)
        assert engine.wait(60) == 130
    assert processes(marker) == []
    assert leftovers(store) == []


async def test_after_kill_9_of_the_engine_its_processes_end_and_the_next_session_clears_the_rest(
    tmp_path: Path, tiny: Path
) -> None:
    marker = new_marker()
    store = tmp_path / "store"
    with racing(store, tiny, marker) as engine:
        engine.send_signal(signal.SIGKILL)
        engine.wait()
        wait_for(lambda: not processes(marker), "the processes of both candidates have ended")
    assert stray_processes() == []
    async with OverlayBackend(store):
        pass
    assert leftovers(store) == []
