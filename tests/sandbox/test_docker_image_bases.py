"""Images as bases on container engines: they look as on overlay, are fetched and kept once, and leave nothing."""

from __future__ import annotations

import gzip
import hashlib
import io
import secrets
import tarfile
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import cast

import anyio
import pytest

from specbuild.bases.engine import EngineBases
from specbuild.bases.images import ImageBases
from specbuild.errors import BaseUnavailableError, IntegrityError, SpecBuildError, TransientError
from specbuild.oci.places import Places
from specbuild.oci.push import push_image
from specbuild.oci.reference import parse_reference
from specbuild.recipe import checkpoint_root
from specbuild.sandbox.contract import Backend, Checkpoint, ImageLayer, ImageLayers
from specbuild.sandbox.docker import DockerBackend, images
from specbuild.sandbox.docker.image_layer import Moving
from specbuild.sandbox.overlay import OverlayBackend
from specbuild.sandbox.passthrough import base_environment
from specbuild.testing.engines import PrivateEngine, docker_engine, podman_engine
from specbuild.testing.images import Item, compress, file, folder, image, layer, link, symlink
from specbuild.testing.registry import TestRegistry, registry
from specbuild.testing.trial import frozen, new_key, seen, shell

pytestmark = [pytest.mark.engine, pytest.mark.root, pytest.mark.slow]

NANOSECONDS = 1_234_567_890.123456789
CAPABILITY = b"\1\0\0\2\0\4\0\0\0\0\0\0\0\0\0\0\0\0\0\0".decode()
LOWER = layer(
    folder("./", 0o751),
    folder("d", 0o2711, uid=33, gid=34, mtime=1_000_000_000, xattrs={"user.kept": "yes"}),
    file("d/a", "low"),
    file("d/b", "low", mode=0o6755, uid=3, gid=4, mtime=NANOSECONDS),
    folder("d/sub"),
    file("d/sub/c", "low"),
    folder("full"),
    file("full/one", "1"),
    folder("again"),
    file("again/old", "old"),
    folder("again2"),
    file("again2/old", "old"),
    file("was-file", "low"),
    folder("was-folder"),
    file("was-folder/x", "low"),
    symlink("was-link", "d"),
    file("linked", "shared content", mode=0o640, uid=5, gid=6, xattrs={"user.mark": "m"}),
    link("other-name", "linked"),
    symlink("soft", "linked", uid=7, gid=8, mtime=77),
    Item("pipe", tarfile.FIFOTYPE, mode=0o622),
    Item("null", tarfile.CHRTYPE, device=(1, 3)),
    file("capable", "x", mode=0o755, xattrs={"security.capability": CAPABILITY}),
    file("n" * 250, "long"),
    file("é\u2028", "name"),
    file("twice", "first"),
    file("twice", "second"),
    folder("d"),
    folder("private", 0o700, uid=9, gid=9),
)
UPPER = layer(
    file("d/.wh.a"),
    file("d/new", "up"),
    folder("full"),
    file("full/three", "3"),
    file("full/.wh..wh..opq"),
    file(".wh.again2"),
    folder("again2"),
    file("again2/new", "new"),
    folder("again"),
    file("again/new", "new"),
    file("again/.wh..wh..opq"),
    folder("was-file"),
    file("was-file/y", "up"),
    file("was-folder", "up"),
    folder("was-link"),
    file("was-link/z", "up"),
    file("private/implied", "in a folder that only the layer below tells of"),
    file(".wh.never-there"),
    file(".wh..wh.plnk"),
    symlink("etc/resolv.conf", "/run/systemd/resolve/stub-resolv.conf"),
    file("etc/.wh.hostname"),
)
LOOK = r"""
cd /; find . -mindepth 1 \( -path ./dev -o -path ./proc -o -path ./sys -o -path ./usr \) -prune \
  -o -type d -printf 'd %p %m %U:%G %T@\n' -o -printf '%y %p %m %U:%G %n %l %T@\n' \
  | grep -v ' \./etc\(/hosts\|/resolv.conf\)\? ' | sort
test -f /etc/resolv.conf; echo $?; stat -c %a /; cat d/b d/new again/new was-folder other-name twice full/three
perl -e '$b = "-" x 64; for (["d", "user.kept"], ["linked", "user.mark"], ["capable", "security.capability"]) {
  ($p, $n) = @$_; print $p, " ", syscall(191, $p, $n, $b, 64), " ", unpack("H*", $b), "\n" }'
"""


