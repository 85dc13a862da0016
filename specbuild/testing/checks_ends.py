"""Conformance: nothing outlives a Command, whatever way it ends, and no limit can be passed."""

from __future__ import annotations

from pathlib import Path

import anyio
import anyio.lowlevel
import pytest

from specbuild.errors import SandboxError
from specbuild.sandbox.contract import End, Limits, Sandbox
from specbuild.testing.trial import Check, Trial, attempt, new_key, new_marker, out, processes, shell, until

MIB = 1 << 20

STUBBORN = """
trap '' TERM INT HUP QUIT
sleep "$1" &
(setsid sleep "$1" &)
(setsid sh -c 'trap "" TERM INT HUP; sleep "$0"; sleep "$0"' "$1" &)
(setsid sh -c '(setsid sleep "$0" &) & nohup sleep "$0"' "$1" > /dev/null 2>&1 &)
sh -c 'trap "" TERM; sleep "$0"' "$1" | cat &
echo up
"""
"""Starts processes that ignore signals, leave the session, are orphans, and hold on to the output."""


async def _stubborn(box: Sandbox, marker: str, started: anyio.Event) -> None:
    await box.run(shell(f"{STUBBORN} wait; sleep $1", marker), on_line=lambda _: started.set())


async def background_processes_end_with_the_command(trial: Trial) -> None:
    marker = new_marker()
    async with trial.fork() as box:
        with anyio.fail_after(30):
            done = await box.run(shell(STUBBORN, marker))
        assert done.ok
        assert processes(marker) == []
        assert "sleep" not in await out(box, "cat /proc/[0-9]*/cmdline 2>/dev/null | tr '\\0' ' '; echo end")


async def a_daemon_does_not_write_on(trial: Trial) -> None:
    async with trial.fork() as box:
        daemon = "(setsid sh -c 'while :; do echo tick >> /ticks; done' > /dev/null 2>&1 &)"
        await out(box, f"{daemon}; until [ -s /ticks ]; do sleep 0.01; done")
        first = await out(box, "wc -c < /ticks")
        assert await out(box, "sleep 0.1; wc -c < /ticks") == first


async def time_ends_everything(trial: Trial) -> None:
    marker = new_marker()
    async with trial.fork() as box:
        done = await box.run(shell(f"{STUBBORN} sleep $1", marker, timeout=1.5))
        assert done.end is End.TIMEOUT
        assert not done.ok
        assert "up" in done.tail
        assert "1.5" in done.note
        assert done.seconds >= 1.5
        assert processes(marker) == []
        assert await out(box, "echo on") == "on"


async def silence_ends_everything(trial: Trial) -> None:
    marker = new_marker()
    async with trial.fork() as box:
        done = await box.run(shell(f"{STUBBORN} sleep $1", marker, silence=0.5))
        assert done.end is End.SILENT
        assert processes(marker) == []


async def output_breaks_the_silence(trial: Trial) -> None:
    async with trial.fork() as box:
        done = await box.run(shell("for i in $(seq 30); do printf .; sleep 0.2; done", silence=5.0))
        assert done.ok
        assert done.seconds > 5.0


async def cancelling_ends_everything(trial: Trial) -> None:
    marker = new_marker()
    started = anyio.Event()
    async with trial.session() as (backend, base):
        async with anyio.create_task_group() as group:

            async def branch() -> None:
                async with backend.fork(base) as box:
                    await _stubborn(box, marker, started)

            group.start_soon(branch)
            await started.wait()
            assert len(processes(marker)) >= 5
            group.cancel_scope.cancel()
        assert processes(marker) == []
    assert trial.leftovers() == []


async def a_cancelled_command_is_gone_before_run_returns(trial: Trial) -> None:
    marker = new_marker()
    async with trial.fork() as box:
        started = anyio.Event()
        async with anyio.create_task_group() as group:
            group.start_soon(_stubborn, box, marker, started)
            await started.wait()
            group.cancel_scope.cancel()
        assert processes(marker) == []
        assert await out(box, "echo still usable") == "still usable"


