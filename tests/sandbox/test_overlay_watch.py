"""The size of a layer that grows on a filesystem which others use, too."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from specbuild.sandbox.overlay.watch import Disk

MIB = 1 << 20


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Path]:
    """A small filesystem."""
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64m", "tmpfs", tmp_path], check=True)
    try:
        yield tmp_path
    finally:
        subprocess.run(["umount", tmp_path], check=True)


class Layer:
    """A folder that is measured, which is counted."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.measured = 0
        folder.mkdir()

    def write(self, name: str, size: int) -> None:
        (self.folder / name).write_bytes(bytes(size))

    async def measure(self) -> int:
        self.measured += 1
        return sum(path.stat().st_size for path in self.folder.iterdir())


@pytest.mark.root
async def test_what_others_free_does_not_hide_what_the_layer_takes(disk: Path) -> None:
    layer = Layer(disk / "layer")
    (disk / "others").write_bytes(bytes(40 * MIB))
    watched = Disk(disk, 0, layer.measure)
    (disk / "others").unlink()
    size, _ = await watched.check(10 * MIB)
    assert size == 0
    layer.write("one", 8 * MIB)
    size, _ = await watched.check(10 * MIB)
    assert size == 8 * MIB
    layer.write("two", 8 * MIB)
    size, _ = await watched.check(10 * MIB)
    assert (size, layer.measured) == (16 * MIB, 1)


@pytest.mark.root
async def test_what_others_write_is_not_the_layer_s(disk: Path) -> None:
    layer = Layer(disk / "layer")
    watched = Disk(disk, 0, layer.measure)
    layer.write("one", MIB)
    (disk / "others").write_bytes(bytes(20 * MIB))
    size, _ = await watched.check(10 * MIB)
    assert (size, layer.measured) == (MIB, 1)