@pytest.fixture(scope="module", params=[docker_engine, podman_engine], ids=["docker", "podman"])
def engine(request: pytest.FixtureRequest) -> Iterator[PrivateEngine]:
    with request.param() as running:
        yield running


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TestRegistry]:
    with registry(tmp_path_factory.mktemp("registry")) as running:
        yield running


@pytest.fixture(scope="module")
def root(tiny: Path) -> bytes:
    """The archive of a root filesystem that commands run in."""
    return tiny.read_bytes()


class Shelf:
    """Layers in a folder, and how often each was fetched."""

    def __init__(self, place: Path) -> None:
        self.place = place
        self.fetched: list[str] = []

    def layers(self, *archives: bytes, by: str = "gzip") -> ImageLayers:
        return ImageLayers(tuple(self._layer(archive, compress(archive, by)) for archive in archives))

    def damaged(self, archive: bytes, data: bytes) -> ImageLayers:
        return ImageLayers((self._layer(archive, data),))

    def _layer(self, archive: bytes, data: bytes) -> ImageLayer:
        diff_id = f"sha256:{hashlib.sha256(archive).hexdigest()}"
        path = self.place / secrets.token_hex(8)
        path.write_bytes(data)

        async def fetch() -> Path:
            self.fetched.append(diff_id)
            return path

        return ImageLayer(diff_id, fetch)


@pytest.fixture
def shelf(tmp_path: Path) -> Shelf:
    return Shelf(tmp_path)


def ids(engine: PrivateEngine) -> set[str]:
    return {found["Id"] for found in engine.ask("GET", "images/json?all=1")}


async def test_an_image_looks_as_on_overlay(engine: PrivateEngine, root: bytes, shelf: Shelf, tmp_path: Path) -> None:
    source = shelf.layers(root, LOWER, UPPER)

    async def look(backend: Backend) -> list[str]:
        async with backend:
            base = await backend.import_base("0" * 64, source)
            return (await seen(backend, base, LOOK)).splitlines()

    expected = await look(OverlayBackend(tmp_path / "store"))
    assert "f ./private/implied 644 0:0 1  1600000000.0000000000" in expected
    assert await look(DockerBackend(tmp_path / "docker", engine.endpoint)) == expected
    assert engine.leftovers() == []


async def test_what_images_have_in_common_is_kept_once(
    engine: PrivateEngine, root: bytes, shelf: Shelf, tmp_path: Path
) -> None:
    common = root, layer(file("common", "c"))
    before = ids(engine)
    async with DockerBackend(tmp_path / "docker", engine.endpoint) as backend:
        first = await backend.import_base(new_key(), shelf.layers(*common, layer(file("own", "1"))))
        shelf.fetched.clear()
        source = shelf.layers(*common, layer(file("own", "2")))
        second = await backend.import_base(new_key(), source)
        if engine.name == "docker":
            assert shelf.fetched == [source.layers[-1].diff_id]
        assert await seen(backend, first, "cat /common /own") == "c1"
        assert await seen(backend, second, "cat /common /own") == "c2"
        assert (first.parent, second.parent) == (None, None)
        found = [await backend.shop.images.require(key) for key in (first.key, second.key)]
        below = [engine.ask("GET", f"images/{each.image}/json")["RootFS"]["Layers"][:2] for each in found]
        assert below[0] == below[1]
        state = await frozen(backend, second, "rm /common; echo 3 > /own")
        await backend.keep(state.key, "kept")
    async with DockerBackend(tmp_path / "docker", engine.endpoint) as backend:
        await backend.prune(everything=True)
        assert await backend.find(first.key) is None
        left = await backend.find(state.key)
        assert left is not None
        assert await seen(backend, left, "ls /common 2>&1 | grep -c 'No such'; cat /own") == "1\n3"
        await backend.forget("kept")
    async with DockerBackend(tmp_path / "docker", engine.endpoint) as backend:
        await backend.prune(everything=True)
        assert await backend.keys() == []
    assert ids(engine) == before


async def test_a_layer_on_what_the_engine_has_may_imply_folders_of_it(
    engine: PrivateEngine, root: bytes, shelf: Shelf, tmp_path: Path
) -> None:
    async with DockerBackend(tmp_path / "docker", engine.endpoint) as backend:
        await backend.import_base(new_key(), shelf.layers(root, LOWER))
        second = await backend.import_base(new_key(), shelf.layers(root, LOWER, UPPER))
        assert await seen(backend, second, "stat -c '%a %u:%g' /private /private/implied") == "700 9:9\n644 0:0"


