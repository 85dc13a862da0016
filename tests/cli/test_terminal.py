"""Colour, characters and readers that go away."""

from __future__ import annotations

import fcntl
import io
import json
import os
import signal
import struct
import subprocess
import sys
import termios
import time
from pathlib import Path
from typing import Any

import pytest

from specbuild.cli.terminal import Terminal, clean, wants_color


class Tty(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize(
    ("tty", "mode", "environ", "color"),
    [
        (True, "auto", {}, True),
        (False, "auto", {}, False),
        (True, "auto", {"NO_COLOR": "1"}, False),
        (True, "auto", {"NO_COLOR": ""}, True),
        (False, "auto", {"FORCE_COLOR": "1"}, True),
        (False, "auto", {"FORCE_COLOR": "0"}, False),
        (True, "auto", {"TERM": "dumb"}, False),
        (False, "always", {"NO_COLOR": "1"}, True),
        (True, "never", {"FORCE_COLOR": "1"}, False),
    ],
)
def test_color(tty: bool, mode: Any, environ: dict[str, str], color: bool) -> None:
    assert wants_color(Tty() if tty else io.StringIO(), mode, environ) is color


def test_a_dumb_terminal_gets_no_live_tree() -> None:
    assert not Terminal.of(Tty(), environ={"TERM": "dumb"}).tty
    assert Terminal.of(Tty(), environ={"TERM": "xterm"}).tty


@pytest.mark.parametrize(
    ("raw", "shown"),
    [
        ("plain", "plain"),
        ("\x1b[1;31mred\x1b[0m", "red"),
        ("\x1b]8;;https://example.org\x1b\\link\x1b]8;;\x1b\\", "link"),
        ("10%\r55%\r100%\r", "100%"),
        ("a\tb", "a       b"),
        ("\x07\x08bell", "bell"),
        ("\x9b31mC1", "31mC1"),
        ("one\ntwo", "one two"),
    ],
)
def test_foreign_lines_are_cleaned(raw: str, shown: str) -> None:
    assert clean(raw) == shown


def test_characters_that_the_terminal_lacks_become_escapes() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "specbuild", "схема"],
        env={**os.environ, "PYTHONIOENCODING": "ascii", "LC_ALL": "C.UTF-8"},
        capture_output=True,
        check=False,
    )
    assert done.returncode == 2
    assert b"\\u0441\\u0445\\u0435\\u043c\\u0430" in done.stderr
    assert b"Traceback" not in done.stderr


def test_a_reader_that_goes_away_ends_nothing() -> None:
    script = f"{sys.executable} -m specbuild schema | head -c 1; exit ${{PIPESTATUS[0]}}"
    done = subprocess.run(["bash", "-c", script], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, "{", "")


@pytest.mark.parametrize("unbuffered", ["", "1"])
@pytest.mark.parametrize("blocking", [True, False])
def test_a_result_that_is_larger_than_a_pipe_arrives_whole(*, blocking: bool, unbuffered: str) -> None:
    read, write = os.pipe()
    os.set_blocking(write, blocking)
    env = {**os.environ, "PYTHONUNBUFFERED": unbuffered}
    with subprocess.Popen([sys.executable, "-m", "specbuild", "schema"], stdout=write, env=env) as process:
        os.close(write)
        while _bytes_in(read) < fcntl.fcntl(read, fcntl.F_GETPIPE_SZ):
            assert process.poll() is None, "there is more than a pipe takes"
            time.sleep(0.01)
        process.send_signal(signal.SIGSTOP)  # ends a write that waits
        process.send_signal(signal.SIGCONT)
        with os.fdopen(read, "rb") as pipe:
            result = pipe.read()
    assert process.returncode == 0
    assert len(result) > 65536
    assert "properties" in json.loads(result)


def _bytes_in(pipe: int) -> int:
    (count,) = struct.unpack("i", fcntl.ioctl(pipe, termios.FIONREAD, bytes(4)))
    return int(count)


def test_closed_streams_are_survived() -> None:
    done = subprocess.run(["bash", "-c", f"{sys.executable} -m specbuild bulid >&- 2>&-"], check=False)
    assert done.returncode == 2


@pytest.mark.parametrize("closed", ["<&-", ">&-", "2>&-", "<&- >&- 2>&-"])
def test_a_command_with_an_event_loop_survives_closed_streams(tmp_path: Path, closed: str) -> None:
    (tmp_path / "project").mkdir()
    (tmp_path / "project" / "module.py").write_text("x = 1\n")
    script = f"{sys.executable} -m specbuild plan project --base debian:bookworm {closed}"
    env = {**os.environ, "SPECBUILD_CACHE_DIR": str(tmp_path / "cache"), "PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run(["bash", "-c", script], cwd=tmp_path, env=env, capture_output=True, check=False)
    assert done.returncode == 0, done.stderr.decode()


def test_a_result_that_does_not_fit_on_the_disk_is_an_error_and_no_bug() -> None:
    script = f"{sys.executable} -m specbuild schema > /dev/full"
    done = subprocess.run(["bash", "-c", script], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (2, "error: the result cannot be written: No space left on device\n")


def test_messages_that_do_not_fit_on_the_disk_change_no_exit_code() -> None:
    done = subprocess.run(["bash", "-c", f"{sys.executable} -m specbuild bulid 2> /dev/full"], check=False)
    assert done.returncode == 2
