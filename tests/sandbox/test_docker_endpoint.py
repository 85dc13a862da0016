"""Which engine is meant: as the docker command line would have it."""

from __future__ import annotations

import hashlib
import json
import socket
import subprocess
from pathlib import Path

import pytest

from specbuild.errors import ConfigError, EngineNotRunningError
from specbuild.sandbox.docker.endpoint import Endpoint, find_endpoint, sockets
from specbuild.testing.remote import interpreter


def _context(home: Path, name: str, host: str, *, current: bool = True, lax: bool = False) -> Path:
    """Writes a context as docker does; the folder of its TLS files."""
    config = home / ".docker"
    digest = hashlib.sha256(name.encode()).hexdigest()
    meta = config / "contexts/meta" / digest
    meta.mkdir(parents=True)
    docker = {"Host": host, "SkipTLSVerify": lax}
    (meta / "meta.json").write_text(json.dumps({"Name": name, "Metadata": {}, "Endpoints": {"docker": docker}}))
    if current:
        (config / "config.json").write_text(json.dumps({"currentContext": name}))
    return config / "contexts/tls" / digest / "docker"


def _found(home: Path, **env: str) -> Endpoint:
    return find_endpoint({"HOME": str(home), "XDG_RUNTIME_DIR": str(home / "run"), **env})


def test_docker_host_goes_before_the_context(tmp_path: Path) -> None:
    _context(tmp_path, "far", "tcp://far.test:2376")
    assert _found(tmp_path, DOCKER_HOST="tcp://near.test:2375").address == "tcp://near.test:2375"
    assert _found(tmp_path, DOCKER_HOST="unix:///a.sock").socket == Path("/a.sock")


def test_the_current_context_is_used(tmp_path: Path) -> None:
    _context(tmp_path, "far", "tcp://far.test:2376")
    found = _found(tmp_path)
    assert (found.address, found.tls) == ("tcp://far.test:2376", None)
    assert "far" in found.origin


def test_a_context_can_be_named_by_a_variable(tmp_path: Path) -> None:
    _context(tmp_path, "far", "tcp://far.test:2376")
    _context(tmp_path, "near", "unix:///near.sock", current=False)
    assert _found(tmp_path, DOCKER_CONTEXT="near").address == "unix:///near.sock"


def test_the_configuration_can_lie_elsewhere(tmp_path: Path) -> None:
    _context(tmp_path / "other", "far", "tcp://far.test:2376")
    assert _found(tmp_path, DOCKER_CONFIG=str(tmp_path / "other/.docker")).address == "tcp://far.test:2376"


def test_tls_files_of_a_context_are_used(tmp_path: Path) -> None:
    tls = _context(tmp_path, "far", "tcp://far.test:2376", lax=True)
    tls.mkdir(parents=True)
    for name in ("ca.pem", "cert.pem", "key.pem"):
        (tls / name).write_text("x")
    found = _found(tmp_path).tls
    assert found is not None
    assert (found.ca, found.cert, found.key, found.verify) == (tls / "ca.pem", tls / "cert.pem", tls / "key.pem", False)


def test_tls_can_be_asked_for_by_variables(tmp_path: Path) -> None:
    found = _found(
        tmp_path, DOCKER_HOST="tcp://far.test:2376", DOCKER_TLS_VERIFY="1", DOCKER_CERT_PATH=str(tmp_path)
    ).tls
    assert found is not None
    assert (found.ca, found.verify) == (tmp_path / "ca.pem", True)
    assert _found(tmp_path, DOCKER_HOST="unix:///a.sock", DOCKER_TLS_VERIFY="1").tls is None


def test_broken_contexts_are_told(tmp_path: Path) -> None:
    config = tmp_path / ".docker"
    config.mkdir()
    (config / "config.json").write_text("{")
    with pytest.raises(ConfigError, match=r"config\.json"):
        _found(tmp_path)
    (config / "config.json").write_text(json.dumps({"currentContext": "gone"}))
    with pytest.raises(ConfigError, match=f"there is no Docker context 'gone' in {config}$"):
        _found(tmp_path)
    meta = config / "contexts/meta" / hashlib.sha256(b"gone").hexdigest()
    meta.mkdir(parents=True)
    (meta / "meta.json").write_text("{}")
    with pytest.raises(ConfigError, match="'gone' cannot be used"):
        _found(tmp_path)
    (config / "config.json").write_text(json.dumps(["no", "object"]))
    with pytest.raises(ConfigError, match="address"):
        _found(tmp_path, DOCKER_HOST="nonsense")


def test_a_socket_at_its_usual_place_is_found(tmp_path: Path) -> None:
    path = tmp_path / ".docker/run/docker.sock"
    path.parent.mkdir(parents=True)
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as server:
        server.bind(str(path))
        assert _found(tmp_path).socket in {path, Path("/var/run/docker.sock")}


@pytest.mark.root
def test_an_engine_that_this_user_may_use_goes_before_one_that_he_may_not(public: Path, ordinary_user: str) -> None:
    first, mine = public / "run/docker.sock", public / "run/podman/podman.sock"
    mine.parent.mkdir(parents=True)
    program = """
import os
from specbuild.sandbox.docker.endpoint import find_endpoint
print(find_endpoint(os.environ).socket)
"""
    python, path = interpreter(ordinary_user)
    with socket.socket(socket.AF_UNIX) as others, socket.socket(socket.AF_UNIX) as own:
        others.bind(str(first))
        first.chmod(0o600)
        own.bind(str(mine))
        mine.chmod(0o666)
        env = {"HOME": str(public), "XDG_RUNTIME_DIR": str(public / "run"), "PYTHONPATH": path}
        found = subprocess.run(
            [python, "-c", program],
            user=ordinary_user,
            group=ordinary_user,
            extra_groups=[],
            env=env,
            capture_output=True,
            text=True,
        )
    assert found.stdout.strip() == str(mine), found.stderr


def test_the_default_context_stands_for_the_usual_places(tmp_path: Path) -> None:
    path = tmp_path / "run/docker.sock"
    path.parent.mkdir(parents=True)
    (tmp_path / ".docker").mkdir()
    (tmp_path / ".docker/config.json").write_text(json.dumps({"currentContext": "default"}))
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as server:
        server.bind(str(path))
        assert _found(tmp_path).socket in {path, Path("/var/run/docker.sock")}


@pytest.mark.parametrize(
    "address",
    [*("foo", "fd://", "unix://", "unix://relative", "tcp://", "tcp://:1", "tcp://[::1", "tcp://host:99999", "\0")],
)
def test_an_address_that_is_none_is_told(tmp_path: Path, address: str) -> None:
    with pytest.raises(ConfigError, match="no address") as caught:
        _found(tmp_path, DOCKER_HOST=address)
    assert "unix:///" in caught.value.hint
    _context(tmp_path, "odd", address)
    with pytest.raises(ConfigError, match="no address"):
        _found(tmp_path)


def test_where_no_engine_is_it_says_where_it_was_looked_for(tmp_path: Path) -> None:
    taken = [path for path in sockets({"HOME": str(tmp_path), "XDG_RUNTIME_DIR": str(tmp_path)}) if path.is_socket()]
    if taken:
        assert _found(tmp_path).socket in taken
        return
    with pytest.raises(EngineNotRunningError, match=r"docker\.sock") as caught:
        _found(tmp_path)
    assert "podman" in caught.value.hint
