"""Layers of images become overlay layers that show what the archives say, and nothing of them gets out."""

from __future__ import annotations

import gzip
import hashlib
import os
import pwd
import secrets
import stat
import tarfile
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path

import anyio
import pytest

from specbuild.errors import (
    BaseUnavailableError,
    DownloadError,
    IntegrityError,
    SpecBuildError,
    StoreError,
    TransientError,
)
from specbuild.sandbox.contract import ImageLayer, ImageLayers
from specbuild.sandbox.overlay import OverlayBackend
from specbuild.sandbox.overlay.backend import FLATTEN_AT
from specbuild.testing.images import Item, compress, file, folder, layer, link, symlink
from specbuild.testing.leftovers import leftovers
from specbuild.testing.remote import Remote
from specbuild.testing.trial import new_key, seen

pytestmark = [pytest.mark.sandbox, pytest.mark.root]

NANOSECONDS = 1_234_567_890.123456789


def digest(data: bytes) -> str:
    return f"sha256:{hashlib.sha256(data).hexdigest()}"


class Shelf:
    """Layers in a folder, and how often each was fetched."""

    def __init__(self, place: Path) -> None:
        self.place = place
        self.fetched: list[str] = []

    def put(self, archive: bytes | Path, *, by: str = "") -> tuple[str, Path]:
        data = archive if isinstance(archive, bytes) else archive.read_bytes()
        path = self.place / secrets.token_hex(8)
        path.write_bytes(compress(data, by))
        path.chmod(0o644)
        return digest(data), path

    def layers(self, *archives: bytes | Path | tuple[str, Path]) -> ImageLayers:
        entries = [each if isinstance(each, tuple) else self.put(each) for each in archives]
        return ImageLayers(tuple(ImageLayer(diff_id, self._fetch(diff_id, path)) for diff_id, path in entries))

    def _fetch(self, diff_id: str, path: Path) -> Callable[[], Awaitable[Path]]:
        async def fetch() -> Path:
            self.fetched.append(diff_id)
            return path

        return fetch


@pytest.fixture
def shelf(shared: Path) -> Shelf:
    return Shelf(shared)


LOWER = layer(
    folder("d", 0o711, uid=33, gid=34, mtime=1_000_000_000, xattrs={"user.kept": "yes"}),
    file("d/a", "low"),
    file("d/b", "low"),
    folder("d/sub"),
    file("d/sub/c", "low"),
    folder("full"),
    file("full/one", "1"),
    file("full/two", "2"),
    folder("again"),
    file("again/old", "old"),
    folder("again2"),
    file("again2/old", "old"),
    file("was-file", "low"),
    folder("was-folder"),
    file("was-folder/x", "low"),
    symlink("was-link", "d"),
    file("linked", "shared content", mode=0o640, uid=5, gid=6, xattrs={"user.mark": "m"}),
    symlink("soft", "linked"),
)
UPPER = layer(
    file("d/.wh.a"),
    file("d/new", "up"),
    folder("full"),
    file("full/three", "3"),
    file("full/.wh..wh..opq"),
    file("again/.wh..wh..opq"),
    folder("again"),
    file("again/new", "new"),
    file(".wh.again2"),
    folder("again2"),
    file("again2/new", "new"),
    folder("was-file"),
    file("was-file/y", "up"),
    file("was-folder", "up"),
    folder("was-link"),
    file("was-link/z", "up"),
    file(".wh.never-there"),
    file(".wh..wh.plnk"),
    link("other-name", "linked"),
    link("third-name", "other-name"),
    link("soft-too", "soft"),
)
SCRIPT = r"""
cd /; find d full again again2 was-* other-name third-name soft-too -printf '%y %p %m %U:%G %l\n' | sort
cat other-name; echo; cat d/b d/new again/new was-folder; echo
stat -c '%Y %a %u:%g' d
stat -c '%h links' other-name third-name linked | uniq; stat -c %i linked other-name third-name | uniq | wc -l
ls -A / | grep '^\.wh' || echo clean
perl -e '$p = "/d"; $n = "user.kept"; $b = "-" x 64; print substr($b, 0, syscall(191, $p, $n, $b, 64)), "\n"'
"""
SHOWN = """\
d again 755 0:0
d again2 755 0:0
d d 711 33:34
d d/sub 755 0:0
d full 755 0:0
d was-file 755 0:0
d was-link 755 0:0
f again/new 644 0:0
f again2/new 644 0:0
f d/b 644 0:0
f d/new 644 0:0
f d/sub/c 644 0:0
f full/three 644 0:0
f other-name 640 5:6
f third-name 640 5:6
f was-file/y 644 0:0
f was-folder 644 0:0
f was-link/z 644 0:0
l soft-too 777 0:0 linked
"""


