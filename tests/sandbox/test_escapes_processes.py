"""Attempts to see, signal or inherit from processes of the host, and to outlive the sandbox."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from specbuild.sandbox.contract import End
from specbuild.testing.escapes import REFUSALS, REPORT, number, perl, system_call
from specbuild.testing.remote import Remote
from specbuild.testing.trial import new_marker, processes

pytestmark = [pytest.mark.root, pytest.mark.sandbox, pytest.mark.slow]

SECRET = "the-secret-of-the-host"


@pytest.fixture
def victim() -> Iterator[subprocess.Popen[bytes]]:
    """A process of the host, as any user might have one."""
    with subprocess.Popen(["sleep", "300.125"], env={"VICTIM": SECRET}) as process:
        yield process
        assert process.poll() is None, "the sandbox ended a process of the host"
        process.kill()


def test_seeing_processes_of_the_host(engine: Remote, victim: subprocess.Popen[bytes]) -> None:
    done = engine.run("cat /proc/[0-9]*/cmdline 2>/dev/null | tr '\\0' ' '; ls -d /proc/[0-9]* | wc -l")
    assert "300.125" not in done.tail
    assert int(done.tail.split()[-1]) < 10
    assert victim.pid


def test_signalling_processes_of_the_host(engine: Remote, victim: subprocess.Popen[bytes]) -> None:
    done = engine.run(
        'kill -9 "$1" 2>/dev/null && echo hit; kill -9 "$2" 2>/dev/null && echo hit; true',
        str(victim.pid),
        str(os.getpid()),
    )
    assert "hit" not in done.tail
    engine.run("kill -9 -1")
    assert engine.run("echo fine").tail.strip() == "fine"


def test_signalling_every_number_there_may_be(engine: Remote, victim: subprocess.Popen[bytes]) -> None:
    engine.run(perl("for (2 .. 70000) { kill 15, $_ unless $_ == $$ } print qq(done)"))
    assert victim.poll() is None
    assert engine.run("echo fine").tail.strip() == "fine"


def test_tracing_a_process_of_the_host(engine: Remote, victim: subprocess.Popen[bytes]) -> None:
    assert engine.run(system_call("ptrace", "16", str(victim.pid), "0", "0")).tail.strip() in REFUSALS


def test_reading_the_memory_of_a_process_of_the_host(engine: Remote, victim: subprocess.Popen[bytes]) -> None:
    code = (
        'my $b = "x" x 16; my $here = pack("QQ", unpack("Q", pack("p", $b)), 16); my $there = pack("QQ", 4194304, 16);'
        f"my $r = syscall({number('process_vm_readv')}, {victim.pid}, $here, 1, $there, 1, 0); {REPORT}"
    )
    assert engine.run(perl(code)).tail.strip() in REFUSALS


def test_reading_the_callers_environment(engine: Remote) -> None:
    script = "env; cat /proc/[0-9]*/environ 2>/dev/null | tr '\\0' '\\n'; set"
    assert SECRET not in engine.run(script).tail


def test_reading_the_callers_command_line(engine: Remote, tmp_path: Path) -> None:
    done = engine.run("cat /proc/[0-9]*/cmdline /proc/1/comm /proc/1/exe 2>/dev/null | tr '\\0' ' ' | tr -cd ' -~'")
    assert "specbuild.testing.remote" not in done.tail
    assert str(tmp_path.parent.parent) not in done.tail


def test_using_files_that_the_engine_has_open(engine: Remote) -> None:
    done = engine.run("ls -l /proc/self/fd | tail -n +2 | wc -l; ls /proc/$$/fd | tr '\\n' ' '; readlink /proc/$$/fd/*")
    words = done.tail.split()
    assert set(words[1:4]) == {"0", "1", "2"}, done.tail
    assert not any(word.startswith("/") and not word.startswith(("/dev/null", "/proc")) for word in words[4:]), (
        done.tail
    )


def test_moving_by_the_folder_of_the_sandboxs_first_process(engine: Remote) -> None:
    script = "ls / > /own; ls /proc/1/root/ /proc/1/cwd/ 2>/dev/null | grep -vE '^$|^/proc' | grep -vxFf /own"
    done = engine.run(script)
    assert set(done.tail.split()) <= {"own"}


def test_outliving_the_command(engine: Remote) -> None:
    marker = new_marker()
    stubborn = "(setsid sh -c 'trap \"\" TERM; sleep '$1 &)"
    engine.run(f"(setsid nohup sleep $1 > /dev/null 2>&1 &); {stubborn}; sleep 0.1", marker)
    assert processes(marker) == []


def test_standing_still_does_not_stop_the_clock(engine: Remote) -> None:
    marker = new_marker()
    done = engine.run("(setsid sleep $1 &); kill -STOP -1; kill -STOP $$; sleep $1", marker, timeout=1.5)
    assert done.end is End.TIMEOUT
    assert processes(marker) == []


def test_gaining_capabilities(engine: Remote) -> None:
    done = engine.run("grep -E 'Cap(Prm|Eff|Inh|Amb)' /proc/self/status")
    docker_default = 0xA80425FB
    for line in done.tail.splitlines():
        assert int(line.split()[1], 16) & ~docker_default == 0, line
