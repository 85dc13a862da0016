"""Conformance: how a Command is started, what it is given, what comes back."""

from __future__ import annotations

import os
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import replace

from specbuild.sandbox.contract import Command, End
from specbuild.testing.trial import ENVIRONMENT, Check, Trial, attempt, out, resident_bytes, shell

TAIL = 64 << 10
"""The most that is kept of the output in memory, by the contract."""


async def the_environment_is_exactly_what_was_given(trial: Trial) -> None:
    given = {"PATH": "/usr/bin", "EMPTY": "", "ODD": "a=b 'c' \"d\" $e", "UNICODE": "ü"}
    async with _host_variable(), trial.fork() as box:
        done = await box.run(Command(["/usr/bin/env"], env=given))
        assert done.ok
        seen = [line for line in done.tail.splitlines() if line != "PWD=/"]  # the working folder may be told
        assert sorted(seen) == sorted(f"{name}={value}" for name, value in given.items())
        assert (await box.run(Command(["/usr/bin/env"]))).tail.strip() in {"", "PWD=/"}


@asynccontextmanager
async def _host_variable() -> AsyncGenerator[None]:
    os.environ["SPECBUILD_TEST"] = "host-secret"
    try:
        yield
    finally:
        del os.environ["SPECBUILD_TEST"]


async def no_process_inside_shows_the_callers_environment(trial: Trial) -> None:
    async with _host_variable(), trial.fork() as box:
        seen = await out(box, "cat /proc/[0-9]*/environ 2>/dev/null | tr '\\0' '\\n'; echo end")
        assert "host-secret" not in seen


async def arguments_arrive_unchanged(trial: Trial) -> None:
    words = ("", "a b", "new\nline", "$HOME", "'\"\\", "ünï", "-x", "--", "*")
    async with trial.fork() as box:
        assert await out(box, 'for word; do printf "[%s]" "$word"; done', *words) == "".join(
            f"[{word}]" for word in words
        )


async def programs_are_found_by_path(trial: Trial) -> None:
    async with trial.fork() as box:
        await out(box, "mkdir /own; printf '#!/bin/sh\\necho own\\n' > /own/tool; chmod +x /own/tool")
        assert (await box.run(Command(["tool"], env={"PATH": "/nowhere:/own"}))).tail.strip() == "own"
        assert (await box.run(Command(["./tool"], cwd="/own", env=ENVIRONMENT))).tail.strip() == "own"


async def a_missing_program_is_the_commands_failure(trial: Trial) -> None:
    async with trial.fork() as box:
        done = await box.run(Command(["/no/such/program"], env=ENVIRONMENT))
        assert (done.end, done.exit_code) == (End.EXITED, 127)
        done = await box.run(Command(["no-such-program"], env=ENVIRONMENT))
        assert (done.end, done.exit_code) == (End.EXITED, 127)
        done = await box.run(Command(["/etc/hostname"], env=ENVIRONMENT))
        assert (done.end, done.exit_code) == (End.EXITED, 126)


async def a_missing_folder_is_the_commands_failure(trial: Trial) -> None:
    async with trial.fork() as box:
        done = await box.run(replace(shell("pwd"), cwd="/no/such/folder"))
        assert not done.ok
        assert done.end is End.EXITED
        assert "/no/such/folder" in done.tail + done.note


async def a_command_runs_in_its_folder(trial: Trial) -> None:
    async with trial.fork() as box:
        await out(box, "mkdir '/with space'; ln -s '/with space' /link")
        assert (await box.run(shell("pwd; echo x > here", cwd="/with space"))).tail.strip() == "/with space"
        assert (await box.run(shell("cat here", cwd="/link"))).tail.strip() == "x"


async def standard_input_arrives_whole(trial: Trial) -> None:
    data = os.urandom(1 << 20)
    async with trial.fork() as box:
        assert (await box.run(shell("cat > /got", stdin=data))).ok
        assert await box.read_file("/got") == data


async def standard_input_is_empty_unless_given(trial: Trial) -> None:
    async with trial.fork() as box:
        assert await out(box, "cat; [ -t 0 ] || [ -t 1 ] || echo no terminal") == "no terminal"


async def standard_input_may_be_left_unread(trial: Trial) -> None:
    async with trial.fork() as box:
        done = await box.run(shell("exit 3", stdin=b"x" * (4 << 20)))
        assert (done.end, done.exit_code) == (End.EXITED, 3)


async def exit_codes_are_told(trial: Trial) -> None:
    async with trial.fork() as box:
        for code in (0, 1, 2, 42, 127, 200, 255):
            done = await attempt(box, f"exit {code}")
            assert (done.end, done.exit_code, done.ok) == (End.EXITED, code, code == 0)
        for code in (130, 137):  # what shells exit with for a signal may be taken for one
            assert (await attempt(box, f"exit {code}")).exit_code == code


