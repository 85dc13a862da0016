"""Images go to a registry and come back, whatever happens on the way: whole, or with an error that says why."""

from __future__ import annotations

import base64
import json
import secrets
import socket
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import anyio
import pytest

from specbuild.errors import (
    DownloadError,
    ImageNotFoundError,
    IntegrityError,
    RateLimitedError,
    RegistryDeniedError,
    TransientError,
    UnreachableError,
)
from specbuild.oci.content import OCI_INDEX, Platform
from specbuild.oci.places import Places
from specbuild.oci.pull import Image, Puller, open_puller
from specbuild.oci.push import Upload, push_image
from specbuild.oci.reference import parse_reference
from specbuild.retry import Retry
from specbuild.testing.faulty_registry import Fault, Gate, Proxy, faulty
from specbuild.testing.images import MadeImage, file, image, index, layer
from specbuild.testing.registry import TestRegistry

pytestmark = pytest.mark.engine

SOON = Retry(attempts=3, first=0.01, longest=0.05)
DATA = secrets.token_bytes(3 << 20)


def places(home: Path, **environ: str) -> Places:
    return Places(environ=environ, home=home, root=home)


def new_name() -> str:
    return f"test/{secrets.token_hex(6)}"


def big_image() -> MadeImage:
    """Two layers, whose content does not compress."""
    return image(
        layer(file("a", DATA + secrets.token_bytes(8))), layer(file("b", secrets.token_bytes(1000))), Env=["A=b"]
    )


async def publish(host: str, made: MadeImage, home: Path, name: str = "") -> str:
    name = name or f"{host}/{new_name()}:1"
    await push_image(
        parse_reference(name), made.manifest, made.media_type, made.uploads, places=places(home), retry=SOON
    )
    return name


async def pull(name: str, home: Path, *, where: Places | None = None) -> tuple[Image, list[bytes]]:
    """An image and its blobs."""
    async with open_puller(
        parse_reference(name), home / "blobs", places=where or places(home), retry=SOON
    ) as puller:  # fmt: skip
        found = await puller.resolve()
        return found, [await _read(puller, number, found) for number in range(len(found.manifest.layers))]


async def _read(puller: Puller, number: int, found: Image) -> bytes:
    return (await puller.blob(found.manifest.layers[number])).read_bytes()


def content(made: MadeImage) -> list[bytes]:
    return [bytes(upload.source) for upload in made.uploads[1:] if isinstance(upload.source, bytes)]


async def test_what_is_pushed_is_pulled(server: TestRegistry, tmp_path: Path) -> None:
    made = big_image()
    name = await publish(server.host, made, tmp_path)
    found, blobs = await pull(name, tmp_path)
    assert found.digest == made.descriptor.digest
    assert found.config.diff_ids == made.diff_ids
    assert found.config.env == (("A", "b"),)
    assert blobs == content(made)
    pinned, _ = await pull(f"{name}@{found.digest}", tmp_path)
    assert pinned.manifest == found.manifest


async def test_a_file_is_pushed_as_it_is_read(server: TestRegistry, tmp_path: Path) -> None:
    made = big_image()
    path = tmp_path / "blob"
    path.write_bytes(content(made)[0])
    uploads = (made.uploads[0], Upload(made.uploads[1].descriptor, path), *made.uploads[2:])
    sent: list[bool] = []
    reference = parse_reference(f"{server.host}/{new_name()}:1")
    image = (reference, made.manifest, made.media_type, uploads)
    for _ in range(2):
        digest = await push_image(*image, places=places(tmp_path), progress=lambda _, new: sent.append(new))
        assert digest == made.descriptor.digest
    assert sent == [True, True, True, False, False, False]
    assert (await pull(str(reference), tmp_path))[1] == content(made)


async def test_a_blob_is_mounted_from_a_repository_that_has_it(server: TestRegistry, tmp_path: Path) -> None:
    made = big_image()
    name = await publish(server.host, made, tmp_path)
    elsewhere = parse_reference(name).repository
    uploads = [Upload(each.descriptor, each.source, elsewhere) for each in made.uploads]
    with faulty(server.url) as proxy:
        reference = parse_reference(f"{proxy.host}/{new_name()}:1")
        await push_image(reference, made.manifest, made.media_type, uploads, places=places(tmp_path))
        assert not proxy.asked("PUT", "/blobs/uploads/")
    assert (await pull(str(reference).replace(proxy.host, server.host), tmp_path))[1] == content(made)


