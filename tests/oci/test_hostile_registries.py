"""Whatever a registry, its mirror or a helper answers: an error of ours that says what it is, or another way round."""

from __future__ import annotations

import base64
import hashlib
import json
import os
import secrets
import signal
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import anyio
import pytest

from specbuild.errors import DownloadError, ImageNotFoundError, RateLimitedError, RegistryDeniedError
from specbuild.oci.addresses import resolved, same_origin
from specbuild.oci.content import OCI_INDEX, OCI_MANIFEST
from specbuild.oci.credentials import find_credentials
from specbuild.oci.places import Places
from specbuild.oci.pull import Image, open_puller
from specbuild.oci.push import Upload, push_image
from specbuild.oci.reference import parse_reference
from specbuild.retry import Retry
from specbuild.testing.faulty_registry import Fault, faulty
from specbuild.testing.images import MadeImage, file, image, layer
from specbuild.testing.registry import TestRegistry

pytestmark = pytest.mark.engine

SOON = Retry(attempts=3, first=0.01, longest=0.05)
ALWAYS = 1_000_000
DEEP = b"[" * 200_000


def places(home: Path) -> Places:
    return Places(environ={}, home=home, root=home)


def made_image() -> MadeImage:
    return image(layer(file("a", secrets.token_bytes(1000))))


async def push(host: str, made: MadeImage, home: Path, repository: str = "") -> str:
    name = f"{host}/{repository or f'test/{secrets.token_hex(6)}'}:1"
    uploads: list[Upload] = []
    for each in made.uploads:
        path = anyio.Path(home / each.descriptor.digest)  # content that is sent as it is read
        await path.write_bytes(each.source if isinstance(each.source, bytes) else b"")
        uploads.append(replace(each, source=Path(path)))
    await push_image(
        parse_reference(name), made.manifest, made.media_type, uploads, places=places(home), retry=SOON
    )  # fmt: skip
    return name


async def pull(name: str, home: Path) -> Image:
    async with open_puller(
        parse_reference(name), home / secrets.token_hex(4), places=places(home), retry=SOON
    ) as puller:  # fmt: skip
        found = await puller.resolve()
        for each in found.manifest.layers:
            await puller.blob(each)
        return found


def bearer(realm: str) -> Fault:
    header = {"WWW-Authenticate": f'Bearer realm="{realm}",service="s"'}
    return Fault("GET", "/manifests/", ALWAYS, status=401, headers=header)


@pytest.mark.parametrize(
    "token",
    [DEEP, b"[]", b'{"token": 5}', b'{"token": "a\\r\\nb"}', b"<html>", b"\xff\xfe"],
    ids=["deep", "list", "number", "lines", "page", "bytes"],
)
async def test_what_is_no_token_is_told(server: TestRegistry, tmp_path: Path, token: bytes) -> None:
    faults = [bearer("http://HOST/token"), Fault("GET", "^/token", ALWAYS, status=200, body=token)]
    with faulty(server.url, faults) as proxy:
        faults[0].headers = {"WWW-Authenticate": f'Bearer realm="{proxy.url}/token"'}
        with pytest.raises(DownloadError, match="no token"):
            await pull(f"{proxy.host}/test/x:1", tmp_path)


@pytest.mark.parametrize("seconds", ["1" + "0" * 400, "1e999", "NaN", "-1", "true", '"60"', "null"])
async def test_a_token_lasts_some_time_whatever_is_said(server: TestRegistry, tmp_path: Path, seconds: str) -> None:
    name = await push(server.host, made_image(), tmp_path)
    token = Fault("GET", "^/token", ALWAYS, status=200, body=f'{{"token": "t", "expires_in": {seconds}}}'.encode())
    challenge = Fault("GET", "/manifests/", 1, status=401)
    with faulty(server.url, [token, challenge]) as proxy:
        challenge.headers = {"WWW-Authenticate": f'Bearer realm="{proxy.url}/token"'}
        await pull(name.replace(server.host, proxy.host), tmp_path)
        assert proxy.asked("GET", "/manifests/")[-1]["authorization"] == "Bearer t"


