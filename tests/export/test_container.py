"""The container in which an image that an engine has built is tested."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from pathlib import Path

import pytest

from specbuild.export.container import IDLE


@pytest.mark.timeout(60)
@pytest.mark.parametrize("shell", ["bash", "dash"])
def test_its_first_process_stays_a_shell_which_takes_in_orphans(shell: str) -> None:
    with subprocess.Popen([shell, "-c", IDLE, "60"]) as process:
        try:
            while "sleep" not in children(process.pid) | {name_of(process.pid)}:
                time.sleep(0.01)
            assert name_of(process.pid) == shell
        finally:
            for child in pids_of_children(process.pid):
                os.kill(int(child), signal.SIGKILL)
            process.kill()


def children(pid: int) -> set[str]:
    return {name_of(int(child)) for child in pids_of_children(pid)}


def pids_of_children(pid: int) -> list[str]:
    return Path(f"/proc/{pid}/task/{pid}/children").read_text().split()


def name_of(pid: int) -> str:
    return Path(f"/proc/{pid}/comm").read_text().strip()
