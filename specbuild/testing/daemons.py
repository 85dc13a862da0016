"""Servers that tests start by hand, without a service manager: each in a folder of its own, ended by process id."""

from __future__ import annotations

import http.client
import os
import shutil
import socket
import subprocess
import tempfile
import time
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from specbuild.errors import SandboxUnavailableError

_UP_WITHIN = 60.0
_DOWN_WITHIN = 60.0
_PAUSE = 0.02


class UnixConnection(http.client.HTTPConnection):
    """HTTP on a unix socket."""

    def __init__(self, path: Path) -> None:
        super().__init__("daemon", timeout=60)
        self._path = path

    def connect(self) -> None:
        """See `http.client.HTTPConnection`."""
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)  # closed with the connection
        self.sock.settimeout(60)
        self.sock.connect(str(self._path))


def require(*programs: str, packages: str) -> None:
    """Raises SandboxUnavailableError where servers that need root and these programs cannot be started."""
    if os.geteuid() != 0:
        raise SandboxUnavailableError("a container engine of a test's own needs root", hint="run these tests as root")
    if missing := [program for program in programs if shutil.which(program) is None]:
        raise SandboxUnavailableError(f"not installed: {', '.join(missing)}", hint=f"apt-get install {packages}")


@contextmanager
def short_folder(prefix: str) -> Generator[Path]:
    """A folder with a short path, as sockets want it, on a filesystem that holds layers; what is in it goes with it."""
    folder = Path(tempfile.mkdtemp(prefix=prefix, dir="/var/tmp"))
    try:
        yield folder
    finally:
        _unmount(folder)
        shutil.rmtree(folder)


def mounts_below(folder: Path) -> list[str]:
    """Where something is mounted below a folder, innermost first."""
    points = [line.split()[4] for line in Path("/proc/self/mountinfo").read_text().splitlines()]
    return sorted((point for point in points if Path(point).is_relative_to(folder)), reverse=True)


def _unmount(folder: Path) -> None:
    for point in mounts_below(folder):
        subprocess.run(["umount", point], check=True)


@contextmanager
def running(command: Sequence[object], log: Path, env: Mapping[str, str], is_up: Callable[[], bool]) -> Generator[None]:
    """A server, from when it is up. Raises SandboxUnavailableError, with its last words, if it never is.

    It works in the folder of its log: what watches over Podman's containers leaves a file wherever it was started.
    """
    words = [str(word) for word in command]
    with log.open("wb") as output:
        process = subprocess.Popen(
            words,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            cwd=log.parent,
            env={**os.environ, **env},
        )
    try:
        _wait_for(is_up, process, log)
        yield
    finally:
        process.terminate()
        try:
            process.wait(_DOWN_WITHIN)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def answers(path: Path) -> bool:
    """Whether a server on a unix socket answers a ping, as container engines do."""
    connection = UnixConnection(path)
    try:
        connection.request("GET", "http://daemon/_ping")
        return connection.getresponse().status == 200
    except OSError:
        return False
    finally:
        connection.close()


def _wait_for(is_up: Callable[[], bool], process: subprocess.Popen[bytes], log: Path) -> None:
    deadline = time.monotonic() + _UP_WITHIN
    while not is_up():
        if process.poll() is not None or time.monotonic() > deadline:
            said = log.read_text("utf-8", "replace").strip()[-2000:]
            raise SandboxUnavailableError(f"{process.args!r} did not start: {said}")
        time.sleep(_PAUSE)
