"""Whole races of random scripts in real sandboxes, with cancellations, limits, exceptions and kills at any moment.

`SPECBUILD_EXAMPLES` sets how many are tried, and one more for every five with an engine that is killed.
`SPECBUILD_SEED` sets which: the same number of a seed is the same play, though timing is never quite the same.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from random import Random

import anyio
import anyio.to_thread
import pytest

from specbuild.errors import SandboxError
from specbuild.events import Event, StepEnded
from specbuild.outcome import Outcome
from specbuild.recipe import BaseRef, Recipe, Step, checkpoint_root
from specbuild.sandbox.cgroups import groups_anywhere, hierarchies
from specbuild.sandbox.claims import file_name
from specbuild.sandbox.contract import Command, RootfsTar
from specbuild.sandbox.overlay import OverlayBackend
from specbuild.speculate import RaceResult
from specbuild.testing.fakes import Recorder
from specbuild.testing.leftovers import descendants, leftovers, stray_processes
from specbuild.testing.promises import check_promises, check_story
from specbuild.testing.remote import interpreter
from specbuild.testing.staged import BASES, Play, draw, mark_of
from specbuild.testing.trial import new_key, new_marker, processes
from specbuild.tree import Edge, EdgeState

pytestmark = [pytest.mark.sandbox, pytest.mark.root, pytest.mark.slow]

EXAMPLES = int(os.environ.get("SPECBUILD_EXAMPLES", "16"))
SEED = os.environ.get("SPECBUILD_SEED", "0")
Print = frozenset[tuple[str, int, int, int, int, int]]


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory, tiny: Path) -> Iterator[Path]:
    """A store with all bases, which no race may change."""
    root = tmp_path_factory.mktemp("store")
    anyio.run(anyio.sleep, 0, backend_options={"use_uvloop": True})  # it keeps a pipe for the rest of the process
    before = anyio.run(_with_bases, root, tiny)
    yield root
    assert anyio.run(_with_bases, root, tiny) == before, "bases stay as they are"


async def _with_bases(root: Path, tiny: Path) -> list[Print]:
    async with OverlayBackend(root) as backend:
        for key in base_keys():
            await backend.import_base(key, RootfsTar(tiny))
    return [look_at(root, key) for key in base_keys()]


def base_keys() -> list[str]:
    return [checkpoint_root(BaseRef(name=name, digest=f"sha256:{name}")) for name in BASES]


def layer(store: Path, key: str) -> Path:
    return store / "mapped" / "layers" / file_name(key) / "diff"


def look_at(store: Path, key: str) -> Print:
    """Everything of a layer that changes with any write to it."""
    root = layer(store, key)
    found = [(path, path.lstat()) for path in (root, *root.rglob("*"))]
    return frozenset(
        (str(path.relative_to(root)), info.st_ino, info.st_mode, info.st_size, info.st_mtime_ns, info.st_ctime_ns)
        for path, info in found
    )


class ReporterError(Exception):
    """What a reporter raises that is to fail."""


@dataclass
class Witness(Recorder):
    """Looks at each state at the moment at which it has been frozen, and perhaps breaks."""

    store: Path
    breaks_at: int | None = None
    """Number of the event at which it raises ReporterError, and from then on."""
    seen: dict[str, Print] = field(default_factory=dict[str, Print])

    def __post_init__(self) -> None:
        super().__init__()

    def emit(self, event: Event) -> None:
        super().emit(event)
        if self.breaks_at is not None and len(self.events) >= self.breaks_at:
            raise ReporterError
        if isinstance(event, StepEnded) and event.ok and layer(self.store, event.node).exists():
            self.seen[event.node] = look_at(self.store, event.node)


@dataclass
class Vandal:
    """Kills processes at random moments."""

    random: Random
    store: Path
    marker: str
    helpers_too: bool
    struck: int = 0

    async def strike(self) -> None:
        while True:
            await anyio.sleep(self.random.uniform(0.01, 0.3))
            await anyio.to_thread.run_sync(self._kill_one)

    def _kill_one(self) -> None:
        helpers = helpers_of(self.store)
        below = {pid: began(pid) for helper in helpers for pid in descendants(helper)}
        chosen = helpers if self.helpers_too and self.random.random() < 0.3 else sorted(below)
        if chosen:
            pid = self.random.choice(chosen)
            self.struck += kill_surely(pid, below.get(pid) or began(pid))


def helpers_of(store: Path) -> list[int]:
    """The helpers of all sessions of this process that are open on a store."""
    found: list[int] = []
    for session in (store / "sessions").iterdir():
        about = json.loads(session.read_text().strip() or "{}")
        found += [pid for pid, _ in about.get("helpers", []) if about["pid"] == os.getpid()]
    return [pid for pid in found if pid in descendants(os.getpid())]


def began(pid: int) -> str:
    """When a process began; nothing if it has ended."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[19]
    except OSError:
        return ""


