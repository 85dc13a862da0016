"""Ctrl-C, once and often: the work is cancelled, cleans up, and the exit code is 130."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

import pytest

WORK = """
import sys
from pathlib import Path
import anyio, click
from specbuild.cli import app
from specbuild.cli.interrupts import run_to_end
from specbuild.cli.output import Output, output_options

def say(text):
    print(text, flush=True)

async def work():
    try:
        say("working")
        await anyio.sleep(60)
    finally:
        with anyio.CancelScope(shield=True):
            say("cleaning")
            while not gate.exists():
                await anyio.sleep(0.01)
            say("clean")

@click.command()
@output_options()
@click.pass_obj
def wait(output):
    run_to_end(work, output.err)

app.HOMES["wait"] = __name__
gate = Path(sys.argv[1])
sys.argv = ["specbuild", "wait", *sys.argv[2:]]
sys.exit(app.main())
"""


@contextmanager
def working(gate: Path, *arguments: str) -> Generator[subprocess.Popen[str]]:
    """A command that cleans up until `gate` exists, once it has begun."""
    program = [sys.executable, "-c", WORK, str(gate), *arguments]
    with subprocess.Popen(program, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        try:
            assert next_line(process.stdout) == "working"
            yield process
        finally:
            process.kill()


def next_line(stream: IO[str] | None) -> str:
    assert stream is not None
    return stream.readline().rstrip("\n")


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_one_signal_cancels_and_waits_for_the_cleanup(number: signal.Signals, tmp_path: Path) -> None:
    with working(tmp_path / "gate") as process:
        process.send_signal(number)
        assert next_line(process.stderr) == "stopping all steps and cleaning up"
        assert next_line(process.stdout) == "cleaning"
        (tmp_path / "gate").touch()
        assert next_line(process.stdout) == "clean"
        assert process.wait() == 130
        assert next_line(process.stderr) == "error: interrupted"


def test_a_second_signal_does_not_cut_the_cleanup_short(tmp_path: Path) -> None:
    with working(tmp_path / "gate") as process:
        process.send_signal(signal.SIGINT)
        assert next_line(process.stdout) == "cleaning"
        process.send_signal(signal.SIGINT)
        assert next_line(process.stderr) == "stopping all steps and cleaning up"
        assert next_line(process.stderr).startswith("still cleaning up")
        (tmp_path / "gate").touch()
        assert next_line(process.stdout) == "clean"
        assert process.wait() == 130


def test_json_tells_of_the_interruption(tmp_path: Path) -> None:
    (tmp_path / "gate").touch()
    with working(tmp_path / "gate", "--json") as process:
        os.kill(process.pid, signal.SIGINT)
        assert [next_line(process.stdout) for _ in range(2)] == ["cleaning", "clean"]
        assert '"exit_code": 130' in next_line(process.stdout)


def test_signals_without_end_change_nothing(tmp_path: Path) -> None:
    with working(tmp_path / "gate") as process:
        process.send_signal(signal.SIGINT)
        assert next_line(process.stdout) == "cleaning"
        (tmp_path / "gate").touch()
        while process.poll() is None:
            process.send_signal(signal.SIGINT)
            time.sleep(0.001)  # faster than any hand, and it leaves the process a moment to end
        assert process.returncode == 130
