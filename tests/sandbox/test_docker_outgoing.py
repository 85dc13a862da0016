"""What a container engine holds can be exported: the layers, and all files, are those that its sandboxes see."""

from __future__ import annotations

import io
import tarfile
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest

from specbuild.export.layers import Compression, write_layers, write_root
from specbuild.sandbox.contract import BaseSource, Checkpoint, ImageLayer, ImageLayers, LayerSource, RootfsTar
from specbuild.sandbox.docker import DockerBackend, images
from specbuild.sandbox.docker.outside import take_out
from specbuild.sandbox.overlay import OverlayBackend
from specbuild.testing.engines import PrivateEngine, docker_engine, podman_engine
from specbuild.testing.images import Item, file, folder, layer, link, symlink
from specbuild.testing.trial import frozen, new_key, seen

STEPS = (
    "mkdir -p /d/sub /gone /opaque; echo a > /d/a; ln /d/a /d/again; chown 5:6 /d/a; touch /d/single /gone/x /opaque/o",
    "echo nothing is left",
    "chmod 4750 /d/sub; ln -s a /d/soft; rm -r /opaque; mkdir /opaque; echo new > /opaque/new; rm /d/single",
    "rm -r /gone; mkfifo /pipe; touch -d @1000000000 /d/old; mkdir -p /root/.cache/pip; echo > /root/.cache/pip/wheel",
)
LOOK = r"""
cd /; find . -mindepth 1 \( -path ./dev -o -path ./proc -o -path ./sys -o -path ./root/.cache \) -prune \
  -o -type d -printf 'd %p %m %U:%G\n' -o -printf '%y %p %m %U:%G %n %l\n' | sort
stat -c '%a %Y' /d/old; cat /d/a /opaque/new
"""


@pytest.fixture(scope="module", params=[docker_engine, podman_engine], ids=["docker", "podman"])
def engine(request: pytest.FixtureRequest) -> Iterator[PrivateEngine]:
    with request.param() as running:
        yield running


async def chain(backend: DockerBackend, tiny: Path) -> Checkpoint:
    state = await backend.import_base(new_key(), RootfsTar(tiny))
    for step in STEPS:
        state = await frozen(backend, state, step)
    return state


async def look_of(source: BaseSource, store: Path) -> str:
    """What an exported base shows on overlay."""
    async with OverlayBackend(store) as backend:
        return await seen(backend, await backend.import_base(new_key(), source), LOOK)


async def given(path: Path) -> Path:
    return path


@pytest.mark.engine
@pytest.mark.sandbox
@pytest.mark.root
@pytest.mark.slow
@pytest.mark.parametrize("most", [100, 2], ids=["as it is", "flattened in between"])
async def test_what_is_exported_shows_the_same_elsewhere(
    most: int, engine: PrivateEngine, tiny: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(images, "MOST_LAYERS", most)
    (tmp_path / "out").mkdir()
    async with DockerBackend(tmp_path / "docker", engine.endpoint) as backend:
        assert isinstance(backend, LayerSource)
        state = await chain(backend, tiny)
        expected = await seen(backend, state, LOOK)
        states = await write_layers(backend, state.key, tmp_path / "out", compression=Compression.NONE)
        await write_root(backend, state.key, tmp_path / "root.tar")
        await backend.prune(everything=True)
    assert engine.leftovers() == []
    assert not list((tmp_path / "docker").glob("*/outgoing/*"))
    assert len(states) == 1 + len(STEPS)
    assert [len(layers) for layers in states] == [1, 1, 1, 1, 1]
    made = tuple(ImageLayer(each.diff_id, partial(given, each.path)) for layers in states for each in layers)
    assert await look_of(ImageLayers(made), tmp_path / "store") == expected
    assert await look_of(RootfsTar(tmp_path / "root.tar"), tmp_path / "store") == expected
    with tarfile.open(tmp_path / "root.tar") as tar:
        assert not [name for name in tar.getnames() if "specbuild" in name or "wheel" in name]


def names(*items: Item, without: str = "") -> dict[str, str]:
    """What is taken out of a container's layer, with the content of files and the targets of links."""
    sink = io.BytesIO()
    count = take_out(io.BytesIO(layer(*items)), sink, without=without)
    sink.seek(0)
    with tarfile.open(fileobj=sink) as tar:
        found = {member.name: _content(tar, member) for member in tar}
    assert count == len(found.keys() - {"."})
    return found


def _content(tar: tarfile.TarFile, member: tarfile.TarInfo) -> str:
    data = tar.extractfile(member) if member.isreg() else None
    return data.read().decode() if data else member.linkname


def test_what_lies_beside_the_root_stays_behind() -> None:
    found = names(
        folder("tmp"), file("specbuild/sh", "x"), folder("rootfs"), file("rootfs/a", "1"), file("rootfsx", "no")
    )
    assert found == {".": "", "a": "1"}


def test_marks_and_links_stay_what_they_are() -> None:
    found = names(
        folder("rootfs/d"),
        file("rootfs/d/.wh.gone"),
        file("rootfs/d/.wh..wh..opq"),
        file("rootfs/d/f", "1"),
        link("rootfs/d/g", "rootfs/d/f"),
        symlink("rootfs/s", "/rootfs/d"),
    )
    assert found == {"d": "", "d/.wh.gone": "", "d/.wh..wh..opq": "", "d/f": "1", "d/g": "d/f", "s": "/rootfs/d"}


def test_what_is_left_out_leaves_its_content_to_its_other_names() -> None:
    found = names(
        file("rootfs/cache/a", "1"),
        file("rootfs/cache/.wh.b"),
        link("rootfs/x", "rootfs/cache/a"),
        link("rootfs/y", "rootfs/cache/a"),
        without="cache/.*",
    )
    assert found == {"x": "1", "y": "x"}