async def what_a_cancelled_command_has_used_is_counted(trial: Trial) -> None:
    busy = "head -c 3000000 /dev/zero > /written; i=0; while [ $i -lt 200000 ]; do i=$((i+1)); done; echo up; sleep $1"
    async with trial.fork() as box:
        assert box.spent.cpu_seconds == 0.0
        started = anyio.Event()
        async with anyio.create_task_group() as group:
            group.start_soon(lambda: box.run(shell(busy, new_marker()), on_line=lambda _: started.set()))
            await started.wait()
            group.cancel_scope.cancel()
        cancelled = box.spent
        # Without control groups the kernel tells only of processes that somebody has waited for.
        assert cancelled.cpu_seconds > (0.01 if trial.bounds else 0.0)
        assert 3_000_000 <= cancelled.written_bytes < 5_000_000
    assert box.spent == cancelled


async def what_is_spent_is_the_sum_of_all_commands(trial: Trial) -> None:
    async with trial.fork() as box:
        done = [
            await attempt(box, "head -c 2000000 /dev/zero > /first; exit 3"),
            await box.run(shell("head -c 1000000 /dev/zero > /second; sleep 60", timeout=0.5)),
            await attempt(box, "rm /first"),
        ]
    assert abs(box.spent.cpu_seconds - sum(one.cpu_seconds for one in done)) < 0.001
    assert box.spent.written_bytes == sum(one.written_bytes for one in done)
    assert (box.spent.peak_memory_bytes or 0) == max(one.peak_memory_bytes or 0 for one in done)


async def cancelling_at_any_moment_leaves_nothing(trial: Trial) -> None:
    marker = new_marker()
    async with trial.session() as (backend, base):

        async def branch(seconds: float) -> None:
            with anyio.move_on_after(seconds):
                async with backend.fork(base) as box:
                    await box.run(shell("(setsid sleep $1 &); sleep $1", marker))

        for step in range(30):
            await branch(step * 0.003)
            assert processes(marker) == []
        async with anyio.create_task_group() as group:
            for step in range(30):
                group.start_soon(branch, step * 0.01)
        assert processes(marker) == []
        async with backend.fork(base) as box:
            assert await out(box, "echo fine") == "fine"
    assert trial.leftovers() == []


async def cancelling_a_freeze_leaves_all_or_nothing(trial: Trial) -> None:
    async with trial.session() as (backend, base):
        for step in range(15):
            key = new_key()
            with anyio.move_on_after(step * 0.001):
                async with backend.fork(base) as box:
                    await box.write_file("/file", b"x" * 1000)
                    with anyio.CancelScope(shield=True):
                        await out(box, "echo more >> /file")
                    await box.freeze(key)
            if (state := await backend.find(key)) is not None:
                async with backend.fork(state) as fork:
                    assert len(await fork.read_file("/file")) == 1005
    assert trial.leftovers() == []


async def an_exception_discards_the_sandbox(trial: Trial) -> None:
    class Oops(Exception):  # noqa: N818
        pass

    async with trial.session() as (backend, base):

        async def fail() -> None:
            async with backend.fork(base) as box:
                await out(box, "echo x > /file")
                raise Oops

        with pytest.raises(Oops):
            await fail()
        async with backend.fork(base) as box:
            assert await out(box, "ls /file 2>/dev/null || echo none") == "none"
    assert trial.leftovers() == []


async def a_sandbox_ends_with_its_fork(trial: Trial) -> None:
    async with trial.session() as (backend, base):
        async with backend.fork(base) as box:
            pass
        with pytest.raises(SandboxError):
            await box.run(shell("true"))
        with pytest.raises(SandboxError):
            await box.freeze(new_key())


async def nothing_is_left_of_an_ordinary_session(trial: Trial) -> None:
    marker = new_marker()
    async with trial.session() as (backend, base):
        async with backend.fork(base) as box:
            await box.run(shell(STUBBORN, marker))
            state = await box.freeze(new_key())
        async with backend.fork(state) as box:
            await out(box, "echo x > /y; mkdir -m 0 /locked; mkdir /other; echo z > /other/z; chmod 0 /other")
    assert processes(marker) == []
    assert trial.leftovers() == []


async def too_much_memory_is_told(trial: Trial) -> None:
    if "memory" not in trial.bounds:
        return
    async with trial.fork(Limits(memory_bytes=96 * MIB)) as box:
        done = await attempt(box, "perl -e '$x = \"a\" x (400 << 20); print length $x'")
        assert done.end is End.OUT_OF_MEMORY
        assert not done.ok
        assert "96" in done.note
        assert await out(box, "echo still usable") == "still usable"


async def memory_filled_with_files_counts(trial: Trial) -> None:
    if "memory" not in trial.bounds:
        return
    async with trial.fork(Limits(memory_bytes=96 * MIB)) as box:
        done = await attempt(box, "head -c 400000000 /dev/zero > /dev/shm/big && echo written")
        assert not done.ok
        assert "written" not in done.tail


