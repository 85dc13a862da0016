"""Layers that no tool writes in this way, or none should: both backends show the same of them, or refuse them."""

from __future__ import annotations

import hashlib
import tarfile
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path

import anyio
import pytest

from specbuild.errors import BaseUnavailableError
from specbuild.sandbox.contract import Backend, ImageLayer, ImageLayers
from specbuild.sandbox.docker import DockerBackend
from specbuild.sandbox.overlay import OverlayBackend
from specbuild.testing.engines import docker_engine
from specbuild.testing.images import Item, extended, file, folder, layer, link, symlink
from specbuild.testing.trial import new_key, seen

pytestmark = [pytest.mark.engine, pytest.mark.sandbox, pytest.mark.root, pytest.mark.slow]

END = bytes(2 * tarfile.BLOCKSIZE)
MakeBackend = Callable[[Path], Backend]


@pytest.fixture(scope="module", params=["overlay", "docker"])
def make_backend(request: pytest.FixtureRequest) -> Iterator[MakeBackend]:
    if request.param == "overlay":
        yield OverlayBackend
        return
    with docker_engine() as engine:
        yield lambda folder: DockerBackend(folder, engine.endpoint)


async def look(backend: Backend, layers: list[bytes], script: str, folder: Path) -> str:
    sources: list[ImageLayer] = []
    for data in layers:
        path = folder / hashlib.sha256(data).hexdigest()
        await anyio.Path(path).write_bytes(data)
        sources.append(ImageLayer(f"sha256:{path.name}", _giving(path)))
    async with backend:
        base = await backend.import_base(new_key(), ImageLayers(tuple(sources)))
        return await seen(backend, base, f"cd /; {script}")


def _giving(path: Path) -> Callable[[], Awaitable[Path]]:
    async def fetch() -> Path:
        return path

    return fetch


def device(name: str) -> Item:
    return Item(name, tarfile.CHRTYPE, device=(1, 3))


SHOWN = {
    "a name that is given to another file while a link keeps the content": (
        [layer(file("a", "old"), link("b", "a"), file("a", "new"))],
        "cat a b; stat -c %h a b",
        "newold1\n1",
    ),
    "a name that becomes a folder while a link keeps the content": (
        [layer(file("a", "old", mode=0o640, uid=3), link("b", "a"), folder("a"), file("a/x"))],
        "cat b; stat -c ' %a %u' b; ls a",
        "old 640 3\nx",
    ),
    "links of links, and one name that is another file in the end": (
        [layer(file("a", "1"), link("b", "a"), link("c", "b"), file("b", "2"))],
        "cat a b c; stat -c %h c",
        "1212",
    ),
    "a link that is given twice": ([layer(file("a", "1"), link("b", "a"), link("b", "a"))], "stat -c %h b", "2"),
    "a removed name of a file with others": (
        [layer(file("a", "1"), link("b", "a")), layer(file(".wh.a"))],
        "test ! -e a; cat b",
        "1",
    ),
    "links to devices, which are not there": (
        [layer(device("null"), link("other", "null"), link("third", "other"), file("null", "a file"))],
        "test ! -e other; test ! -e third; cat null",
        "a file",
    ),
    "a hidden folder behind a link": (
        [layer(folder("t"), file("t/x"), symlink("s", "t")), layer(file("s/.wh..wh..opq"), file("s/y"))],
        "ls s t",
        "s:\ny\n\nt:\nx",
    ),
    "owners that nobody can have": (
        [extended("u", {"uid": "-5", "gid": str(2**40)}, b"content") + END],
        "cat u",
        "content",
    ),
    "times that are no numbers": ([extended("u", {"mtime": "yesterday"}, b"content") + END], "cat u", "content"),
    "a type that nobody knows": ([extended("u", {}, b"content", kind=b"Z") + END], "cat u", "content"),
}


@pytest.mark.parametrize(("layers", "script", "expected"), SHOWN.values(), ids=SHOWN.keys())
async def test_what_can_be_shown_is(
    make_backend: MakeBackend, tiny: Path, tmp_path: Path, layers: list[bytes], script: str, expected: str
) -> None:
    root = await anyio.Path(tiny).read_bytes()
    assert await look(make_backend(tmp_path / "store"), [root, *layers], script, tmp_path) == expected


REFUSED = {
    "a link to itself": layer(file("a"), link("a", "a")),
    "a link to a folder": layer(folder("a"), link("b", "a")),
    "a link to what comes later": layer(link("b", "a"), file("a")),
    "a folder with the name of a mark": layer(file("d/.wh.b/c", "x")),
    "a header that makes no sense": layer(file("a"))[:512] + b"\1" * 512 + END,
    "a negative size": extended("x", {"size": "-1536"}) + END,
    "holes that make no sense": extended("x", {"GNU.sparse.map": "a,b", "GNU.sparse.size": "5"}) + END,
    "a time that is no number": extended("x", {"mtime": "nan"}) + END,
    "a name with a zero": extended("x", {"path": "a\0b"}) + END,
}


@pytest.mark.parametrize("archive", REFUSED.values(), ids=REFUSED.keys())
async def test_what_cannot_be_shown_is_no_base(
    make_backend: MakeBackend, tiny: Path, tmp_path: Path, archive: bytes
) -> None:
    root = await anyio.Path(tiny).read_bytes()
    with pytest.raises(BaseUnavailableError):
        await look(make_backend(tmp_path / "store"), [root, archive], "ls", tmp_path)
