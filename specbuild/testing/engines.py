"""Private container engines for tests: each with a data folder, a socket and a bridge of its own; nothing is left.

They are started by hand, without a service manager, and ended by process id. Both need root; Docker needs `docker.io`
and `iproute2`, Podman needs `podman` and `runc`.
"""

from __future__ import annotations

import http.client
import json
import os
import resource
import secrets
import shutil
import socket
import subprocess
import tempfile
import time
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from specbuild.sandbox.docker.boxes import LABEL
from specbuild.sandbox.docker.endpoint import Endpoint

_UP_WITHIN = 60.0
_DOWN_WITHIN = 60.0
_CALL_WITHIN = 240.0
"""Seconds for one call of an engine's command line; builds and archives take some."""
_MOST_PROCESSES = 32768
"""Podman bounds itself to that many and, without CAP_SYS_RESOURCE, its containers can have no more."""


@dataclass(frozen=True, slots=True)
class PrivateEngine:
    """An engine that runs."""

    name: str
    socket: Path
    root: Path
    """The folder of its data."""
    client: tuple[str, ...]
    """What its command line begins with."""
    env: Mapping[str, str]
    """Variables that its command line needs."""

    @property
    def address(self) -> str:
        """For DOCKER_HOST."""
        return f"unix://{self.socket}"

    @property
    def endpoint(self) -> Endpoint:
        """For a backend."""
        return Endpoint(self.address, origin="a test's own engine")

    def ask(self, method: str, path: str, body: object = None, data: bytes | None = None) -> Any:
        """Call its API, past all of our own code: the answer's JSON, or its text. Raises AssertionError."""
        connection = _Unix(self.socket)
        headers = {"Content-Type": "application/json" if data is None else "application/x-tar"}
        content = data if data is not None else (json.dumps(body) if body is not None else None)
        try:
            connection.request(method, f"http://engine/v1.41/{path}", content, headers)
            response = connection.getresponse()
            text = response.read()
        finally:
            connection.close()
        assert response.status < 400, f"{method} {path}: {text!r}"
        try:
            return json.loads(text) if text else None
        except ValueError:
            return text.decode()

    def call(self, *words: str, stdin: bytes = b"", check: bool = True) -> subprocess.CompletedProcess[bytes]:
        """Call it by its command line. Raises AssertionError for a failure, unless told not to `check`."""
        done = subprocess.run(
            [*self.client, *words],
            input=stdin,
            capture_output=True,
            env=os.environ | self.env,
            check=False,
            timeout=_CALL_WITHIN,
        )
        assert not check or done.returncode == 0, (words, done.stdout, done.stderr)
        return done

    def leftovers(self) -> list[str]:
        """What sessions have left in it while none is open: containers of ours, and images that no Checkpoint has."""
        ours = f"filters={json.dumps({'label': [LABEL]}, separators=(',', ':'))}"
        containers = self.ask("GET", f"containers/json?all=1&{_quoted(ours)}")
        images = [image for image in self.ask("GET", f"images/json?{_quoted(ours)}") if not _names(image)]
        return [f"container {box['Names']}" for box in containers] + [f"image {image['Id']}" for image in images]


def _names(image: dict[str, Any]) -> list[str]:
    return [name for name in image.get("RepoTags") or () if name != "<none>:<none>"]


def _quoted(text: str) -> str:
    return text.replace('"', "%22").replace("{", "%7B").replace("}", "%7D").replace("[", "%5B").replace("]", "%5D")


class _Unix(http.client.HTTPConnection):
    def __init__(self, path: Path) -> None:
        super().__init__("engine", timeout=60)
        self._path = path

    def connect(self) -> None:
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)  # closed with the connection
        self.sock.settimeout(60)
        self.sock.connect(str(self._path))


@contextmanager
def docker_engine(*, network: bool = False) -> Generator[PrivateEngine]:
    """A Docker engine. Its containers reach other machines only with `network`, which adds rules to the firewall."""
    with engine_folder() as folder, _bridge(network=network) as bridge:
        command = [
            "dockerd",
            "--data-root",
            folder / "root",
            "--exec-root",
            folder / "exec",
            "--pidfile",
            folder / "pid",
        ]
        command += ["-H", f"unix://{folder}/sock", "--bridge", bridge, "--ip6tables=false"]
        command += [] if network else ["--iptables=false", "--ip-masq=false"]
        env = {"DOCKER_HOST": f"unix://{folder}/sock", "DOCKER_BUILDKIT": "0"}
        with _running(command, folder, {}):
            yield PrivateEngine("docker", folder / "sock", folder / "root", ("docker",), env)


