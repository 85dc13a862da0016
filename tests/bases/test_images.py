"""Images of a registry are bases like any others."""

from __future__ import annotations

import multiprocessing
import secrets
import socket
from collections.abc import Iterator
from pathlib import Path

import anyio
import pytest

from specbuild.bases.choose import choose_bases, image_for, provider_of
from specbuild.bases.images import ImageBases
from specbuild.config import Settings
from specbuild.errors import BaseUnavailableError, ConfigError, TransientError, UnreachableError
from specbuild.oci.places import Places
from specbuild.oci.push import push_image
from specbuild.oci.reference import parse_reference
from specbuild.recipe import BaseRef
from specbuild.repo.facts import Evidence, Fact, Facts
from specbuild.retry import Retry
from specbuild.sandbox.overlay import OverlayBackend
from specbuild.sandbox.passthrough import base_environment
from specbuild.testing.faulty_registry import Fault, faulty
from specbuild.testing.images import MadeImage, file, image, layer
from specbuild.testing.leftovers import leftovers
from specbuild.testing.registry import TestRegistry, registry
from specbuild.testing.rootfs import tiny_rootfs
from specbuild.testing.trial import seen

pytestmark = pytest.mark.engine

SOON = Retry(attempts=2, first=0.01, longest=0.05)
HERE = Evidence(file="pyproject.toml", line=1)


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TestRegistry]:
    with registry(tmp_path_factory.mktemp("registry")) as running:
        yield running


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    return tiny_rootfs(tmp_path_factory.mktemp("root") / "tiny.tar").read_bytes()


def bases(cache: Path, max_age: float = 100.0) -> ImageBases:
    return ImageBases(cache, places=Places({}, cache, cache), retry=SOON, max_age=max_age)


async def publish(server: TestRegistry, made: MadeImage, tag: str = "1") -> str:
    name = f"{server.host}/test/{secrets.token_hex(6)}:{tag}"
    await push_image(parse_reference(name), made.manifest, made.media_type, made.uploads)
    return name


def like_python(root: bytes, *more: bytes) -> MadeImage:
    """As the official images are: in layers, a `PATH` and versions among the variables, the release in the history."""
    return image(
        root,
        *more,
        created_by=["# debian.sh --arch 'amd64' out/ 'bookworm' '@1712620800'", "RUN make"],
        Env=["PATH=/opt/python/bin:/usr/bin:/bin", "PYTHON_VERSION=3.8.20", "HOME=/nowhere", "LANG=C.UTF-8", "X=y"],
        User="1000:1000",
        WorkingDir="/app",
    )


def test_names_of_images_are_claimed_and_bare_words_are_not(tmp_path: Path) -> None:
    shop = bases(tmp_path)
    digest = f"sha256:{'a' * 64}"
    for name in ("python:3.9", "docker.io/library/python:3.9-slim", f"ghcr.io/x/y@{digest}", "localhost:5000/a", "a/b"):
        assert shop.claims(name)
        assert provider_of(name, Settings(cache_dir=tmp_path)).name == "image"
    for name in ("python", "host", "auto", "Python:3", "a b:c", ""):
        assert not shop.claims(name)
    assert provider_of("debian:bookworm", Settings(cache_dir=tmp_path)).name == "debian"
    with pytest.raises(ConfigError, match="no base 'nonsense'") as told:
        provider_of("nonsense", Settings(cache_dir=tmp_path))
    assert "python:3.12" in told.value.hint


async def test_what_an_image_says_of_itself_is_known_before_its_layers(
    server: TestRegistry, root: bytes, tmp_path: Path
) -> None:
    made = like_python(root)
    name = await publish(server, made)
    told: list[str] = []
    shop = ImageBases(tmp_path, places=Places({}, tmp_path, tmp_path), notify=told.append)
    assert shop.cached(name) is None
    ref = await shop.resolve(name)
    assert (ref.name, ref.digest, ref.python, ref.release) == (name, made.descriptor.digest, "3.8", "bookworm")
    assert any("the user 1000:1000" in line for line in told)
    environment = base_environment(ref)
    assert environment["PATH"] == "/opt/python/bin:/usr/bin:/bin"
    assert (environment["HOME"], environment["X"]) == ("/root", "y")
    assert bases(tmp_path).cached(name) == ref
    assert bases(tmp_path, max_age=-1.0).cached(name) is None
    pinned = await shop.resolve(f"{name}@{ref.digest}")
    assert bases(tmp_path, max_age=-1.0).cached(pinned.name) == pinned


@pytest.mark.sandbox
@pytest.mark.root
async def test_an_image_is_a_base_and_is_fetched_once(server: TestRegistry, root: bytes, tmp_path: Path) -> None:
    made = like_python(root, layer(file("etc/made", "second layer")), layer(file("etc/.wh.hostname")))
    name = await publish(server, made)
    with faulty(server.url) as proxy:
        seen_from = name.replace(server.host, proxy.host)
        async with OverlayBackend(tmp_path / "store") as backend:
            ref = await bases(tmp_path).resolve(seen_from)
            base = await bases(tmp_path).provide(ref, backend)
            assert (
                await seen(backend, base, "cat /etc/made; ls /etc/hostname 2>&1 | grep -c 'No such'") == "second layer1"
            )
            await bases(tmp_path).provide(ref, backend)
        async with OverlayBackend(tmp_path / "store") as backend:
            await bases(tmp_path).provide(ref, backend)
        assert all(len(proxy.asked("GET", blob.digest)) == 1 for blob in made.blobs)
    assert not list((tmp_path / "images/blobs").glob("sha256-*"))
    assert leftovers(tmp_path / "store") == []