async def signals_are_told(trial: Trial) -> None:
    async with trial.fork() as box:
        for signal in (2, 6, 9, 11, 15):
            done = await attempt(box, f"kill -{signal} $$")
            assert (done.end, done.exit_code) == (End.SIGNALLED, 128 + signal)


async def both_outputs_come_in_order(trial: Trial) -> None:
    lines: list[str] = []
    async with trial.fork() as box:
        done = await box.run(shell("echo 1; echo 2 >&2; echo 3; echo 4 >&2; printf 5"), on_line=lines.append)
    assert lines == ["1", "2", "3", "4", "5"]
    assert done.tail.splitlines() == lines


async def lines_come_while_the_command_runs(trial: Trial) -> None:
    async with trial.fork() as box:
        seen: list[str] = []
        done = await box.run(shell("echo first; while :; do :; done", timeout=2.0), on_line=seen.append)
        assert done.end is End.TIMEOUT
        assert seen == ["first"]


async def the_whole_output_is_logged(trial: Trial) -> None:
    log = trial.folder / "log"
    async with trial.fork() as box:
        done = await box.run(shell("printf 'a\\377b\\0c\\r\\n'; seq 100000; printf end"), log=log)
    assert done.log == log
    assert log.read_bytes() == b"a\xffb\0c\r\n" + b"".join(b"%d\n" % n for n in range(1, 100001)) + b"end"
    assert len(done.tail.encode()) <= TAIL
    assert done.tail.splitlines()[-2:] == ["100000", "end"]


async def output_of_any_bytes_becomes_text(trial: Trial) -> None:
    lines: list[str] = []
    async with trial.fork() as box:
        done = await box.run(shell("printf 'caf\\303\\251\\n\\377\\376\\n\\0nul\\nsplit\\303'"), on_line=lines.append)
    assert done.ok
    assert lines[0] == "café"
    assert len(lines) == 4
    assert "nul" in lines[2]
    assert "café" in done.tail


async def a_flood_of_output_is_held_in_bounded_memory(trial: Trial) -> None:
    log = trial.folder / "log"
    count = 0

    def sink(_line: str) -> None:
        nonlocal count
        count += 1

    async with trial.fork() as box:
        before = resident_bytes()
        done = await box.run(
            shell("yes 'a line of output, as builds print them by the million' | head -c 150000000"),
            on_line=sink,
            log=log,
        )
        grown = resident_bytes() - before
    assert done.ok
    assert log.stat().st_size == 150_000_000
    assert len(done.tail.encode()) <= TAIL
    assert grown < 64 << 20
    assert count >= 150_000_000 // 56


async def a_line_without_end_is_held_in_bounded_memory(trial: Trial) -> None:
    longest = 0

    def sink(line: str) -> None:
        nonlocal longest
        longest = max(longest, len(line))

    async with trial.fork() as box:
        before = resident_bytes()
        done = await box.run(shell("head -c 100000000 /dev/zero | tr '\\0' x; echo; echo last"), on_line=sink)
        grown = resident_bytes() - before
    assert done.ok
    assert done.tail.splitlines()[-1] == "last"
    assert len(done.tail.encode()) <= TAIL
    assert grown < 64 << 20
    assert 0 < longest < 4 << 20


async def use_is_measured(trial: Trial) -> None:
    async with trial.fork() as box:
        done = await attempt(box, "i=0; while [ $i -lt 200000 ]; do i=$((i+1)); done; sleep 0.2")
    assert done.ok
    assert done.seconds >= 0.2
    assert 0.01 < done.cpu_seconds <= done.seconds + 1.0
    if done.peak_memory_bytes is not None:
        assert 100_000 < done.peak_memory_bytes < 1 << 30


async def a_command_that_cannot_be_told_apart_from_a_failure_is_data(trial: Trial) -> None:
    """The command prints what our own machinery might print, and exits as it might: still only the command's."""
    async with trial.fork() as box:
        done = await attempt(box, "echo 'bwrap: Creating new namespace failed' >&2; exit 1")
        assert (done.end, done.exit_code) == (End.EXITED, 1)


CHECKS: tuple[Check, ...] = (
    the_environment_is_exactly_what_was_given,
    no_process_inside_shows_the_callers_environment,
    arguments_arrive_unchanged,
    programs_are_found_by_path,
    a_missing_program_is_the_commands_failure,
    a_missing_folder_is_the_commands_failure,
    a_command_runs_in_its_folder,
    standard_input_arrives_whole,
    standard_input_is_empty_unless_given,
    standard_input_may_be_left_unread,
    exit_codes_are_told,
    signals_are_told,
    both_outputs_come_in_order,
    lines_come_while_the_command_runs,
    the_whole_output_is_logged,
    output_of_any_bytes_becomes_text,
    a_flood_of_output_is_held_in_bounded_memory,
    a_line_without_end_is_held_in_bounded_memory,
    use_is_measured,
    a_command_that_cannot_be_told_apart_from_a_failure_is_data,
)
