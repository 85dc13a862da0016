"""A Recipe that changed or removed tracked files cannot win."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from hashlib import sha256
from typing import Protocol

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from specbuild.recipe import Step
from specbuild.sandbox.contract import Command, Sandbox
from specbuild.verify import Verdict
from specbuild.verify.taint import FILES_A_BATCH, find_taint

Judge = Callable[..., Awaitable[Verdict]]
GOOD = "def test_good():\n    pass\n"


class Local(Sandbox, Protocol):
    """The sandbox of these tests."""


def command(step: Step) -> Command:
    return Command(argv=("/bin/sh", "-eu", "-c", step.run), cwd=step.cwd, env={"PATH": "/usr/bin:/bin"}, timeout=60)


def digest(data: bytes) -> str:
    return sha256(data).hexdigest()


async def put(sandbox: Sandbox, files: dict[str, bytes]) -> dict[str, str]:
    for name, data in files.items():
        await sandbox.write_file(f"/repo/{name}", data)
    return {name: digest(data) for name, data in files.items()}


NAMES = [
    "plain",
    "with space",
    "back\\slash",
    "new\nline",
    "both\\\n",
    "ends: FAILED",
    "-dash",
    "ünïcode",
    " lead",
    "a/b/c",
]


async def test_an_untouched_tree_is_clean(local_sandbox: Local) -> None:
    tracked = await put(local_sandbox, {name: name.encode() for name in NAMES})
    assert (await find_taint(local_sandbox, tracked, command)).files == ()


@pytest.mark.parametrize("name", NAMES)
async def test_a_changed_file_is_named_whatever_its_name(local_sandbox: Local, name: str) -> None:
    tracked = await put(local_sandbox, {name: name.encode() for name in NAMES})
    await local_sandbox.write_file(f"/repo/{name}", b"changed")
    assert (await find_taint(local_sandbox, tracked, command)).files == (name,)


@settings(max_examples=15, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(name=st.text(st.characters(exclude_characters="/\0", codec="utf-8"), min_size=1, max_size=40))
async def test_a_missing_file_is_named_whatever_its_name(local_sandbox: Local, name: str) -> None:
    taint = await find_taint(local_sandbox, {name: digest(b"")}, command)
    # Characters that end lines of output cannot be shown, but the change is found.
    assert taint.files == (name,) or taint.problem


@pytest.mark.parametrize(
    "spoil",
    [
        "rm a",
        "rm a && mkdir a",
        "rm a && ln -s b a",
        "rm a && ln -s nowhere a",
        "echo >> a",
    ],
)
async def test_every_kind_of_change_is_found(local_sandbox: Local, spoil: str) -> None:
    tracked = await put(local_sandbox, {"a": b"1\n", "b": b"2\n"})
    await local_sandbox.run(Command(argv=("/bin/sh", "-c", spoil), cwd="/repo", env={"PATH": "/usr/bin:/bin"}))
    taint = await find_taint(local_sandbox, tracked, command)
    assert taint.files == ("a",)


async def test_new_files_are_no_taint(local_sandbox: Local) -> None:
    tracked = await put(local_sandbox, {"a": b"1"})
    await local_sandbox.write_file("/repo/build/lib.so", b"x")
    assert not (await find_taint(local_sandbox, tracked, command)).files


async def test_a_removed_tree_is_told_from_changed_files(local_sandbox: Local) -> None:
    remove = "rm -rf /repo/* && mv /repo /gone 2>/dev/null; test -e /repo"
    await local_sandbox.run(Command(argv=("/bin/sh", "-c", remove), env={"PATH": "/usr/bin:/bin"}))
    taint = await find_taint(local_sandbox, {"a": digest(b"1")}, command)
    assert taint.files == ("a",)


@pytest.mark.slow
async def test_a_large_tree_is_compared_in_batches(local_sandbox: Local) -> None:
    tracked = await put(local_sandbox, {f"d{n % 50}/file{n}": b"x" for n in range(2 * FILES_A_BATCH + 1)})
    await local_sandbox.write_file(f"/repo/d0/file{2 * FILES_A_BATCH}", b"y")
    assert (await find_taint(local_sandbox, tracked, command)).files == (f"d0/file{2 * FILES_A_BATCH}",)


async def test_at_most_fifty_are_named(local_sandbox: Local) -> None:
    tracked = {f"file{n:03}": digest(b"") for n in range(200)}
    await put(local_sandbox, {"other": b""})
    assert len((await find_taint(local_sandbox, tracked, command)).files) == 50


async def test_a_tainted_tree_does_not_verify_and_is_not_tested(judge: Judge) -> None:
    lines: list[str] = []
    verdict = await judge(
        {"tests/test_a.py": GOOD}, tracked={"tests/test_a.py": digest(b"other")}, on_line=lines.append
    )
    assert not verdict.ok
    assert verdict.tainted == ("tests/test_a.py",)
    assert "changed or removed tracked files: tests/test_a.py" in verdict.reason
    assert lines == []
