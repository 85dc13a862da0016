"""What users have set for Docker and Podman counts: credentials, helpers, mirrors, registries without certificates."""

from __future__ import annotations

import base64
import json
import os
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from specbuild.errors import UsageError
from specbuild.oci.authorization import challenges
from specbuild.oci.credentials import Credentials, find_credentials
from specbuild.oci.hosts import Endpoint, endpoints
from specbuild.oci.places import Places
from specbuild.oci.reference import parse_reference

HELPER = """#!/bin/sh
read -r server
case "$1 $server" in
"get ghcr.io") echo '{"ServerURL": "ghcr.io", "Username": "helped", "Secret": "s3"}' ;;
"get https://index.docker.io/v1/") echo '{"Username": "<token>", "Secret": "t0ken"}' ;;
*) echo "credentials not found in native keychain"; exit 1 ;;
esac
"""


def auth(text: str) -> str:
    return base64.b64encode(text.encode()).decode()


def write(path: Path, content: dict[str, Any] | str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(content if isinstance(content, str) else json.dumps(content))
    return path


def places(home: Path, **environ: str) -> Places:
    return Places(environ, home, home)


@pytest.fixture
def helper(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    program = write(tmp_path / "bin/docker-credential-test", HELPER)
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{program.parent}:{os.environ['PATH']}")
    return "test"


async def found(home: Path, registry: str, repository: str = "a/b", **environ: str) -> Credentials | None:
    return await find_credentials(places(home, **environ), registry, repository)


async def test_what_docker_login_has_written_is_read(tmp_path: Path) -> None:
    entries = {
        "ghcr.io": {"auth": auth("user:pass:word")},
        "https://quay.io/v1/": {"auth": auth("old:form")},
        "https://index.docker.io/v1/": {"username": "plain", "password": "text"},
        "registry.example.com": {"identitytoken": "id"},
        "broken.example.com": {"auth": "???"},
    }
    write(tmp_path / ".docker/config.json", {"auths": entries})
    assert await found(tmp_path, "ghcr.io") == Credentials("user", "pass:word")
    assert await found(tmp_path, "quay.io") == Credentials("old", "form")
    assert await found(tmp_path, "docker.io") == Credentials("plain", "text")
    assert await found(tmp_path, "registry.example.com") == Credentials(identity_token="id")
    assert await found(tmp_path, "broken.example.com") is None
    assert await found(tmp_path, "unknown.example.com") is None
    assert "pass" not in repr(await found(tmp_path, "ghcr.io"))


async def test_what_podman_login_has_written_is_read_the_longest_name_first(tmp_path: Path) -> None:
    entries = {"quay.io": {"auth": auth("all:1")}, "quay.io/a/b": {"auth": auth("one:2")}}
    write(tmp_path / "run/containers/auth.json", {"auths": entries})
    where = {"XDG_RUNTIME_DIR": str(tmp_path / "run")}
    assert await found(tmp_path, "quay.io", "a/b", **where) == Credentials("one", "2")
    assert await found(tmp_path, "quay.io", "a/c", **where) == Credentials("all", "1")
    named = write(tmp_path / "named.json", {"auths": {"quay.io": {"auth": auth("named:3")}}})
    assert await found(tmp_path, "quay.io", "a/b", REGISTRY_AUTH_FILE=str(named)) == Credentials("named", "3")


async def test_helpers_are_asked(tmp_path: Path, helper: str) -> None:
    write(tmp_path / ".docker/config.json", {"credHelpers": {"ghcr.io": helper}})
    assert await found(tmp_path, "ghcr.io") == Credentials("helped", "s3")
    assert await found(tmp_path, "quay.io") is None
    write(tmp_path / ".docker/config.json", {"auths": {"ghcr.io": {}}, "credsStore": helper})
    assert await found(tmp_path, "ghcr.io") == Credentials("helped", "s3")
    assert await found(tmp_path, "docker.io") == Credentials(identity_token="t0ken")
    for missing in ("not-installed", "../../bin/sh"):
        write(tmp_path / ".docker/config.json", {"credsStore": missing})
        assert await found(tmp_path, "ghcr.io") is None


async def test_files_that_make_no_sense_hold_nothing(tmp_path: Path) -> None:
    for text in ("", "[]", "{", '{"auths": []}', '{"auths": {"ghcr.io": 1}}', '{"credHelpers": 3}'):
        write(tmp_path / ".docker/config.json", text)
        assert await found(tmp_path, "ghcr.io") is None


def asked(home: Path, name: str, *, push: bool = False) -> list[Endpoint]:
    return list(endpoints(parse_reference(name), places(home), push=push))


def test_a_registry_is_asked_itself_and_this_machine_needs_no_certificate(tmp_path: Path) -> None:
    assert asked(tmp_path, "python:3") == [Endpoint("registry-1.docker.io", "library/python", login="docker.io")]
    assert asked(tmp_path, "ghcr.io/a/b") == [Endpoint("ghcr.io", "a/b", login="ghcr.io")]
    for host in ("localhost:5000", "127.0.0.1", "127.9.9.9:1", "[::1]:5000"):
        assert asked(tmp_path, f"{host}/a") == [Endpoint(host, "a", insecure=True, login=host)]


def test_mirrors_and_insecure_registries_of_docker_count(tmp_path: Path) -> None:
    settings = {
        "registry-mirrors": ["https://mirror.example.com/path/", "http://plain.example.com:5000"],
        "insecure-registries": ["old.example.com", "10.1.0.0/16"],
    }
    write(tmp_path / "etc/docker/daemon.json", settings)
    first, second, last = asked(tmp_path, "python:3")
    assert first == Endpoint("mirror.example.com", "path/library/python", login="mirror.example.com")
    assert (second.host, second.plain, second.insecure) == ("plain.example.com:5000", True, True)
    assert last.host == "registry-1.docker.io"
    assert [endpoint.host for endpoint in asked(tmp_path, "ghcr.io/a/b")] == ["ghcr.io"]
    assert [endpoint.host for endpoint in asked(tmp_path, "python:3", push=True)] == ["registry-1.docker.io"]
    assert [asked(tmp_path, f"{host}/a")[0].insecure for host in ("old.example.com", "10.1.2.3:5000", "10.2.0.1")] == [
        True, True, False,
    ]  # fmt: skip


def test_registries_conf_counts_the_longest_prefix_first(tmp_path: Path) -> None:
    conf = """
[[registry]]
prefix = "docker.io"
location = "cache.example.com/hub"
[[registry.mirror]]
location = "near.example.com:5000/m"
insecure = true
[[registry]]
prefix = "docker.io/secret"
blocked = true
[[registry]]
prefix = "*.internal"
insecure = true
[[registry]]
location = "quay.io"
insecure = true
"""
    write(tmp_path / "etc/containers/registries.conf", conf)
    near, own = asked(tmp_path, "python:3")
    assert (near.host, near.repository, near.insecure) == ("near.example.com:5000", "m/library/python", True)
    assert (own.host, own.repository) == ("cache.example.com", "hub/library/python")
    with pytest.raises(UsageError, match="blocked"):
        asked(tmp_path, "docker.io/secret/x")
    assert asked(tmp_path, "a.internal/x")[0].insecure
    assert asked(tmp_path, "quay.io/x/y") == [Endpoint("quay.io", "x/y", insecure=True, login="quay.io")]
    assert not asked(tmp_path, "quay.io.evil.com/x/y")[0].insecure


def test_challenges_are_read_as_registries_write_them() -> None:
    header = 'Bearer realm="https://auth.example.com/token?x=1,2",service="a b",scope="repository:x:pull,push"'
    header += ", Basic realm=r"
    bearer, basic = challenges(header)
    assert bearer.scheme == "bearer"
    assert bearer.parameters["realm"] == "https://auth.example.com/token?x=1,2"
    assert bearer.parameters["scope"] == "repository:x:pull,push"
    assert (basic.scheme, basic.parameters) == ("basic", {"realm": "r"})


@given(st.text(max_size=60))
def test_any_header_is_read_to_its_end(header: str) -> None:
    assert len(list(challenges(header))) <= len(header)