@pytest.mark.parametrize(
    "realm", ["", "/token", "file:///etc/passwd", "http://[::::]/t", "http://localhost:999999/t", "http://xn--a.x/"]
)
async def test_a_service_of_tokens_that_has_no_address_is_told(
    server: TestRegistry, tmp_path: Path, realm: str
) -> None:
    with faulty(server.url, [bearer(realm)]) as proxy, pytest.raises(DownloadError, match=r"no address|cannot be"):
        await pull(f"{proxy.host}/test/x:1", tmp_path)


@pytest.mark.parametrize("host", ["localhost:99999", "[:::::]:80", "xn--a.invalid"])
async def test_a_name_of_no_server_is_told(tmp_path: Path, host: str) -> None:
    with pytest.raises(DownloadError, match="cannot be asked"):
        await pull(f"{host}/test/x:1", tmp_path)


@pytest.mark.parametrize("body", [DEEP, b"x" * (2 << 20), b'{"errors": ["x"]}'], ids=["deep", "long", "words"])
async def test_a_refusal_is_one_whatever_it_says(server: TestRegistry, tmp_path: Path, body: bytes) -> None:
    refusal = Fault("GET", "/manifests/", ALWAYS, status=403, body=body)
    with faulty(server.url, [refusal]) as proxy, pytest.raises(RegistryDeniedError):
        await pull(f"{proxy.host}/test/x:1", tmp_path)


@pytest.mark.parametrize("wait", ["\xb2", "9" * 400, "Fri, 31 Dec 9999999999 23:59:59 GMT", "-5", "soon"])
async def test_any_wait_that_a_server_asks_for_is_understood(server: TestRegistry, tmp_path: Path, wait: str) -> None:
    limit = Fault("GET", "/manifests/", ALWAYS, status=429, headers={"Retry-After": wait})
    with faulty(server.url, [limit]) as proxy, pytest.raises(RateLimitedError):
        await pull(f"{proxy.host}/test/x:1", tmp_path)


TROUBLE: Mapping[str, Sequence[Fault]] = {
    "wants a long wait": [Fault("GET", "/manifests/", ALWAYS, status=429, headers={"Retry-After": "3600"})],
    "wants a long wait for blobs": [Fault("GET", "/blobs/", ALWAYS, status=429, headers={"Retry-After": "3600"})],
    "shows a page": [Fault("GET", "/manifests/", ALWAYS, status=200, body=b"<html>")],
    "sends without end": [Fault("GET", "/manifests/", ALWAYS, status=200, body=b" " * (5 << 20))],
    "gives no token": [bearer("/token")],
    "sends other blobs": [Fault("GET", "/blobs/", ALWAYS, corrupt=True)],
}


@pytest.mark.timeout(60)
@pytest.mark.parametrize("faults", TROUBLE.values(), ids=TROUBLE.keys())
async def test_a_mirror_in_any_trouble_is_passed_over(
    server: TestRegistry, tmp_path: Path, faults: Sequence[Fault]
) -> None:
    made = made_image()
    await push(server.host, made, tmp_path, "library/busy")
    with faulty(server.url, [replace(fault) for fault in faults]) as bad, faulty(server.url) as good:
        mirrors = ["http://[", "://", "http://a b", f"https://{bad.host}/x", bad.url, good.url]
        (tmp_path / "etc/docker").mkdir(parents=True)
        (tmp_path / "etc/docker/daemon.json").write_text(json.dumps({"registry-mirrors": mirrors}))
        found = await pull("docker.io/library/busy:1", tmp_path)
        assert found.digest == made.descriptor.digest
        assert bad.requests
        assert good.requests


def platforms(made: MadeImage, *entries: Mapping[str, object]) -> Fault:
    about = {"mediaType": OCI_MANIFEST, "digest": made.descriptor.digest, "size": made.descriptor.size}
    text = json.dumps({"schemaVersion": 2, "manifests": [{**about, **entry} for entry in entries]})
    return Fault("GET", "/manifests/1", ALWAYS, status=200, headers={"Content-Type": OCI_INDEX}, body=text.encode())


ODD: Mapping[str, Sequence[Mapping[str, object]]] = {
    "names no platform": [{}],
    "has entries that make no sense": [
        {"platform": {"os": 5}},
        {"size": -1},
        {"platform": {"os": "linux", "architecture": "amd64"}, "annotations": {"a": None}},
        {},
    ],
    "has attestations": [{"platform": {"os": "unknown", "architecture": "unknown"}}, {}],
}