async def test_the_image_for_this_platform_is_taken_from_an_index(server: TestRegistry, tmp_path: Path) -> None:
    ours, theirs = big_image(), image(layer(file("x")))
    repository = f"{server.host}/{new_name()}"
    for made in (ours, theirs):
        await publish(server.host, made, tmp_path, f"{repository}@{made.descriptor.digest}")
    where = Platform(architecture="arm64")
    both = index(
        {"linux/arm64/v8": ours.descriptor, "unknown/unknown": theirs.descriptor, "linux/386": theirs.descriptor}
    )
    await push_image(parse_reference(f"{repository}:1"), both, OCI_INDEX, (), places=places(tmp_path))
    async with open_puller(parse_reference(f"{repository}:1"), tmp_path / "blobs", places=places(tmp_path)) as puller:
        assert (await puller.resolve(where)).digest == ours.descriptor.digest
        with pytest.raises(ImageNotFoundError, match="no image for linux/s390x") as told:
            await puller.resolve(Platform(architecture="s390x"))
    assert told.value.hint == "it has: linux/386, linux/arm64/v8"


PASSING = {
    "cut connections": [Fault("GET", "/blobs/", cut=500_000), Fault("GET", "/blobs/", cut=-1, times=2)],
    "a server that is overloaded": [
        Fault("GET", "/blobs/", status=503),
        Fault("GET", "/manifests/", status=500, times=2),
    ],
    "too many requests": [Fault("GET", "/blobs/", status=429, headers={"Retry-After": "0"}, times=2)],
    "a blob that is damaged once": [Fault("GET", "/blobs/", corrupt=True)],
    "a manifest that is damaged once": [Fault("GET", "/manifests/", corrupt=True)],
    "cut, and parts are not served": [Fault("GET", "/blobs/", cut=500_000), Fault("GET", "/blobs/", ignore_range=True)],
}


@pytest.mark.parametrize("faults", PASSING.values(), ids=PASSING.keys())
async def test_trouble_that_passes_is_overcome(faults: Sequence[Fault], server: TestRegistry, tmp_path: Path) -> None:
    made = big_image()
    name = await publish(server.host, made, tmp_path)
    again = [replace(fault) for fault in faults]
    with faulty(server.url, again) as proxy:
        found, blobs = await pull(name.replace(server.host, proxy.host), tmp_path)
        assert all(fault.times == 0 for fault in again)
    assert (found.digest, blobs) == (made.descriptor.digest, content(made))


async def test_a_download_goes_on_where_it_broke_off(server: TestRegistry, tmp_path: Path) -> None:
    made = big_image()
    name = await publish(server.host, made, tmp_path)
    digest = made.blobs[0].digest
    with faulty(server.url, [Fault("GET", f"/blobs/{digest}", cut=1_000_000, times=20)]) as proxy:
        _, blobs = await pull(name.replace(server.host, proxy.host), tmp_path)
        asked = [headers.get("range") for headers in proxy.asked("GET", f"/blobs/{digest}")]
    assert blobs == content(made)
    assert asked[0] is None
    assert asked[1:4] == ["bytes=1000000-", "bytes=2000000-", "bytes=3000000-"]


async def test_what_a_killed_process_has_left_is_used_if_it_is_right(server: TestRegistry, tmp_path: Path) -> None:
    made = big_image()
    name = await publish(server.host, made, tmp_path)
    folder = tmp_path / "blobs"
    folder.mkdir()
    for blob, damage in zip(made.blobs, (False, True), strict=True):
        data = content(made)[made.blobs.index(blob)][:500]
        (folder / f"{blob.digest.replace(':', '-')}.part").write_bytes(b"?" * 500 if damage else data)
    with faulty(server.url) as proxy:
        _, blobs = await pull(name.replace(server.host, proxy.host), tmp_path)
        assert proxy.asked("GET", made.blobs[0].digest)[0]["range"] == "bytes=500-"
    assert blobs == content(made)


LASTING = {
    "a damaged blob": ([Fault("GET", "/blobs/", corrupt=True, times=9)], IntegrityError, "was promised"),
    "a damaged manifest": ([Fault("GET", "/manifests/", corrupt=True, times=9)], IntegrityError, "was promised"),
    "too many requests": ([Fault("GET", "/blobs/", status=429, times=9)], RateLimitedError, "too many requests"),
    "a long wait": (
        [Fault("GET", "/manifests/", status=429, headers={"Retry-After": "3600"}, times=1)], RateLimitedError, "3600 s"
    ),
    "a broken server": ([Fault("GET", "/manifests/", status=502, times=9)], TransientError, "HTTP 502"),
    "cut connections": ([Fault("GET", "/blobs/", cut=-1, times=99)], TransientError, "broke"),
    "a gate": ([Fault("GET", "/manifests/", status=403, times=9)], RegistryDeniedError, "lets nobody read it"),
}  # fmt: skip


@pytest.mark.parametrize(("faults", "error", "words"), LASTING.values(), ids=LASTING.keys())
async def test_trouble_that_lasts_is_told(
    faults: list[Fault], error: type[Exception], words: str, server: TestRegistry, tmp_path: Path
) -> None:
    name = await publish(server.host, big_image(), tmp_path)
    again = [replace(fault) for fault in faults]
    with faulty(server.url, again) as proxy, pytest.raises(error, match=words) as told:
        await pull(name.replace(server.host, proxy.host), tmp_path)
    assert getattr(told.value, "hint", "")


