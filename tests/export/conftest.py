"""Engines for the tests of exports: a private dockerd and a private Podman, each through its own client."""

from __future__ import annotations

import os
import resource
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

_UP_WITHIN = 60.0


@dataclass(frozen=True, slots=True)
class Client:
    """A client's command line, with what leads it to the private engine."""

    argv: tuple[str, ...]
    env: dict[str, str]
    run_options: tuple[str, ...] = ()

    def __call__(self, *words: str, stdin: bytes = b"", check: bool = True) -> subprocess.CompletedProcess[bytes]:
        done = subprocess.run(
            [*self.argv, *words], input=stdin, capture_output=True, env=os.environ | self.env, check=False, timeout=240
        )
        assert not check or done.returncode == 0, (words, done.stdout, done.stderr)
        return done


@pytest.fixture(scope="session", params=["docker", "podman"])
def engine(request: pytest.FixtureRequest) -> Iterator[Client]:
    """Each of the engines, without a network."""
    folder = Path(tempfile.mkdtemp(prefix="sbx-", dir="/var/tmp"))
    try:
        yield from _docker(folder) if request.param == "docker" else _podman(folder)
    finally:
        _unmount(folder)
        shutil.rmtree(folder)


def _docker(folder: Path) -> Iterator[Client]:
    address = f"unix://{folder}/sock"
    command = ["dockerd", "--data-root", f"{folder}/root", "--exec-root", f"{folder}/exec", "-H", address]
    command += ["--pidfile", f"{folder}/pid", "--bridge", "none", "--iptables=false", "--ip6tables=false"]
    with (folder / "log").open("wb") as log, subprocess.Popen(command, stdout=log, stderr=log) as server:
        try:
            client = Client(("docker",), {"DOCKER_HOST": address, "DOCKER_BUILDKIT": "0"})
            deadline = time.monotonic() + _UP_WITHIN
            while client("info", check=False).returncode:
                assert server.poll() is None, (folder / "log").read_text()
                assert time.monotonic() < deadline, (folder / "log").read_text()
                time.sleep(0.1)
            yield client
        finally:
            server.terminate()


def _podman(folder: Path) -> Iterator[Client]:
    files = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    (folder / "containers.conf").write_text(
        '[engine]\nruntime = "runc"\ncgroup_manager = "cgroupfs"\nevents_logger = "none"\n'
        f'[containers]\ndefault_ulimits = ["nofile={files}:{files}", "nproc=4096:4096"]\n'
    )
    argv = ("podman", "--root", f"{folder}/root", "--runroot", f"{folder}/run", "--storage-driver", "overlay")
    client = Client(argv, {"CONTAINERS_CONF": f"{folder}/containers.conf"})
    yield client
    client("rm", "--all", "--force", check=False)


def _unmount(folder: Path) -> None:
    points = [line.split()[4] for line in Path("/proc/self/mountinfo").read_text().splitlines()]
    for point in sorted((point for point in points if Path(point).is_relative_to(folder)), reverse=True):
        subprocess.run(["umount", point], check=True)
