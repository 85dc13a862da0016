"""Command lines of container engines for tests: `docker` with a private dockerd, and `podman` with files of its own.

As users have them: what leads a client to its engine is in variables. Neither engine has a network of its own;
`--network host` and `--network none` work. See `specbuild.testing.engines` for engines that are spoken to by a socket.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from specbuild.testing.daemons import answers, require, running, short_folder
from specbuild.testing.engines import podman_config

_DOWN_WITHIN = 60.0
_CALL_WITHIN = 240.0


@dataclass(frozen=True, slots=True)
class Client:
    """A client's command line, with what leads it to the private engine."""

    name: str
    env: Mapping[str, str]

    def __call__(
        self, *words: str, stdin: bytes = b"", check: bool = True, timeout: float = _CALL_WITHIN
    ) -> subprocess.CompletedProcess[bytes]:
        """Run it to its end. With `check`, AssertionError if that is none with status 0."""
        done = subprocess.run(
            [self.name, *words],
            input=stdin,
            capture_output=True,
            env=os.environ | self.env,
            check=False,
            timeout=timeout,
        )
        assert not check or done.returncode == 0, (words, done.stdout, done.stderr)
        return done

    def load(self, archive: Path) -> str:
        """Load an image archive; the name that it got."""
        said = self("load", "--input", str(archive), timeout=1800).stdout.decode()
        return said.split("Loaded image")[-1].partition(":")[2].strip()


@contextmanager
def docker_client(*, builder: str = "0") -> Generator[Client]:
    """Docker's client and engine; with `builder` 1 it builds by BuildKit, for which it needs its plugin.

    Raises SandboxUnavailableError where that is not installed, as `podman_client` does.
    """
    require("dockerd", "docker", packages="docker.io")
    with short_folder("sbc-") as folder:
        address = f"unix://{folder}/sock"
        command = ["dockerd", "--data-root", f"{folder}/root", "--exec-root", f"{folder}/exec", "-H", address]
        command += ["--pidfile", f"{folder}/pid", "--bridge", "none", "--iptables=false", "--ip6tables=false"]
        with running(command, folder / "log", {}, lambda: answers(folder / "sock")):
            yield Client("docker", {"DOCKER_HOST": address, "DOCKER_BUILDKIT": builder})


@contextmanager
def podman_client() -> Generator[Client]:
    """Podman, which needs no server. A Docker client finds none while its variables hold."""
    require("podman", "runc", packages="podman runc")
    with short_folder("sbc-") as folder:
        (folder / "copies").mkdir()
        (folder / "containers.conf").write_text(
            podman_config(f'tmp_dir = "{folder}/tmp"\nimage_copy_tmp_dir = "{folder}/copies"\n')
        )
        (folder / "storage.conf").write_text(
            f'[storage]\ndriver = "overlay"\ngraphroot = "{folder}/root"\nrunroot = "{folder}/run"\n'
        )
        names = {"CONTAINERS_CONF": "containers.conf", "CONTAINERS_STORAGE_CONF": "storage.conf"}
        env = {name: str(folder / file) for name, file in names.items()}
        client = Client("podman", env | {"DOCKER_HOST": f"unix://{folder}/no-docker"})
        try:
            yield client
        finally:
            client("rm", "--all", "--force", "--time", "0", timeout=_DOWN_WITHIN)