async def test_the_digest_counts_when_the_tag_has_moved(server: TestRegistry, root: bytes, tmp_path: Path) -> None:
    old = image(root, layer(file("etc/which", "old")))
    name = await publish(server, old)
    ref = await bases(tmp_path).resolve(name)
    new = image(root, layer(file("etc/which", "new")))
    await push_image(parse_reference(name), new.manifest, new.media_type, new.uploads)
    assert (await bases(tmp_path).resolve(name)).digest == old.descriptor.digest
    assert (await bases(tmp_path, max_age=-1.0).resolve(name)).digest == new.descriptor.digest
    async with OverlayBackend(tmp_path / "store") as backend:
        base = await bases(tmp_path).provide(ref, backend)
        assert await seen(backend, base, "cat /etc/which") == "old"


async def test_what_cannot_be_had_says_why(server: TestRegistry, root: bytes, tmp_path: Path) -> None:
    with pytest.raises(BaseUnavailableError, match=r"cannot be had: .* has nothing under that name"):
        await bases(tmp_path).resolve(f"{server.host}/test/missing:1")
    name = await publish(server, image(root))
    ref = await bases(tmp_path).resolve(name)
    with faulty(server.url, [Fault("GET", "/blobs/", corrupt=True, times=99)]) as proxy:
        there = ref.model_copy(update={"name": name.replace(server.host, proxy.host)})
        async with OverlayBackend(tmp_path / "store") as backend:
            with pytest.raises(BaseUnavailableError, match="was promised"):
                await bases(tmp_path).provide(there, backend)
            assert await backend.keys() == []


async def test_without_a_network_a_tag_is_what_it_was(server: TestRegistry, root: bytes, tmp_path: Path) -> None:
    name = await publish(server, image(root))
    told: list[str] = []
    with faulty(server.url) as proxy:
        ref = await bases(tmp_path).resolve(name.replace(server.host, proxy.host))
    shop = ImageBases(tmp_path, places=Places({}, tmp_path, tmp_path), retry=SOON, max_age=-1.0, notify=told.append)
    assert await shop.resolve(ref.name) == ref
    assert "cannot be reached" in told[0]
    with pytest.raises(UnreachableError):
        await shop.resolve(ref.name.replace("test/", "other/"))


def _provide(name: str, cache: Path, start: float) -> None:
    """In a process of its own: the base, in a store that several share."""
    del start

    async def run() -> None:
        async with OverlayBackend(cache / "store") as backend:
            await bases(cache).provide(await bases(cache).resolve(name), backend)

    anyio.run(run)


@pytest.mark.sandbox
@pytest.mark.root
def test_several_processes_fetch_an_image_once(server: TestRegistry, root: bytes, tmp_path: Path) -> None:
    made = image(root, layer(file("a", secrets.token_bytes(1 << 20))))
    name = anyio.run(publish, server, made)
    with faulty(server.url) as proxy:
        there = name.replace(server.host, proxy.host)
        context = multiprocessing.get_context("spawn")
        workers = [context.Process(target=_provide, args=(there, tmp_path, 0.0)) for _ in range(3)]
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join(60)
        assert [worker.exitcode for worker in workers] == [0, 0, 0]
        assert all(len(proxy.asked("GET", blob.digest)) == 1 for blob in made.blobs)
    assert leftovers(tmp_path / "store") == []


def facts(requires: str | None = None, classifiers: tuple[str, ...] = ()) -> Facts:
    return Facts(
        languages=(Fact(value="python", evidence=HERE),),
        requires_python=Fact(value=requires, evidence=HERE) if requires else None,
        classifier_pythons=tuple(Fact(value=version, evidence=HERE) for version in classifiers),
    )


def test_an_image_is_offered_where_no_debian_has_such_an_interpreter() -> None:
    def offered(*given: str, requires: str | None = None) -> str | None:
        choice = image_for(facts(requires, given))
        return choice.name if choice else None

    assert offered("3.6", "3.7", "3.8") == "python:3.8"
    assert offered("3.12") == "python:3.12"
    assert offered(requires=">=3.6,<3.9") == "python:3.8"
    assert offered(requires=">=3.14") == "python:3.14"
    assert offered("3.8", "3.9") is None
    assert offered(requires=">=3.8") is None
    assert offered(requires="<3") is None
    assert offered() is None
    assert image_for(Facts()) is None


async def test_a_registry_that_is_not_there_only_takes_its_candidates_away(tmp_path: Path) -> None:
    class Debian:
        name = "debian"

        def claims(self, base: str) -> bool:
            return base.startswith("debian:")

        def cached(self, base: str) -> BaseRef | None:
            return BaseRef(name=base, digest=f"sha256:{base}")

    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        mirror = f"localhost:{closed.getsockname()[1]}"
        conf = tmp_path / "etc/containers/registries.conf"
        conf.parent.mkdir(parents=True)
        conf.write_text(f'[[registry]]\nprefix = "docker.io"\nlocation = "{mirror}"\n')
        known = {"debian": Debian(), "image": bases(tmp_path)}
        chosen = await choose_bases(("auto",), facts(classifiers=("3.8",)), providers=known)  # type: ignore[arg-type]
        assert [ref.name for ref in chosen.ready] == ["debian:bullseye", "debian:bookworm"]
        (pending,) = chosen.pending
        assert (pending.planned.name, pending.planned.python) == ("python:3.8", "3.8")
        with pytest.raises(TransientError, match="cannot be reached"):
            await pending.make()