@pytest.mark.parametrize("entries", ODD.values(), ids=ODD.keys())
async def test_an_index_that_is_odd_is_used_as_far_as_it_makes_sense(
    server: TestRegistry, tmp_path: Path, entries: Sequence[Mapping[str, object]]
) -> None:
    made = made_image()
    name = await push(server.host, made, tmp_path)
    with faulty(server.url, [platforms(made, *entries)]) as proxy:
        found = await pull(name.replace(server.host, proxy.host), tmp_path)
        assert found.digest == made.descriptor.digest


@pytest.mark.parametrize(("field", "other"), [("architecture", "s390x"), ("os", "windows")])
async def test_an_image_for_another_machine_is_told_before_anything_runs(
    server: TestRegistry, tmp_path: Path, field: str, other: str
) -> None:
    made = image(layer(file("a")), platform={field: other})
    name = await push(server.host, made, tmp_path)
    with pytest.raises(ImageNotFoundError, match="has no image for") as error:
        await pull(name, tmp_path)
    assert other in error.value.hint


async def test_an_image_that_was_named_by_another_kind_of_digest_stays_so_pinned(
    server: TestRegistry, tmp_path: Path
) -> None:
    made = made_image()
    name = await push(server.host, made, tmp_path)
    digest = f"sha512:{hashlib.sha512(made.manifest).hexdigest()}"
    answer = Fault("GET", "/manifests/sha512", ALWAYS, status=200, body=made.manifest)
    with faulty(server.url, [answer]) as proxy:
        found = await pull(f"{name.replace(server.host, proxy.host).removesuffix(':1')}@{digest}", tmp_path)
        assert found.digest == digest


@pytest.mark.parametrize("place", ["http://[::::]/", "http://localhost:99999/", "ftp://x/"])
async def test_a_place_for_blobs_that_is_none_is_told(server: TestRegistry, tmp_path: Path, place: str) -> None:
    odd = Fault("POST", "/blobs/uploads/", ALWAYS, status=202, headers={"Location": place})
    with faulty(server.url, [odd]) as proxy, pytest.raises(DownloadError, match="no address"):
        await push(proxy.host, made_image(), tmp_path)


async def test_content_follows_a_redirect_and_credentials_do_not(server: TestRegistry, tmp_path: Path) -> None:
    user = base64.b64encode(b"user:password").decode()
    wall = Fault("HEAD", "/blobs/", 1, status=401, headers={"WWW-Authenticate": 'Basic realm="test"'})
    with faulty(server.url) as other:
        away = Fault("POST", "/blobs/uploads/", ALWAYS, status=307)
        with faulty(server.url, [wall, away]) as proxy:
            (tmp_path / ".docker").mkdir()
            (tmp_path / ".docker/config.json").write_text(json.dumps({"auths": {proxy.host: {"auth": user}}}))
            repository = f"test/{secrets.token_hex(6)}"
            away.headers = {"Location": f"{other.url}/v2/{repository}/blobs/uploads/"}
            await push(proxy.host, made_image(), tmp_path, repository)
            assert proxy.asked("PUT", "/manifests/")[0]["authorization"] == f"Basic {user}"
            assert not [headers for _, _, headers in other.requests if "authorization" in headers]
            assert other.asked("PUT", "/blobs/uploads/")


async def test_an_upload_that_is_sent_elsewhere_is_sent_there(server: TestRegistry, tmp_path: Path) -> None:
    with faulty(server.url) as other:
        repository = f"test/{secrets.token_hex(6)}"
        away = Fault("PUT", "/manifests/", ALWAYS, status=307)
        with faulty(server.url, [away]) as proxy:
            away.headers = {"Location": f"{other.url}/v2/{repository}/manifests/1"}
            await push(proxy.host, made_image(), tmp_path, repository)
        assert other.asked("PUT", "/manifests/1")