async def test_a_base_is_made_where_there_is_nothing_but_programs(
    engine: PrivateEngine, root: bytes, shelf: Shelf, tmp_path: Path
) -> None:
    bare = layer(*(file(f".wh.{name}") for name in ("etc", "dev", "proc", "sys")))
    async with DockerBackend(tmp_path / "docker", engine.endpoint) as backend:
        base = await backend.import_base(new_key(), shelf.layers(root, bare))
        shown = await seen(backend, base, "ls / | grep -cx 'dev\\|proc\\|sys\\|etc'; ls /etc; cat /etc/hosts | wc -l")
        assert shown.split()[:3] == ["4", "hosts", "resolv.conf"]


async def test_more_layers_than_are_mounted_at_once(
    engine: PrivateEngine, root: bytes, shelf: Shelf, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(images, "MOST_LAYERS", 4)
    many = [layer(file(f"f{number}", str(number)), file("last", str(number))) for number in range(6)]
    async with DockerBackend(tmp_path / "docker", engine.endpoint) as backend:
        base = await backend.import_base(new_key(), shelf.layers(root, *many))
        assert await seen(backend, base, "cat /f0 /f5 /last; ls / | grep -c '^f[0-9]'") == "0556"


DAMAGES: dict[str, tuple[Callable[[bytes], bytes], type[SpecBuildError]]] = {
    "another archive": (lambda data: gzip.compress(layer(file("other"))), IntegrityError),
    "cut short": (lambda data: gzip.compress(data)[:-100], SpecBuildError),
    "one bit changed": (lambda data: data[:600] + bytes([data[600] ^ 1]) + data[601:], IntegrityError),
    "empty": (lambda data: b"", IntegrityError),
}


@pytest.mark.parametrize(("damage", "error"), DAMAGES.values(), ids=DAMAGES.keys())
async def test_what_is_not_as_promised_never_becomes_a_base(
    damage: Callable[[bytes], bytes], error: type[SpecBuildError], engine: PrivateEngine, shelf: Shelf, tmp_path: Path
) -> None:
    whole = layer(file("a", secrets.token_bytes(50_000)))
    before = ids(engine)
    async with DockerBackend(tmp_path / "docker", engine.endpoint) as backend:
        with pytest.raises(error):
            await backend.import_base(new_key(), shelf.damaged(whole, damage(whole)))
        assert await backend.keys() == []
    assert ids(engine) == before


async def test_what_is_no_layer_or_cannot_be_fetched_is_told(
    engine: PrivateEngine, root: bytes, shelf: Shelf, tmp_path: Path
) -> None:
    async def fetch() -> Path:
        raise TransientError("no network")

    before = ids(engine)
    good = shelf.layers(root).layers
    async with DockerBackend(tmp_path / "docker", engine.endpoint) as backend:
        with pytest.raises(TransientError, match="no network"):
            await backend.import_base(new_key(), ImageLayers((*good, ImageLayer("sha256:0", fetch))))
        with pytest.raises(BaseUnavailableError, match="no layers"):
            await backend.import_base(new_key(), ImageLayers(()))
        with pytest.raises(BaseUnavailableError, match="does not have"):
            await backend.import_base(new_key(), shelf.layers(layer(link("a", "nowhere"))))
        with pytest.raises(BaseUnavailableError, match="cannot be unpacked"):
            await backend.import_base(new_key(), shelf.damaged(b"?" * 5000, b"?" * 5000))
    assert ids(engine) == before


async def test_an_import_that_is_cancelled_leaves_nothing(
    engine: PrivateEngine, root: bytes, shelf: Shelf, tmp_path: Path
) -> None:
    before = ids(engine)
    source = shelf.layers(root, *(layer(file(f"f{number}", "x" * 1_000_000)) for number in range(5)))
    async with DockerBackend(tmp_path / "docker", engine.endpoint) as backend:
        for seconds in (0.0, 0.05, 0.2, 0.5, 1.0):
            with anyio.move_on_after(seconds):
                await backend.import_base(new_key(), source)
    async with DockerBackend(tmp_path / "docker", engine.endpoint) as backend:
        await backend.prune(everything=True)
    assert engine.leftovers() == []
    assert ids(engine) == before


@pytest.mark.sandbox
async def test_an_image_of_a_registry_is_the_same_base_on_both_backends(
    engine: PrivateEngine, server: TestRegistry, root: bytes, tmp_path: Path
) -> None:
    made = image(
        root,
        layer(file("etc/made", "second layer"), file("etc/.wh.hostname")),
        compression=["zstd", "gzip"],
        Env=["PATH=/opt/bin:/usr/bin:/bin", "PYTHON_VERSION=3.8.20", "X=y"],
        Entrypoint=["/bin/false"],
        User="1000",
    )
    name = f"{server.host}/test/{secrets.token_hex(6)}:1"
    await push_image(parse_reference(name), made.manifest, made.media_type, made.uploads)
    overlay, docker = OverlayBackend(tmp_path / "store"), DockerBackend(tmp_path / "docker", engine.endpoint)
    for number, backend in enumerate((cast("Backend", overlay), docker)):
        cache = tmp_path / str(number)
        shop = ImageBases(cache, places=Places({}, cache, cache))
        ref = await shop.resolve(name)
        assert (ref.name, ref.digest, ref.python) == (name, made.descriptor.digest, "3.8")
        async with backend:
            base = await shop.provide(ref, backend)
            assert base.key == checkpoint_root(ref)
            command = shell('id -u; echo "$X"; cat /etc/made; test ! -e /etc/hostname', env=base_environment(ref))
            async with backend.fork(base) as box:
                done = await box.run(command)
            assert (done.exit_code, done.tail) == (0, "0\ny\nsecond layer")
            assert await shop.provide(ref, backend) == base


@pytest.mark.sandbox
async def test_an_engines_own_image_is_the_same_base_on_both_backends(
    engine: PrivateEngine, root: bytes, tmp_path: Path
) -> None:
    made = engine.ask("POST", "images/create?fromSrc=-&changes=ENV%20X%3Dy", data=root)["status"]
    engine.ask("POST", f"images/{made}/tag?repo=localhost/own&tag=1")
    shop = EngineBases(tmp_path, environ={"DOCKER_HOST": engine.address})
    ref = await shop.resolve("engine:localhost/own:1")
    assert ("X", "y") in ref.env
    found: list[Checkpoint] = []
    overlay, docker = OverlayBackend(tmp_path / "store"), DockerBackend(tmp_path / "docker", engine.endpoint)
    for backend in (cast("Backend", overlay), docker):
        async with backend:
            found.append(await shop.provide(ref, backend))
            assert await seen(backend, found[-1], "cat /etc/hostname") == "tiny"
    assert found[0].key == found[1].key == checkpoint_root(ref)
    async with docker:
        await docker.prune(everything=True)
    kept = engine.ask("GET", "images/localhost/own:1/json")["Id"]
    assert kept.removeprefix("sha256:") == ref.digest.removeprefix("sha256:")
    engine.ask("DELETE", "images/localhost/own:1")


HOSTILE: dict[str, Sequence[Item]] = {
    "through a link": [symlink("out", "/specbuild"), file("out/sh", "evil")],
    "through a link upwards": [symlink("out", "../specbuild"), file("out/sh", "evil")],
    "through a hidden link": [file("out/.wh.sh"), symlink("out", "/specbuild"), file("out/.wh.bwrap")],
    "dots": [file("../specbuild/sh", "evil"), file("a/../../specbuild/sh", "evil"), folder("..", 0o777)],
    "a link to what is outside": [link("sh", "../specbuild/sh")],
    "marks of dots": [file(".wh.."), file("a/.wh..")],
    "the root as a link": [symlink("./", "/specbuild"), file("sh", "evil")],
    "attributes of overlayfs": [folder("d", xattrs={"user.overlay.redirect": "/", "trusted.overlay.opaque": "y"})],
}


@pytest.mark.parametrize("items", HOSTILE.values(), ids=HOSTILE.keys())
def test_nothing_of_a_layer_gets_beside_the_root_of_sandboxes(items: Sequence[Item]) -> None:
    target = io.BytesIO()
    try:
        Moving(whole=True).move(io.BytesIO(layer(*items)), target)
    except tarfile.TarError:
        return  # refused
    target.seek(0)
    folders = [""]
    with tarfile.open(fileobj=target) as tar:
        for member in tar:
            above, _, name = member.name.rpartition("/")
            assert above in folders, "what lies above is a folder of the same layer"
            assert member.name == "rootfs" or member.name.startswith("rootfs/")
            assert name not in {"..", "."}
            assert not any("overlay" in key for key in member.pax_headers)
            folders += [member.name] if member.isdir() else []