@pytest.mark.parametrize("user", [None, "ordinary"], ids=["as-root", "as-user"])
def test_layers_show_what_the_archives_say(
    user: str | None, tiny: Path, shelf: Shelf, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    name, store = None, tmp_path
    if user:
        name = str(request.getfixturevalue("ordinary_user"))
        store = request.getfixturevalue("users_folder") / secrets.token_hex(4)
        store.mkdir()
        os.chown(store, pwd.getpwnam(name).pw_uid, pwd.getpwnam(name).pw_gid)
    layers = [shelf.put(tiny), shelf.put(LOWER, by="gzip"), shelf.put(UPPER, by="zstd")]
    with Remote.start(store, layers, user=name) as engine:
        done = engine.run(SCRIPT)
    lines = done.tail.splitlines()
    shape = [line for line in lines if line[:2] in {"d ", "f ", "l "}]
    assert [line.rstrip() for line in shape] == SHOWN.splitlines()
    assert lines[len(shape) :] == [
        "shared content",
        "lowupnewup",
        "1000000000 711 33:34",
        "3 links",
        "1",
        "clean",
        "yes",
    ]
    assert leftovers(store) == []


async def imported(store: Path, source: ImageLayers) -> Path:
    """The top layer but for what each base gets, as it lies in the store."""
    async with OverlayBackend(store) as backend:
        base = await backend.import_base("the base", source)
        await backend.keep(base.key, "kept")
        return (await backend.rootfs_chain(base.key))[-2]


async def test_owners_modes_times_links_and_attributes_survive(shelf: Shelf, tmp_path: Path) -> None:
    capability = b"\1\0\0\2\0\4\0\0\0\0\0\0\0\0\0\0\0\0\0\0".decode()
    exact = layer(
        folder("./", 0o751, mtime=NANOSECONDS),
        folder("etc", 0o2775, uid=1, gid=2, mtime=NANOSECONDS),
        file("etc/set", "x", mode=0o6755, uid=3, gid=4, mtime=NANOSECONDS, xattrs={"user.a": "1"}),
        file("etc/capable", "x", mode=0o755, xattrs={"security.capability": capability}),
        link("etc/set2", "etc/set"),
        symlink("etc/dangling", "/no/where", uid=7, gid=8, mtime=77),
        Item("etc/pipe", tarfile.FIFOTYPE, mode=0o622),
        Item("etc/null", tarfile.CHRTYPE, device=(1, 3)),
        Item("etc/whiteout", tarfile.CHRTYPE, device=(0, 0)),
        file("etc/" + "n" * 250, "long"),
        file("etc/é\u2028", "name"),
    )
    top = await imported(tmp_path, shelf.layers(exact))
    first = 100_000
    etc = top / "etc"
    names = sorted(entry.name for entry in etc.iterdir())
    assert names == sorted(["set", "capable", "set2", "dangling", "pipe", "n" * 250, "é\u2028"])
    found = (etc / "set").lstat()
    assert (stat.S_IMODE(found.st_mode), found.st_uid - first, found.st_gid - first) == (0o6755, 3, 4)
    assert found.st_nlink == 2
    assert found.st_mtime_ns // 1000 == int(NANOSECONDS * 10**6)
    assert os.getxattr(etc / "set", "user.a") == b"1"
    assert os.getxattr(etc / "capable", "security.capability")
    assert stat.S_IMODE(etc.stat().st_mode) == 0o2775
    assert etc.stat().st_mtime_ns // 1000 == int(NANOSECONDS * 10**6)
    assert stat.S_IMODE(top.stat().st_mode) == 0o751
    dangling = (etc / "dangling").lstat()
    assert (str((etc / "dangling").readlink()), dangling.st_uid - first, dangling.st_mtime) == ("/no/where", 7, 77)
    assert stat.S_ISFIFO((etc / "pipe").lstat().st_mode)


HOSTILE = {
    "dots": [file("../../../../{canary}", "evil"), file("a/../../../{canary}", "evil")],
    "absolute": [file("{canary}", "evil")],
    "through a link": [symlink("out", "/{folder}"), file("out/file", "evil")],
    "through a link upwards": [symlink("out", "../../../../../../../{folder}"), file("out/file", "evil")],
    "over a link": [symlink("file", "/{canary}"), file("file", "evil")],
    "through a chain of links": [symlink("b", "/"), symlink("a", "b"), file("a/{canary}", "evil")],
    "a hard link to it": [link("stolen", "{canary}")],
    "a hard link upwards": [link("stolen", "../../../../../../{canary}")],
    "a hard link through a link": [symlink("out", "/{folder}"), link("stolen", "out/file")],
    "a whiteout of it": [file("../../../../{whiteout}")],
    "a whiteout through a link": [symlink("out", "/{folder}"), file("out/.wh.file")],
    "an opaque folder through a link": [symlink("out", "/{folder}"), file("out/.wh..wh..opq")],
    "a whiteout of the folder itself": [folder("d"), file("d/.wh..")],
    "a whiteout of the folder above": [folder("d"), file("d/.wh...")],
    "a folder over a link": [symlink("out", "/{folder}"), folder("out", 0o777), file("out/file", "evil")],
    "a folder's mode through a link": [folder("out"), symlink("out", "/{folder}"), folder("out/", 0o777)],
    "attributes of overlayfs": [folder("d", xattrs={"user.overlay.redirect": "/etc", "trusted.overlay.opaque": "y"})],
}


@pytest.mark.parametrize("items", HOSTILE.values(), ids=HOSTILE.keys())
async def test_nothing_of_a_layer_gets_out(items: Sequence[Item], shelf: Shelf, tmp_path: Path, shared: Path) -> None:
    outside = shared / "outside"
    outside.mkdir(0o755)
    canary = outside / "file"
    canary.write_text("canary")
    canary.chmod(0o666)
    before = (outside.stat(), canary.stat())
    words = {
        "canary": str(canary).lstrip("/"),
        "folder": str(outside).lstrip("/"),
        "whiteout": str(outside / ".wh.file").lstrip("/"),
    }
    named = [_replaced(item, words) for item in items]
    try:
        top = await imported(tmp_path / "store", shelf.layers(layer(folder("d"), file("d/x")), layer(*named)))
    except SpecBuildError as error:
        assert isinstance(error, BaseUnavailableError)  # noqa: PT017 - both ends are fine
    else:
        for path in top.rglob("*"):
            assert not path.is_file() or path.is_symlink() or path.read_text() != "canary"
            assert "user.overlay.redirect" not in os.listxattr(path, follow_symlinks=False)
    assert canary.read_text() == "canary"
    after = (outside.stat(), canary.stat())
    assert [(s.st_mode, s.st_nlink, s.st_uid, s.st_mtime_ns) for s in before] == [
        (s.st_mode, s.st_nlink, s.st_uid, s.st_mtime_ns) for s in after
    ]


def _replaced(item: Item, words: dict[str, str]) -> Item:
    return Item(
        item.name.format(**words), item.kind, item.data, item.link.format(**words), item.mode, xattrs=item.xattrs
    )


async def test_what_images_have_in_common_is_fetched_and_kept_once(tiny: Path, shelf: Shelf, tmp_path: Path) -> None:
    common = [shelf.put(tiny), shelf.put(layer(file("common", "c")))]
    async with OverlayBackend(tmp_path) as backend:
        first = await backend.import_base(new_key(), shelf.layers(*common, layer(file("own", "1"))))
        keys = set(await backend.keys())
        shelf.fetched.clear()
        second = await backend.import_base(new_key(), shelf.layers(*common, own := shelf.put(layer(file("own", "2")))))
        assert shelf.fetched == [own[0]]
        assert len(set(await backend.keys()) - keys) == 2
        assert await seen(backend, first, "cat /common /own") == "c1"
        assert await seen(backend, second, "cat /common /own") == "c2"
        assert (first.parent, second.parent) == (None, None)
    async with OverlayBackend(tmp_path) as backend:
        shelf.fetched.clear()
        await backend.import_base(first.key, shelf.layers(*common))
        assert shelf.fetched == []
        await backend.keep(first.key, "kept")
    async with OverlayBackend(tmp_path) as backend:
        await backend.prune(everything=True)
        assert await backend.find(second.key) is None
        found = await backend.find(first.key)
        assert found is not None
        assert await seen(backend, found, "cat /common /own") == "c1"
        await backend.forget("kept")
    async with OverlayBackend(tmp_path) as backend:
        await backend.prune(everything=True)
        assert await backend.keys() == []
    assert leftovers(tmp_path) == []


async def test_a_layer_that_hides_all_below_it_stands_alone(tiny: Path, shelf: Shelf, tmp_path: Path) -> None:
    whole = [shelf.put(tiny), shelf.put(layer(file("old", "o"))), shelf.put(layer(file(".wh..wh..opq")))]
    async with OverlayBackend(tmp_path) as backend:
        base = await backend.import_base(new_key(), shelf.layers(*whole, tiny, layer(file("new", "n"))))
        assert await seen(backend, base, "ls /old /new 2>&1 | grep -c 'No such'; cat /new") == "1\nn"


async def test_more_layers_than_are_mounted_at_once(tiny: Path, shelf: Shelf, tmp_path: Path) -> None:
    count = FLATTEN_AT + 12
    many = [layer(file(f"f{number}", str(number)), file("last", str(number))) for number in range(count)]
    async with OverlayBackend(tmp_path) as backend:
        base = await backend.import_base(new_key(), shelf.layers(tiny, *many))
        shown = await seen(backend, base, f"cat /f0 /f{count - 1} /last; ls / | grep -c '^f[0-9]'")
        assert shown == f"0{count - 1}{count - 1}{count}"
    assert leftovers(tmp_path) == []


DAMAGES: dict[str, tuple[Callable[[bytes], bytes], type[SpecBuildError]]] = {
    "another archive": (lambda data: gzip.compress(layer(file("other"))), IntegrityError),
    "cut short": (lambda data: gzip.compress(data)[:-100], DownloadError),
    "one bit changed": (lambda data: data[:600] + bytes([data[600] ^ 1]) + data[601:], IntegrityError),
    "no archive": (lambda data: b"\x1f\x8b" + b"?" * 100, DownloadError),
    "broken zstd": (lambda data: compress(data, "zstd")[:-10], DownloadError),
    "no tar": (lambda data: b"?" * 5000, SpecBuildError),
    "empty": (lambda data: b"", SpecBuildError),
}


@pytest.mark.parametrize(("damage", "error"), DAMAGES.values(), ids=DAMAGES.keys())
async def test_what_is_not_as_promised_never_becomes_a_layer(
    damage: Callable[[bytes], bytes], error: type[SpecBuildError], shelf: Shelf, tmp_path: Path
) -> None:
    whole = layer(file("a", secrets.token_bytes(50_000)))
    diff_id, path = shelf.put(whole)
    path.write_bytes(damage(whole))
    async with OverlayBackend(tmp_path) as backend:
        with pytest.raises(error):
            await backend.import_base(new_key(), shelf.layers((diff_id, path)))
        assert await backend.keys() == []
        path.write_bytes(whole)
        await backend.import_base(new_key(), shelf.layers((diff_id, path)))
    assert leftovers(tmp_path) == []


async def test_a_layer_that_cannot_be_fetched_ends_the_import(tiny: Path, shelf: Shelf, tmp_path: Path) -> None:
    async def fetch() -> Path:
        raise TransientError("no network")

    good = shelf.layers(tiny)
    async with OverlayBackend(tmp_path) as backend:
        with pytest.raises(TransientError, match="no network"):
            await backend.import_base(new_key(), ImageLayers((*good.layers, ImageLayer(digest(b""), fetch))))
        with pytest.raises(BaseUnavailableError, match="no layers"):
            await backend.import_base(new_key(), ImageLayers(()))
    assert leftovers(tmp_path) == []


async def test_a_disk_that_fills_up_is_no_fault_of_the_base(tmp_path: Path) -> None:
    disk = tmp_path / "disk"
    disk.mkdir()
    await anyio.run_process(["mount", "-t", "tmpfs", "-o", "size=2m", "small", str(disk)])
    try:
        shelf = Shelf(tmp_path)
        async with OverlayBackend(disk / "store") as backend:
            with pytest.raises(StoreError, match="full") as caught:
                await backend.import_base(new_key(), shelf.layers(layer(file("large", secrets.token_bytes(4 << 20)))))
            assert "free some space" in caught.value.hint
            assert await backend.keys() == []
    finally:
        await anyio.run_process(["umount", "--lazy", str(disk)])