def kill_surely(pid: int, since: str) -> bool:
    """Kill a process, and none that has its number since."""
    try:
        pidfd = os.pidfd_open(pid)
    except ProcessLookupError:
        return False
    try:
        if not since or began(pid) != since:
            return False
        signal.pidfd_send_signal(pidfd, signal.SIGKILL)
    except ProcessLookupError:
        return False
    finally:
        os.close(pidfd)
    return True


@pytest.mark.parametrize("number", range(EXAMPLES))
def test_whatever_happens_a_race_keeps_its_promises_and_leaves_nothing(store: Path, tiny: Path, number: int) -> None:
    random = Random(f"{SEED}-{number}")  # noqa: S311 - repeatable chance is the point
    loop = {"use_uvloop": random.random() < 0.5}
    before = descriptors()
    anyio.run(race_once, store, tiny, random, backend_options=loop)
    assert leftovers(store) == []
    assert descriptors() == before
    assert sorted(path.name for path in (store / "mapped/layers").iterdir()) == sorted(map(file_name, base_keys()))


async def race_once(store: Path, tiny: Path, random: Random) -> None:
    play, marker = draw(random), new_marker()
    cancelled_after = random.uniform(0.0, 1.5) if random.random() < 0.25 else None
    witness = Witness(store, random.randint(1, 60) if random.random() < 0.2 else None)
    vandal = Vandal(random, store, marker, helpers_too=random.random() < 0.3)
    violent = random.random() < 0.4
    result: RaceResult | None = None
    async with OverlayBackend(store) as backend, anyio.create_task_group() as tasks:
        if violent:
            tasks.start_soon(vandal.strike)
        try:
            with anyio.move_on_after(cancelled_after):
                result = await play.race(backend, RootfsTar(tiny), marker, witness)
        except* ReporterError:
            assert witness.breaks_at is not None
        except* SandboxError:
            assert vandal.struck or any(act.breaks for act in play.acts.values())
        tasks.cancel_scope.cancel()
        left = [*processes(marker), *live_folders(store), *own_groups()]
        assert left == [], "as soon as the race is over nothing of it is there"
        if result is not None:
            check_promises(result)
            check_story(witness.events, result)
            check_states(store, result, witness)
            await check_winner(backend, store, result, play)
            await check_nothing_is_done_again(backend, result)
    if vandal.struck and vandal.helpers_too:
        async with OverlayBackend(store):  # what a killed helper could not remove is the next session's to find
            pass


def descriptors() -> list[str]:
    """What this process has open, in words."""
    found: list[str] = []
    for entry in Path("/proc/self/fd").iterdir():
        with contextlib.suppress(FileNotFoundError):  # that by which the folder is read
            found.append(f"{entry.name} {entry.readlink()}")
    return sorted(found)


def live_folders(store: Path) -> list[Path]:
    return list((store / "mapped/live").iterdir())


def own_groups() -> list[Path]:
    folders = [path for hierarchy in hierarchies() for path in groups_anywhere(hierarchy.root)]
    return [path for path in folders if path.name.partition("@")[2].split("-")[1:2] == [str(os.getpid())]]


def check_states(store: Path, result: RaceResult, witness: Witness) -> None:
    """No state has changed since it was frozen, and each holds the mark of its own edge alone."""
    for key, seen in witness.seen.items():
        assert look_at(store, key) == seen
    for entry in result.tree.entries():
        for edge in steps_of(result, entry.id):
            twin = result.tree.edge(edge.twin) if edge.twin else None
            for one in (edge, twin):
                if one is not None and one.state is EdgeState.DONE and not (one is edge and is_grafted(store, edge)):
                    marks = layer(store, one.key) / "marks"
                    assert [path.name for path in marks.iterdir()] == [mark_by(one)]
                    assert (marks / mark_by(one) / "done").exists()
    for done in result.executions:
        if done.outcome is Outcome.GRAFTED:
            edge = result.tree.edge(done.key)
            assert is_grafted(store, edge)
            assert result.tree.edge(edge.twin or "").state is EdgeState.DONE