async def too_many_processes_are_told(trial: Trial) -> None:
    if "processes" not in trial.bounds:
        return
    marker = new_marker()
    async with trial.fork(Limits(processes=64)) as box:
        done = await box.run(shell("i=0; while [ $i -lt 300 ]; do sleep $1 & i=$((i+1)); done; echo made", marker))
        assert done.end is End.OUT_OF_PROCESSES
        assert "64" in done.note
        assert processes(marker) == []
        assert await out(box, "echo still usable") == "still usable"


async def too_many_bytes_are_told(trial: Trial) -> None:
    async with trial.fork(Limits(disk_bytes=32 * MIB)) as box:
        done = await box.run(shell("while :; do head -c 1000000 /dev/zero; sleep 0.01; done > /big", timeout=60))
        assert done.end is End.OUT_OF_DISK
        assert "32" in done.note
        assert done.written_bytes >= 32 * MIB


async def limits_that_are_not_reached_are_not_told(trial: Trial) -> None:
    async with trial.fork(Limits(memory_bytes=512 * MIB, processes=200, disk_bytes=64 * MIB, cpu_weight=50)) as box:
        done = await attempt(box, "head -c 1000000 /dev/zero > /x; echo fine; exit 4")
        assert (done.end, done.exit_code, done.note) == (End.EXITED, 4, "")


async def the_share_of_the_cpu_can_change_while_running(trial: Trial) -> None:
    async with trial.fork() as box:
        started = anyio.Event()

        async def reweigh() -> None:
            await started.wait()
            for weight in (1, 10_000, 100):
                await box.set_cpu_weight(weight)

        async with anyio.create_task_group() as group:
            group.start_soon(reweigh)
            done = await box.run(shell("echo up; sleep 0.2; echo end"), on_line=lambda _: started.set())
            assert done.ok
        await box.set_cpu_weight(200)


async def the_share_of_the_cpu_can_change_at_the_very_end_of_a_command(trial: Trial) -> None:
    async with trial.fork() as box:
        over = anyio.Event()

        async def reweigh() -> None:
            while not over.is_set():
                for weight in (1, 10_000):
                    await box.set_cpu_weight(weight)
                    await anyio.lowlevel.checkpoint()

        async with anyio.create_task_group() as group:
            group.start_soon(reweigh)
            for _ in range(25):
                assert (await box.run(shell("true"))).ok
            over.set()


async def a_log_that_cannot_be_written_is_our_failure(trial: Trial) -> None:
    async with trial.fork() as box:
        with pytest.raises((SandboxError, OSError)):
            await box.run(shell("echo x"), log=Path("/proc/no/such/log"))
        assert await out(box, "echo still usable") == "still usable"


async def an_error_of_the_line_sink_is_raised_and_leaves_nothing(trial: Trial) -> None:
    marker = new_marker()

    def sink(_line: str) -> None:
        raise KeyError("sink")

    async with trial.fork() as box:
        with pytest.raises((KeyError, ExceptionGroup)):
            await box.run(shell(f"{STUBBORN} sleep $1", marker), on_line=sink)
        await until(lambda: processes(marker) == [])


CHECKS: tuple[Check, ...] = (
    background_processes_end_with_the_command,
    a_daemon_does_not_write_on,
    time_ends_everything,
    silence_ends_everything,
    output_breaks_the_silence,
    cancelling_ends_everything,
    a_cancelled_command_is_gone_before_run_returns,
    what_a_cancelled_command_has_used_is_counted,
    what_is_spent_is_the_sum_of_all_commands,
    cancelling_at_any_moment_leaves_nothing,
    cancelling_a_freeze_leaves_all_or_nothing,
    an_exception_discards_the_sandbox,
    a_sandbox_ends_with_its_fork,
    nothing_is_left_of_an_ordinary_session,
    too_much_memory_is_told,
    memory_filled_with_files_counts,
    too_many_processes_are_told,
    too_many_bytes_are_told,
    limits_that_are_not_reached_are_not_told,
    the_share_of_the_cpu_can_change_while_running,
    the_share_of_the_cpu_can_change_at_the_very_end_of_a_command,
    a_log_that_cannot_be_written_is_our_failure,
    an_error_of_the_line_sink_is_raised_and_leaves_nothing,
)
