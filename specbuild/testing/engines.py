"""Private container engines for tests: each with a data folder, a socket and a bridge of its own; nothing is left.

Both need root and `iproute2`; Docker needs `docker.io` and `iptables`, Podman needs `podman`, `runc` and `netavark`.
"""

from __future__ import annotations

import json
import os
import resource
import secrets
import subprocess
from collections.abc import Generator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import anyio

from specbuild.errors import SandboxUnavailableError
from specbuild.sandbox.docker.boxes import LABEL
from specbuild.sandbox.docker.endpoint import Endpoint
from specbuild.testing.daemons import UnixConnection, answers, require, running, short_folder

_IP_WITHIN = 60.0
_CALL_WITHIN = 240.0
"""Seconds for one call of an engine's command line; builds and archives take some."""
_MOST_PROCESSES = 32768
"""Podman bounds itself to that many and, without CAP_SYS_RESOURCE, its containers can have no more."""


@dataclass(frozen=True, slots=True)
class PrivateEngine:
    """An engine that runs."""

    name: str
    """`docker` or `podman`."""
    socket: Path
    root: Path
    """The folder of its data."""
    bridge: str
    """The network interface on which its containers are, while there are any."""
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
        connection = UnixConnection(self.socket)
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
            env={**os.environ, **self.env},
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


@contextmanager
def docker_engine(*, network: bool = False) -> Generator[PrivateEngine]:
    """A Docker engine. Its containers reach other machines only with `network`, which adds rules to the firewall.

    Raises SandboxUnavailableError where it cannot be started, or cannot run a container.
    """
    require("dockerd", "docker", "iptables", "ip", packages="docker.io iptables iproute2")
    with short_folder("sbe-") as folder, _bridge(network=network) as bridge:
        command = ["dockerd", "--data-root", folder / "root", "--exec-root", folder / "exec"]
        command += ["--pidfile", folder / "pid", "-H", f"unix://{folder}/sock", "--bridge", bridge]
        command += ["--ip6tables=false"]
        command += [] if network else ["--iptables=false", "--ip-masq=false", "--ip-forward=false"]
        with running(command, folder / "log", _temporary(folder), lambda: answers(folder / "sock")):
            env = {"DOCKER_HOST": f"unix://{folder}/sock", "DOCKER_BUILDKIT": "0"}
            engine = PrivateEngine("docker", folder / "sock", folder / "root", bridge, ("docker",), env)
            _prove(engine, folder)
            yield engine


@contextmanager
def podman_engine() -> Generator[PrivateEngine]:
    """Podman's Docker-compatible service, whose containers reach no other machine.

    Raises SandboxUnavailableError where it cannot be started, or cannot run a container.
    """
    require("podman", "runc", "ip", packages="podman runc netavark iproute2")
    with short_folder("sbe-") as folder, _gone_afterwards(_new_name()) as bridge:
        env = _temporary(folder) | {"CONTAINERS_CONF": str(_podman_settings(folder, bridge))}
        places = ("--root", folder / "root", "--runroot", folder / "run", "--tmpdir", folder / "tmp")
        argv = ("podman", *map(str, places), "--storage-driver", "overlay")
        engine = PrivateEngine("podman", folder / "sock", folder / "root", bridge, argv, env)
        command = [*argv, "system", "service", "-t", "0", engine.address]
        with running(command, folder / "log", env, lambda: answers(folder / "sock")):
            try:
                _prove(engine, folder)
                yield engine
            finally:
                engine.call("rm", "--all", "--force", "--time", "0")


def _prove(engine: PrivateEngine, folder: Path) -> None:
    """One round of what tests do, so that a machine on which it cannot work says so once."""
    from specbuild.sandbox.docker import DockerBackend  # aiodocker takes a while to import

    with ThreadPoolExecutor(1) as thread:  # whoever asks may have a loop that runs
        probe = thread.submit(anyio.run, DockerBackend(folder / "proof", engine.endpoint).probe).result()
    if failed := [finding for finding in probe.findings if not finding.ok]:
        raise SandboxUnavailableError(f"{engine.name} runs no containers here: {failed[0].detail}", hint=failed[0].hint)


