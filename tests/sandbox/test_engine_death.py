"""What an engine leaves that is killed, or interrupted, in the middle of its work: nothing for long."""

from __future__ import annotations

import signal
import subprocess
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

import anyio
import pytest

from specbuild.errors import SandboxError
from specbuild.sandbox.cgroups import groups_anywhere, hierarchies
from specbuild.sandbox.contract import RootfsTar
from specbuild.sandbox.overlay import OverlayBackend
from specbuild.testing.leftovers import leftovers
from specbuild.testing.remote import Remote
from specbuild.testing.trial import new_marker, out, processes, until

pytestmark = [pytest.mark.sandbox]

STUBBORN = "trap '' TERM INT HUP; (setsid sleep $1 &); (setsid sh -c 'trap \"\" TERM; sleep '$1 &); echo up; sleep $1"


@contextmanager
def at_work(store: Path, tiny: Path, marker: str) -> Generator[subprocess.Popen[str]]:
    """An engine in the middle of a command; it has to be ended inside."""
    with Remote.start(store, RootfsTar(tiny)) as engine:
        engine.begin(STUBBORN, marker, timeout=3600)
        while len(sleepers(marker)) < 3:
            pass
        yield engine.process
        assert engine.process.stdin is not None
        engine.process.stdin.close()  # a thread of an engine that was interrupted twice may still read from it
        with pytest.raises(SandboxError, match="has ended"):
            engine.receive()


def sleepers(marker: str) -> set[int]:
    """Those that do nothing but sleep, as against shells on their way to start one."""
    return {pid for pid in processes(marker) if name_of_process(pid) == "sleep"}


def name_of_process(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/comm").read_text().strip()
    except (FileNotFoundError, ProcessLookupError):  # it has ended meanwhile
        return ""


async def next_session(store: Path) -> None:
    """Nothing but open and close one: that is when a dead engine's things are removed."""
    async with OverlayBackend(store):
        pass


async def test_a_killed_engine_takes_its_commands_with_it(tiny: Path, tmp_path: Path) -> None:
    marker = new_marker()
    with at_work(tmp_path, tiny, marker) as engine:
        engine.kill()
    await until(lambda: processes(marker) == [])
    await next_session(tmp_path)


async def test_the_next_session_removes_what_a_killed_engine_has_left(tiny: Path, tmp_path: Path) -> None:
    marker = new_marker()
    with at_work(tmp_path, tiny, marker) as engine:
        engine.kill()
    async with OverlayBackend(tmp_path) as backend:
        assert processes(marker) == []
        base = await backend.import_base("base", RootfsTar(tiny))
        async with backend.fork(base) as box:
            assert await out(box, "cat /etc/hostname") == "tiny"
    assert leftovers(tmp_path) == []


async def test_a_session_beside_it_reaps_nothing_of_an_engine_at_work(tiny: Path, tmp_path: Path) -> None:
    marker = new_marker()
    with at_work(tmp_path, tiny, marker) as engine:
        before = sleepers(marker)
        async with OverlayBackend(tmp_path) as backend:
            await backend.prune(everything=True)
        assert sleepers(marker) == before
        engine.kill()
    await next_session(tmp_path)


async def test_an_interrupted_engine_cleans_up_by_itself(tiny: Path, tmp_path: Path) -> None:
    marker = new_marker()
    with at_work(tmp_path, tiny, marker) as engine:
        engine.send_signal(signal.SIGINT)
    assert processes(marker) == []
    assert leftovers(tmp_path) == []


async def interrupt_until_it_ends(engine: subprocess.Popen[str]) -> None:
    """As somebody who presses Ctrl-C until something happens.

    The second one may be raised where the event loop forgets a task or a thread, for which the process then waits.
    """
    assert engine.stdin is not None
    engine.stdin.close()  # a thread may still read from it
    while engine.poll() is None:
        engine.send_signal(signal.SIGINT)
        await anyio.sleep(1)


async def test_an_engine_interrupted_twice_leaves_nothing_that_runs(tiny: Path, tmp_path: Path) -> None:
    marker = new_marker()
    with at_work(tmp_path, tiny, marker) as engine:
        engine.send_signal(signal.SIGINT)
        await anyio.sleep(0.01)
        await interrupt_until_it_ends(engine)
    await until(lambda: processes(marker) == [])
    await next_session(tmp_path)
    assert leftovers(tmp_path) == []


async def test_control_groups_of_a_killed_engine_are_removed_by_the_next(tiny: Path, tmp_path: Path) -> None:
    marker = new_marker()
    with at_work(tmp_path, tiny, marker) as engine:
        groups = {path for pid in processes(marker) for path in _groups_of(pid)}
        engine.kill()
    await next_session(tmp_path)
    assert not any(path.exists() for path in groups)


def _groups_of(pid: int) -> list[Path]:
    folders = [path for hierarchy in hierarchies() for path in groups_anywhere(hierarchy.root)]
    return [folder for folder in folders if str(pid) in _members(folder)]


def _members(group: Path) -> list[str]:
    try:
        return (group / "cgroup.procs").read_text().split()
    except OSError:  # another engine's, which has removed it meanwhile
        return []