def steps_of(result: RaceResult, recipe: str) -> list[Edge]:
    return [result.tree.edge(key) for key in result.tree.path(recipe)[1:-1]]


def is_grafted(store: Path, edge: Edge) -> bool:
    """Whether a state is another one with what the edge's twin has changed: nothing has been run to make it."""
    return edge.twin is not None and not any(layer(store, edge.key).iterdir())


def mark_by(edge: Edge) -> str:
    """The mark of the command that is the work of an edge."""
    assert isinstance(edge.work, Step)
    return mark_of(edge.parent or "", edge.work.run)


async def check_winner(backend: OverlayBackend, store: Path, result: RaceResult, play: Play) -> None:
    """The winner's state holds the marks of its path, and nothing of anybody else's; packages are there in order."""
    if result.winner is None:
        return
    recipe, edges = result.winner.recipe, steps_of(result, result.winner.id)
    sources = [result.tree.edge(edge.twin or "") if is_grafted(store, edge) else edge for edge in edges]
    marks = sorted(map(mark_by, sources))
    assert await shown(
        backend, recipe, "cd /marks; for m in *; do [ -e $m/begun ] && [ -e $m/done ] && echo $m; done"
    ) == (marks)
    last = [mark_by(edge) for edge in edges if isinstance(edge.work, Step) and "apt" not in edge.work.caches]
    assert await shown(backend, recipe, "ls /only") == last[-1:]
    packages = [step.run for step in recipe.steps if play.adds_to_database(step.run)]
    assert await shown(backend, recipe, "cat /db/status") == packages


async def shown(backend: OverlayBackend, recipe: Recipe, script: str) -> list[str]:
    """The lines that a script prints in a fork of what a Recipe has come to; none if it fails."""
    leaf = await backend.find(recipe.checkpoints[-1])
    assert leaf is not None
    async with backend.fork(leaf) as box:
        done = await box.run(Command(("/bin/sh", "-c", script), env={"PATH": "/usr/bin:/bin"}, network=False))
    return done.tail.splitlines() if done.ok else []


async def check_nothing_is_done_again(backend: OverlayBackend, result: RaceResult) -> None:
    """What was done aside, before the turn of a Step had come, is taken over wherever that can be."""
    ended = {done.key: done for done in result.executions if done.outcome in (Outcome.OK, Outcome.GRAFTED)}
    for done in ended.values():
        edge = result.tree.edge(done.key)
        aside = ended.get(edge.twin or "")
        if aside is not None and aside.end <= done.start and done.outcome is Outcome.OK:
            onto, side = await backend.find(edge.parent or ""), await backend.find(aside.key)
            assert onto is not None
            assert side is not None
            assert await backend.graft(onto, side, new_key()) is None


@pytest.mark.parametrize("number", range(max(1, EXAMPLES // 5)))
def test_an_engine_that_is_killed_in_a_race_leaves_nothing_to_the_next_session(
    store: Path, tiny: Path, number: int
) -> None:
    random, marker = Random(f"{SEED}-kill-{number}"), new_marker()  # noqa: S311
    python, path = interpreter(None)
    command = [python, "-m", "specbuild.testing.staged", str(store), str(tiny), f"{SEED}-{number}", marker]
    with subprocess.Popen(command, env={**os.environ, "PYTHONPATH": path}, stdout=subprocess.PIPE, cwd="/") as engine:
        assert engine.stdout is not None
        assert engine.stdout.readline() == b"begun\n"
        time.sleep(random.uniform(0.0, 1.0))
        engine.kill()
    anyio.run(next_session, store, marker)
    assert leftovers(store) == []
    assert sorted(path.name for path in (store / "mapped/layers").iterdir()) == sorted(map(file_name, base_keys()))


async def next_session(store: Path, marker: str) -> None:
    async with OverlayBackend(store):
        assert processes(marker) == []
        assert live_folders(store) == []
    assert stray_processes() == []
