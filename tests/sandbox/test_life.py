"""What a Sandbox does at a time, and what is left of that when something goes wrong."""

from __future__ import annotations

import pytest

from specbuild.errors import SandboxError, StoreError
from specbuild.sandbox.contract import End
from specbuild.sandbox.ends import end_of, not_run
from specbuild.sandbox.life import DISCARDED, FROZEN, Life


def test_a_sandbox_does_one_thing_at_a_time() -> None:
    life = Life("s.1")
    with life.doing("running a command"), pytest.raises(StoreError) as refused, life.doing("being frozen"):
        pass
    assert refused.value.message == "sandbox s.1 is busy with running a command, which does not go with being frozen"
    with life.doing("being frozen"):
        pass


def test_what_fails_does_not_keep_it_busy() -> None:
    life = Life("s.1")
    with pytest.raises(SandboxError), life.doing("copying files in"):
        raise SandboxError("no such folder")
    with life.doing("copying files in"):
        pass


def test_what_ended_it_first_is_why_nothing_more_can_be_done() -> None:
    life = Life("s.1")
    with life.doing("being frozen"):
        life.end(FROZEN)
    life.end(DISCARDED)
    assert life.over == FROZEN
    with pytest.raises(StoreError, match="frozen already"), life.doing("reading a file"):
        pass


@pytest.mark.parametrize(
    ("code", "end"),
    [
        (0, End.EXITED),
        (1, End.EXITED),
        (128, End.EXITED),
        (129, End.SIGNALLED),
        (192, End.SIGNALLED),
        (193, End.EXITED),
    ],
)
def test_an_exit_code_tells_of_a_signal(code: int, end: End) -> None:
    assert end_of(code) is end


@pytest.mark.parametrize(
    ("said", "code"),
    [
        ("bwrap: execvp nothing: No such file or directory\n", 127),
        ("a line before\nbwrap: execvp /etc/passwd: Permission denied", 126),
        ("bwrap: Can't chdir to /nowhere: No such file or directory", 127),
    ],
)
def test_a_program_that_cannot_be_executed_has_the_code_that_shells_give(said: str, code: int) -> None:
    assert not_run(said) == code


@pytest.mark.parametrize("said", ["", "bwrap: setting up uid map: Permission denied", "execvp by another name"])
def test_other_troubles_are_of_our_machinery(said: str) -> None:
    with pytest.raises(SandboxError, match="could not be started"):
        not_run(said)
