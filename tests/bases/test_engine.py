"""Images that a local engine has are bases, too; only the layers that are missing are taken from it."""

from __future__ import annotations

import hashlib
import json
import secrets
from pathlib import Path

import pytest

from specbuild.bases.choose import provider_of
from specbuild.bases.engine import EngineBases
from specbuild.config import Settings
from specbuild.errors import BaseUnavailableError, ConfigError
from specbuild.sandbox.contract import Checkpoint
from specbuild.sandbox.overlay import OverlayBackend
from specbuild.testing.fake_engine import Form, fake_engine
from specbuild.testing.images import file, layer
from specbuild.testing.leftovers import leftovers
from specbuild.testing.rootfs import tiny_rootfs
from specbuild.testing.trial import seen


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    return tiny_rootfs(tmp_path_factory.mktemp("root") / "tiny.tar").read_bytes()


@pytest.mark.sandbox
@pytest.mark.root
@pytest.mark.parametrize("form", ["legacy", "podman", "oci", "oci-compressed"])
async def test_an_image_of_an_engine_is_taken_over(form: Form, root: bytes, tmp_path: Path) -> None:
    layers = [root, layer(file("a", "1"), file("b", secrets.token_hex(500_000))), layer(file(".wh.a"), file("c", "3"))]
    config = {"Env": ["PATH=/opt/bin:/bin", "PYTHON_VERSION=3.9.1"], "User": ""}
    with fake_engine(tmp_path / "sock", "team/tool:1", layers, form=form, config=config) as engine:
        shop = EngineBases(tmp_path, environ={"DOCKER_HOST": engine.address})
        ref = await shop.resolve("engine:team/tool:1")
        assert (ref.name, ref.python) == ("engine:team/tool:1", "3.9")
        async with OverlayBackend(tmp_path / "store") as backend:
            base = await shop.provide(ref, backend)
            assert await seen(backend, base, "ls /a 2>&1 | grep -c 'No such'; cat /c") == "1\n3"
            await shop.provide(ref, backend)
    assert sum(path.endswith("/get") for path in engine.requests) == 1
    assert not list((tmp_path / "images").iterdir())
    assert leftovers(tmp_path / "store") == []


@pytest.mark.sandbox
@pytest.mark.root
async def test_layers_that_the_store_has_are_not_written_again(root: bytes, tmp_path: Path) -> None:
    common, own = layer(file("big", secrets.token_bytes(100_000))), layer(file("own", "o"))
    async with OverlayBackend(tmp_path / "store") as backend:
        await taken(backend, new_folder(tmp_path, "first"), [root, common])
        before = set(await backend.keys())
        base = await taken(backend, new_folder(tmp_path, "second"), [root, common, own])
        assert len(set(await backend.keys()) - before) == 2  # its own layer, and what every base has on top
        assert await seen(backend, base, "cat /own; wc -c < /big") == "o100000"


def new_folder(place: Path, name: str) -> Path:
    (place / name).mkdir()
    return place / name


async def taken(backend: OverlayBackend, folder: Path, layers: list[bytes]) -> Checkpoint:
    """An image of these layers, taken over from an engine."""
    with fake_engine(folder / "sock", "tool:1", layers) as engine:
        shop = EngineBases(folder, environ={"DOCKER_HOST": engine.address})
        return await shop.provide(await shop.resolve("engine:tool:1"), backend)


async def test_what_an_engine_has_not_is_told(root: bytes, tmp_path: Path) -> None:
    with fake_engine(tmp_path / "sock", "tool:1", [root]) as engine:
        shop = EngineBases(tmp_path, environ={"DOCKER_HOST": engine.address})
        with pytest.raises(BaseUnavailableError, match="has no image tool:2") as told:
            await shop.resolve("engine:tool:2")
        assert "docker pull tool:2" in told.value.hint
    with pytest.raises(BaseUnavailableError, match=r"sock \(DOCKER_HOST\) does not answer: (No such|Conn)") as told:
        await shop.resolve("engine:tool:1")
    assert "set DOCKER_HOST" in told.value.hint


async def test_images_are_found_by_their_ids(root: bytes, tmp_path: Path) -> None:
    with fake_engine(tmp_path / "sock", "tool:1", [root]) as engine:
        shop = EngineBases(tmp_path, environ={"DOCKER_HOST": engine.address})
        found = await shop.resolve("engine:tool:1")
        assert (await shop.resolve(f"engine:{found.digest}")).digest == found.digest


async def test_the_engine_is_the_one_that_the_users_docker_context_names(root: bytes, tmp_path: Path) -> None:
    assert provider_of("engine:a:b", Settings(cache_dir=tmp_path)).name == "engine"
    meta = tmp_path / ".docker/contexts/meta" / hashlib.sha256(b"mine").hexdigest()
    meta.mkdir(parents=True)
    with fake_engine(tmp_path / "sock", "tool:1", [root]) as engine:
        (meta / "meta.json").write_text(json.dumps({"Endpoints": {"docker": {"Host": engine.address}}}))
        shop = EngineBases(tmp_path, environ={"HOME": str(tmp_path), "DOCKER_CONTEXT": "mine"})
        assert (await shop.resolve("engine:tool:1")).name == "engine:tool:1"


@pytest.mark.parametrize("name", ["", ".", "..", "../info", "a b", "a?b=c", "A", "a/../b", "a\nb", "a:", "a@sha256:00"])
async def test_what_names_no_image_is_not_asked_for(tmp_path: Path, name: str) -> None:
    with fake_engine(tmp_path / "sock", "tool:1", []) as engine:
        shop = EngineBases(tmp_path, environ={"DOCKER_HOST": engine.address})
        with pytest.raises(ConfigError, match="neither the name nor the id") as told:
            await shop.resolve(f"engine:{name}")
        assert "engine:NAME:TAG" in told.value.hint
        assert engine.requests == []


@pytest.mark.parametrize("config", [{"Env": [5]}, {"User": {}}], ids=["environment", "user"])
async def test_an_engine_that_tells_what_makes_no_sense_is_told(tmp_path: Path, config: dict[str, object]) -> None:
    with fake_engine(tmp_path / "sock", "tool:1", [], config=config) as engine:
        shop = EngineBases(tmp_path, environ={"DOCKER_HOST": engine.address})
        with pytest.raises(BaseUnavailableError, match="no container engine, or an odd one"):
            await shop.resolve("engine:tool:1")


async def test_engines_that_are_not_to_be_had_are_told(tmp_path: Path) -> None:
    elsewhere = EngineBases(tmp_path, environ={"DOCKER_HOST": "tcp://10.0.0.1:2376"})
    with pytest.raises(BaseUnavailableError, match="on this machine only, and DOCKER_HOST is tcp://"):
        await elsewhere.resolve("engine:tool:1")
    nowhere = EngineBases(tmp_path, environ={"HOME": str(tmp_path), "DOCKER_CONTEXT": "none"})
    with pytest.raises(BaseUnavailableError, match="context 'none'"):
        await nowhere.resolve("engine:tool:1")
