"""Whatever layers hold, their stack shows what the image specification says, by a model of a few lines."""

from __future__ import annotations

import hashlib
import io
import tarfile
from collections.abc import Iterator
from pathlib import Path

import anyio
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from specbuild.sandbox.contract import Backend, ImageLayer, ImageLayers
from specbuild.sandbox.docker import DockerBackend
from specbuild.sandbox.docker.image_layer import Moving
from specbuild.sandbox.overlay import OverlayBackend
from specbuild.testing.engines import PrivateEngine, docker_engine
from specbuild.testing.image_model import KINDS, SHOW, TOP, Entry, items, sane, shown
from specbuild.testing.images import folder, layer
from specbuild.testing.leftovers import leftovers
from specbuild.testing.trial import new_key, seen

PATHS = st.lists(st.sampled_from("abc"), min_size=1, max_size=3).map(lambda parts: "/".join([TOP, *parts]))
STACKS = st.lists(st.lists(st.tuples(PATHS, st.sampled_from(KINDS)), max_size=8).map(sane), min_size=2, max_size=4)
HIDDEN_TWICE = [[("x/a/a", "d")], [("x/a", "w"), ("x/a/b", "w")]]
"""A folder that is hidden, and implied by what is hidden in it."""

FEW = settings(max_examples=8, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])


@pytest.mark.sandbox
@pytest.mark.root
@pytest.mark.slow
@FEW
@given(stack=STACKS)
@example(stack=HIDDEN_TWICE)
def test_a_stack_of_layers_shows_what_the_specification_says(
    tiny: Path, tmp_path: Path, stack: list[list[Entry]]
) -> None:
    backend = OverlayBackend(tmp_path / "store")
    assert anyio.run(_seen, backend, archives(tiny, stack), tmp_path) == shown(stack)
    assert leftovers(tmp_path / "store") == []


@pytest.fixture(scope="module")
def engine() -> Iterator[PrivateEngine]:
    with docker_engine() as running:
        yield running


@pytest.mark.engine
@pytest.mark.root
@pytest.mark.slow
@pytest.mark.timeout(900)
@FEW
@given(stack=STACKS)
@example(stack=HIDDEN_TWICE)
def test_a_stack_of_layers_shows_the_same_in_an_engine(
    engine: PrivateEngine, tiny: Path, tmp_path: Path, stack: list[list[Entry]]
) -> None:
    backend = DockerBackend(tmp_path / "docker", engine.endpoint)
    assert anyio.run(_seen, backend, archives(tiny, stack), tmp_path) == shown(stack)
    assert engine.leftovers() == []


@settings(max_examples=200, deadline=None)
@given(stack=STACKS)
@example(stack=HIDDEN_TWICE)
def test_layers_of_containers_say_what_those_of_the_image_said(stack: list[list[Entry]]) -> None:
    moving = Moving(whole=True)
    told = [told_by(moved(moving, layer(*items(entries)))) for entries in stack]
    assert shown(told) == shown(stack)


def moved(moving: Moving, archive: bytes) -> bytes:
    """The archive of a container's layer."""
    target = io.BytesIO()
    moving.move(io.BytesIO(archive), target)
    return target.getvalue()


def told_by(archive: bytes) -> list[Entry]:
    """What a container's layer says; each name once, and the folder of each before it."""
    entries: list[Entry] = []
    names: list[str] = []
    with tarfile.open(fileobj=io.BytesIO(archive)) as tar:
        for member in tar:
            assert member.name not in names
            assert member.name == "rootfs" or member.name.rpartition("/")[0] in names
            names.append(member.name)
            data = tar.extractfile(member) if member.isreg() else None
            content = data.read().decode() if data else member.linkname
            entries += _entry(member, content)
    return entries


def _entry(member: tarfile.TarInfo, content: str) -> list[Entry]:
    path = member.name.removeprefix("rootfs").removeprefix("/")
    parent, _, name = path.rpartition("/")
    if not path:
        return []
    if name == ".wh..wh..opq":
        return [(parent, "o")]
    if name.startswith(".wh."):
        return [(f"{parent}/{name.removeprefix('.wh.')}", "w")]
    return [(path, "d" if member.isdir() else f"{'l' if member.issym() else 'f'}{content}")]


def archives(tiny: Path, stack: list[list[Entry]]) -> list[bytes]:
    """On a root filesystem that commands run in."""
    return [tiny.read_bytes(), layer(folder(TOP)), *(layer(*items(entries)) for entries in stack)]


async def _seen(backend: Backend, layers: list[bytes], folder: Path) -> list[str]:
    async with backend:
        base = await backend.import_base(new_key(), ImageLayers(tuple([await _layer(each, folder) for each in layers])))
        return (await seen(backend, base, SHOW)).splitlines()


async def _layer(data: bytes, folder: Path) -> ImageLayer:
    digest = hashlib.sha256(data).hexdigest()
    path = folder / digest
    await anyio.Path(path).write_bytes(data)

    async def fetch() -> Path:
        return path

    return ImageLayer(f"sha256:{digest}", fetch)