def _temporary(folder: Path) -> dict[str, str]:
    """Temporary files of an engine lie in its own folder: Podman leaves a copy of each archive that it is sent."""
    (folder / "temporary").mkdir()
    return {"TMPDIR": str(folder / "temporary")}


def _podman_settings(folder: Path, bridge: str) -> Path:
    file = folder / "containers.conf"
    network = f'[network]\nnetwork_backend = "netavark"\nnetwork_config_dir = "{folder}/networks"\n'
    file.write_text(podman_config(f'image_copy_tmp_dir = "{folder}/temporary"\n') + network)
    (folder / "networks").mkdir()
    (folder / "networks/podman.json").write_text(json.dumps(_internal(bridge)))
    return file


def podman_config(engine: str = "") -> str:
    """For machines without systemd, with control groups of any version, and without the right to raise limits.

    `engine` are more lines for the table of that name; other tables can follow.
    """
    files = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    processes = min(resource.getrlimit(resource.RLIMIT_NPROC)[1], _MOST_PROCESSES)
    processes = processes if processes > 0 else _MOST_PROCESSES
    return (
        '[engine]\nruntime = "runc"\ncgroup_manager = "cgroupfs"\nevents_logger = "none"\nlock_type = "file"\n'
        f"{engine}[containers]\n"
        f'default_ulimits = ["nofile={files}:{files}", "nproc={processes}:{processes}"]\n'
    )


def _internal(bridge: str) -> dict[str, Any]:
    """Podman's default network, without a way out: then it needs no rules in the firewall, where it leaves its own."""
    net = _new_net()
    return {
        "name": "podman",
        "id": secrets.token_hex(32),
        "driver": "bridge",
        "network_interface": bridge,
        "created": "2020-01-01T00:00:00Z",
        "subnets": [{"subnet": f"{net}.0/24", "gateway": f"{net}.1"}],
        "ipv6_enabled": False,
        "internal": True,
        "dns_enabled": False,
        "ipam_options": {"driver": "host-local"},
    }


@contextmanager
def _bridge(*, network: bool) -> Generator[str]:
    net, bridge = _new_net(), _new_name()
    try:
        with _gone_afterwards(bridge) as name:
            _ip("link", "add", name, "type", "bridge")
            _ip("address", "add", f"{net}.1/24", "dev", name)
            _ip("link", "set", name, "up")
            yield name
    finally:
        if network:
            _forget_rules(bridge, f"{net}.0/24")


def _new_name() -> str:
    return f"sb{secrets.token_hex(4)}"


def _new_net() -> str:
    """The first three numbers of private addresses that hardly anybody else has."""
    return f"10.{secrets.randbelow(100) + 100}.{secrets.randbelow(256)}"


@contextmanager
def _gone_afterwards(interface: str) -> Generator[str]:
    try:
        yield interface
    finally:
        if Path("/sys/class/net", interface).exists():
            _ip("link", "delete", interface)


def _ip(*words: str) -> None:
    done = subprocess.run(["ip", *words], capture_output=True, text=True, timeout=_IP_WITHIN, check=False)
    if done.returncode:
        raise SandboxUnavailableError(
            f"`ip {' '.join(words)}` failed: {done.stderr.strip()}",
            hint="run these tests where root may make network interfaces: no container without privileges",
        )


def _forget_rules(bridge: str, net: str) -> None:
    """dockerd leaves the rules of its bridge in the firewall."""
    for table in ("nat", "filter"):
        listed = subprocess.run(["iptables", "-t", table, "-S"], capture_output=True, text=True, check=True).stdout
        for rule in listed.splitlines():
            if rule.startswith("-A") and (bridge in rule.split() or net in rule.split()):
                subprocess.run(["iptables", "-t", table, "-D", *rule.split()[1:]], check=False, capture_output=True)
