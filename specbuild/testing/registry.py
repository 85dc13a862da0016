"""A real registry on the loopback interface: the distribution project's, as Debian packages it (`docker-registry`)."""

from __future__ import annotations

import shutil
import socket
import subprocess
import time
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from specbuild.errors import SandboxUnavailableError

_CONFIG = """\
version: 0.1
log: {{level: error, accesslog: {{disabled: true}}}}
storage:
  filesystem: {{rootdirectory: {folder}}}
  delete: {{enabled: true}}
http: {{addr: "127.0.0.1:{port}"}}
"""
_START_WITHIN = 20.0


@dataclass(frozen=True, slots=True)
class TestRegistry:
    """A running registry."""

    __test__ = False
    host: str
    """`localhost:PORT`: its part of an image's name."""
    folder: Path
    """Where it keeps what it is given."""

    @property
    def url(self) -> str:
        """Without a slash at its end."""
        return f"http://{self.host}"

    def blob(self, digest: str) -> Path:
        """The file of a blob that it has."""
        algorithm, _, value = digest.partition(":")
        return self.folder / "docker/registry/v2/blobs" / algorithm / value[:2] / value / "data"


@contextmanager
def registry(folder: Path) -> Generator[TestRegistry]:
    """Run a registry that keeps its content in `folder`; ended with the `with`.

    Raises SandboxUnavailableError where there is none to run.
    """
    program = shutil.which("docker-registry")
    if program is None:
        raise SandboxUnavailableError("there is no registry here", hint="apt-get install docker-registry")
    folder.mkdir(parents=True, exist_ok=True)
    port = _free_port()
    config = folder / "config.yml"
    config.write_text(_CONFIG.format(folder=folder, port=port))
    with (folder / "log").open("wb") as log:
        process = subprocess.Popen([program, "serve", str(config)], stdin=subprocess.DEVNULL, stdout=log, stderr=log)
    try:
        _wait_for(port, process, folder / "log")
        yield TestRegistry(f"localhost:{port}", folder)
    finally:
        process.kill()
        process.wait()


def _free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        port: int = listener.getsockname()[1]
        return port


def _wait_for(port: int, process: subprocess.Popen[bytes], log: Path) -> None:
    until = time.monotonic() + _START_WITHIN
    while time.monotonic() < until and process.poll() is None:
        try:
            socket.create_connection(("127.0.0.1", port), timeout=1).close()
        except OSError:
            time.sleep(0.02)
        else:
            return
    raise SandboxUnavailableError(f"the registry did not start: {log.read_text(errors='replace')[-500:]}")