async def test_an_image_that_is_not_there_is_told(server: TestRegistry, tmp_path: Path) -> None:
    with pytest.raises(ImageNotFoundError, match="nothing under that name"):
        await pull(f"{server.host}/{new_name()}:1", tmp_path)


async def test_a_server_that_is_not_there_is_told_and_remembered(tmp_path: Path) -> None:
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        name = f"localhost:{closed.getsockname()[1]}/name"
        for _ in range(2):
            with pytest.raises(UnreachableError, match="cannot be reached"):
                await pull(name, tmp_path)


async def test_everybody_gets_a_token_from_an_open_registry(server: TestRegistry, tmp_path: Path) -> None:
    made = big_image()
    name = await publish(server.host, made, tmp_path)
    with faulty(server.url, gate=Gate()) as proxy:
        assert (await pull(name.replace(server.host, proxy.host), tmp_path))[1] == content(made)


async def test_tokens_that_expire_are_renewed(server: TestRegistry, tmp_path: Path) -> None:
    made = big_image()
    name = await publish(server.host, made, tmp_path)
    with faulty(server.url, gate=(gate := Gate(uses=1))) as proxy:
        assert (await pull(name.replace(server.host, proxy.host), tmp_path))[1] == content(made)
    assert gate.issued >= 4


@pytest.mark.parametrize("bearer", [True, False], ids=["tokens", "passwords"])
async def test_a_user_who_has_logged_in_is_let_in(bearer: bool, server: TestRegistry, tmp_path: Path) -> None:
    made = big_image()
    name = await publish(server.host, made, tmp_path)
    gate = Gate("alice", "very secret", bearer=bearer)
    with faulty(server.url, gate=gate) as proxy:
        private = name.replace(server.host, proxy.host)
        with pytest.raises(RegistryDeniedError, match=r"without credentials") as told:
            await pull(private, tmp_path)
        assert f"docker login {proxy.host}" in told.value.hint
        _log_in(tmp_path, proxy, "alice", "wrong")
        with pytest.raises(RegistryDeniedError):
            await pull(private, tmp_path)
        _log_in(tmp_path, proxy, "alice", "very secret")
        assert (await pull(private, tmp_path))[1] == content(made)
        pushed = await publish(proxy.host, big_image(), tmp_path)
        await pull(pushed, tmp_path)


def _log_in(home: Path, proxy: Proxy, user: str, password: str) -> None:
    """As `docker login` writes it."""
    folder = home / ".docker"
    folder.mkdir(exist_ok=True)
    auth = base64.b64encode(f"{user}:{password}".encode()).decode()
    (folder / "config.json").write_text(json.dumps({"auths": {proxy.host: {"auth": auth}}}))


async def test_a_mirror_is_asked_first_and_does_not_matter_when_it_fails(server: TestRegistry, tmp_path: Path) -> None:
    made = big_image()
    name = await publish(server.host, made, tmp_path)
    conf = tmp_path / "etc/containers"
    conf.mkdir(parents=True)
    with faulty(server.url, [Fault("GET", "/manifests/", status=404)]) as mirror:
        (conf / "registries.conf").write_text(
            f'[[registry]]\nlocation = "{server.host}"\n'
            f'[[registry.mirror]]\nlocation = "{mirror.host}"\ninsecure = true\n'
        )
        found, _ = await pull(name, tmp_path)
        assert found.digest == made.descriptor.digest
        assert mirror.asked("GET", "/manifests/")
        assert mirror.asked("GET", "/blobs/")


async def test_a_blob_is_downloaded_once_by_all_who_want_it(server: TestRegistry, tmp_path: Path) -> None:
    made = big_image()
    name = await publish(server.host, made, tmp_path)
    with faulty(server.url) as proxy:
        async with anyio.create_task_group() as tasks:
            for _ in range(4):
                tasks.start_soon(pull, name.replace(server.host, proxy.host), tmp_path)
        assert len(proxy.asked("GET", made.blobs[0].digest)) == 1


async def test_an_upload_that_breaks_off_is_begun_anew(server: TestRegistry, tmp_path: Path) -> None:
    made = big_image()
    faults = [Fault("PUT", "/blobs/uploads/", cut=-1), Fault("POST", "/blobs/uploads/", status=503)]
    with faulty(server.url, faults) as proxy:
        name = await publish(proxy.host, made, tmp_path)
    assert (await pull(name.replace(proxy.host, server.host), tmp_path))[1] == content(made)


async def test_a_manifest_that_is_none_is_refused(server: TestRegistry, tmp_path: Path) -> None:
    made = big_image()
    name = await publish(server.host, made, tmp_path)
    stored = server.blob(made.descriptor.digest)
    whole = stored.read_bytes()
    try:
        stored.write_bytes(b"{}" + b" " * (len(whole) - 2))
        with pytest.raises((IntegrityError, DownloadError, TransientError)):
            await pull(name, tmp_path)
    finally:
        stored.write_bytes(whole)