@pytest.mark.parametrize(
    ("base", "location", "leads"),
    [
        ("https://r.io/v2/x", "/v2/y?a=b", "https://r.io/v2/y?a=b"),
        ("https://r.io/v2/x", "http://r.io/v2/y", "https://r.io/v2/y"),
        ("https://r.io:8443/v2/x", "http://r.io/v2/y", "https://r.io:8443/v2/y"),
        ("https://r.io/v2/x", "http://r.io:80/v2/y", "https://r.io/v2/y"),
        ("https://r.io/v2/x", "http://r.io:5000/v2/y", "http://r.io:5000/v2/y"),
        ("https://r.io/v2/x", "https://cdn.io/y", "https://cdn.io/y"),
        ("http://r.io/v2/x", "http://r.io/v2/y", "http://r.io/v2/y"),
    ],
)
def test_nothing_leads_to_the_same_host_in_a_less_safe_way(base: str, location: str, leads: str) -> None:
    assert resolved(base, location) == leads


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ("https://r.io/x", "https://R.io:443/y", True),
        ("https://r.io/x", "http://r.io/x", False),
        ("https://r.io/x", "https://r.io.evil/x", False),
        ("https://r.io/x", "https://r.io:8443/x", False),
        ("http://[::1]:5000/x", "http://[::1]:5000/y", True),
    ],
)
def test_credentials_are_for_one_server_in_one_way(one: str, other: str, same: bool) -> None:
    assert same_origin(one, other) is same


@pytest.mark.parametrize(
    "text",
    [
        DEEP.decode(),
        '{"auths": {"r.io": {"auth": "\xfc"}}}',
        '{"auths": {"r.io": {"username": "\\ud800", "password": "x"}}}',
    ],
    ids=["deep", "no base64", "half a character"],
)
async def test_credentials_that_make_no_sense_are_none(tmp_path: Path, text: str) -> None:
    (tmp_path / ".docker").mkdir()
    await anyio.Path(tmp_path / ".docker/config.json").write_text(text, encoding="utf-8")
    assert await find_credentials(places(tmp_path), "r.io", "a/b") is None


HELPERS: Mapping[str, tuple[str, bool]] = {
    "reads nothing": ("exec <&-\nANSWER", True),
    "leaves something behind": ("sleep 600 &\nANSWER", True),
    "prints bytes": (r"printf '\377\376'", False),
    "prints without end": ("head -c 3000000 /dev/zero | tr '\\0' '['", False),
    "fails": ("exit 1", False),
}


@pytest.mark.timeout(60)
@pytest.mark.parametrize(("script", "helps"), HELPERS.values(), ids=HELPERS.keys())
async def test_a_helper_may_be_as_odd_as_it_likes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, script: str, helps: bool
) -> None:
    answer = 'echo "{\\"Username\\": \\"me\\", \\"Secret\\": \\"s\\"}"'
    script = script.replace("ANSWER", answer).replace("sleep 600 &", f"sleep 600 & echo $! >{tmp_path}/pid")
    _install(tmp_path, monkeypatch, script)
    found = await find_credentials(places(tmp_path), "r.io", "a/b")
    assert (found.password if found else None) == ("s" if helps else None)
    if (tmp_path / "pid").exists():
        os.kill(int((tmp_path / "pid").read_text()), signal.SIGKILL)


async def test_a_helper_that_is_given_up_leaves_no_process(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    new, pid = tmp_path / "new", tmp_path / "pid"
    _install(tmp_path, monkeypatch, f"sleep 600 & echo $! >{new}; mv {new} {pid}; wait")
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(find_credentials, places(tmp_path), "r.io", "a/b")
        while not (tmp_path / "pid").exists():  # noqa: ASYNC110 - another program makes it
            await anyio.sleep(0.01)
        tasks.cancel_scope.cancel()
    status = Path("/proc") / (tmp_path / "pid").read_text().strip() / "status"
    with anyio.fail_after(10):
        while status.exists() and "\nState:\tZ" not in status.read_text():  # noqa: ASYNC110
            await anyio.sleep(0.01)


def _install(home: Path, monkeypatch: pytest.MonkeyPatch, script: str) -> None:
    program = home / "docker-credential-odd"
    program.write_text(f"#!/bin/sh\n{script}\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{home}:/usr/bin:/bin")
    (home / ".docker").mkdir()
    (home / ".docker/config.json").write_text('{"credsStore": "odd"}')
