"""Attempts to use up the machine."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from specbuild.sandbox.contract import End, Limits
from specbuild.sandbox.limits import detect
from specbuild.testing.escapes import perl
from specbuild.testing.remote import Remote
from specbuild.testing.trial import resident_bytes

pytestmark = [pytest.mark.root, pytest.mark.sandbox, pytest.mark.slow]

MIB = 1 << 20


def _processes() -> int:
    return sum(1 for _ in Path("/proc").glob("[0-9]*"))


def fine(engine: Remote) -> bool:
    return engine.run("echo fine").tail.strip() == "fine"


def test_a_fork_bomb(engine: Remote) -> None:
    before = _processes()
    done = engine.run(perl("while (1) { fork }"), limits=Limits(processes=200), timeout=3)
    assert not (done.end is End.EXITED and done.exit_code == 0)
    assert _processes() < before + 150
    assert fine(engine)


def test_a_fork_bomb_that_ignores_signals_and_sessions(engine: Remote) -> None:
    code = "use POSIX; $SIG{TERM} = $SIG{HUP} = q(IGNORE); while (1) { fork; setsid(); }"
    engine.run(perl(code) + " & " + perl(code) + " & wait", limits=Limits(processes=200), timeout=2)
    assert fine(engine)


def test_a_memory_bomb(engine: Remote) -> None:
    done = engine.run(perl("my @a; push @a, q(x) x 1048576 while @a < 4000"), limits=Limits(memory_bytes=128 * MIB))
    assert not (done.end is End.EXITED and done.exit_code == 0)
    assert fine(engine)


def test_a_memory_bomb_of_many_processes(portable: Remote) -> None:
    if not detect().controls("memory"):
        pytest.fail("this test needs memory control groups")
    code = "for (1 .. 20) { fork or do { my $x = q(x) x 104857600; sleep 60 } } sleep 60"
    done = portable.run(perl(code), limits=Limits(memory_bytes=200 * MIB), timeout=5)
    assert done.end is not End.EXITED
    assert fine(portable)


def test_filling_the_memory_with_files(engine: Remote) -> None:
    free = shutil.disk_usage("/dev/shm").free
    done = engine.run("cat /dev/zero > /dev/shm/fill", limits=Limits(memory_bytes=128 * MIB), timeout=20)
    assert not (done.end is End.EXITED and done.exit_code == 0)
    assert shutil.disk_usage("/dev/shm").free > free - 64 * MIB
    assert fine(engine)


def test_filling_the_disk(engine: Remote) -> None:
    done = engine.run("cat /dev/zero > /fill", limits=Limits(disk_bytes=200 * MIB), timeout=60)
    assert done.end is End.OUT_OF_DISK
    assert fine(engine)


def test_filling_the_disk_with_deleted_files(engine: Remote) -> None:
    free = shutil.disk_usage("/").free
    script = "exec 3> /fill; rm /fill; cat /dev/zero >&3"
    done = engine.run(script, limits=Limits(disk_bytes=200 * MIB, memory_bytes=512 * MIB), timeout=5)
    assert done.end in {End.OUT_OF_DISK, End.TIMEOUT}
    assert shutil.disk_usage("/").free > free // 2
    assert fine(engine)


def test_a_file_with_a_size_beyond_measure(engine: Remote) -> None:
    done = engine.run("truncate -s 8T /sparse; stat -c %s /sparse", limits=Limits(disk_bytes=100 * MIB))
    assert done.end is End.EXITED
    assert fine(engine)


def test_flooding_the_output(engine: Remote) -> None:
    before = _resident(engine.process.pid)
    done = engine.run("yes | head -c 300000000; yes > /dev/stderr", timeout=4)
    assert done.end is End.TIMEOUT
    assert len(done.tail.encode()) <= 64 << 10
    assert _resident(engine.process.pid) < before + 64 * MIB
    assert resident_bytes() > 0


def _resident(pid: int) -> int:
    return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def test_opening_every_file_there_can_be(engine: Remote) -> None:
    engine.run(
        perl("my @f; while (open(my $f, q(/etc/passwd))) { push @f, $f; last if @f > 2000000 } sleep 1"), timeout=20
    )
    with Path("/etc/passwd").open():
        assert fine(engine)


def test_spinning_forever(engine: Remote) -> None:
    done = engine.run("(while :; do :; done) & while :; do :; done", timeout=1)
    assert done.end is End.TIMEOUT
    assert fine(engine)