@contextmanager
def podman_engine() -> Generator[PrivateEngine]:
    """Podman's Docker-compatible service."""
    with engine_folder() as folder:
        config = folder / "containers.conf"
        config.write_text(podman_config())
        places = ("--root", f"{folder}/root", "--runroot", f"{folder}/run", "--tmpdir", f"{folder}/tmp")
        base = ("podman", *places, "--storage-driver", "overlay")
        env = {"CONTAINERS_CONF": str(config)}
        try:
            with _running([*base, "system", "service", "-t", "0", f"unix://{folder}/sock"], folder, env):
                yield PrivateEngine("podman", folder / "sock", folder / "root", base, env)
        finally:
            done = subprocess.run(
                [*base, "rm", "--all", "--force", "--time", "0"],
                env=os.environ | env,
                capture_output=True,
                timeout=_DOWN_WITHIN,
                check=False,
            )
            assert done.returncode == 0, done.stderr


def podman_config(engine: str = "") -> str:
    """For machines without systemd, with control groups of any version, and without the right to raise limits.

    `engine` are more lines for the table of that name.
    """
    files = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    processes = min(resource.getrlimit(resource.RLIMIT_NPROC)[1], _MOST_PROCESSES)
    processes = processes if processes > 0 else _MOST_PROCESSES
    return (
        f'[engine]\nruntime = "runc"\ncgroup_manager = "cgroupfs"\nevents_logger = "none"\n{engine}'
        f'[containers]\ndefault_ulimits = ["nofile={files}:{files}", "nproc={processes}:{processes}"]\n'
    )


@contextmanager
def engine_folder() -> Generator[Path]:
    """A folder with a short path, as sockets want it, on a filesystem that holds layers; mounts in it go with it."""
    folder = Path(tempfile.mkdtemp(prefix="sbe-", dir="/var/tmp"))
    try:
        yield folder
    finally:
        _unmount(folder)
        shutil.rmtree(folder)


def _unmount(folder: Path) -> None:
    """What an engine has left mounted below its own folder, innermost first."""
    points = [line.split()[4] for line in Path("/proc/self/mountinfo").read_text().splitlines()]
    for point in sorted((point for point in points if Path(point).is_relative_to(folder)), reverse=True):
        subprocess.run(["umount", point], check=True)


@contextmanager
def _bridge(*, network: bool) -> Generator[str]:
    name, net = f"sb{secrets.token_hex(4)}", f"10.{secrets.randbelow(100) + 100}.{secrets.randbelow(256)}"
    _ip("link", "add", name, "type", "bridge")
    try:
        _ip("address", "add", f"{net}.1/24", "dev", name)
        _ip("link", "set", name, "up")
        yield name
    finally:
        _ip("link", "delete", name)
        if network:
            _forget_rules(name, f"{net}.0/24")


def _ip(*words: str) -> None:
    subprocess.run(["ip", *words], check=True, capture_output=True, timeout=30)


def _forget_rules(bridge: str, net: str) -> None:
    """dockerd leaves the rules of its bridge in the firewall."""
    for table in ("nat", "filter"):
        listed = subprocess.run(["iptables", "-t", table, "-S"], capture_output=True, text=True, check=True).stdout
        for rule in listed.splitlines():
            if rule.startswith("-A") and (bridge in rule.split() or net in rule.split()):
                subprocess.run(["iptables", "-t", table, "-D", *rule.split()[1:]], check=False, capture_output=True)


@contextmanager
def _running(command: Sequence[object], folder: Path, env: dict[str, str]) -> Generator[None]:
    log = folder / "log"
    with log.open("wb") as output:
        process = subprocess.Popen(
            [str(word) for word in command],
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            env=os.environ | env,
        )
    try:
        _until(lambda: _answers(folder / "sock"), process, log)
        yield
    finally:
        process.terminate()
        try:
            process.wait(_DOWN_WITHIN)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait(10)


def _answers(path: Path) -> bool:
    connection = _Unix(path)
    try:
        connection.request("GET", "http://engine/_ping")
        return connection.getresponse().status == 200
    except OSError:
        return False
    finally:
        connection.close()


def _until(condition: Callable[[], bool], process: subprocess.Popen[bytes], log: Path) -> None:
    deadline = time.monotonic() + _UP_WITHIN
    while not condition():
        if process.poll() is not None or time.monotonic() > deadline:
            raise AssertionError(f"the engine did not start: {log.read_text('utf-8', 'replace')[-2000:]}")
        time.sleep(0.05)
